#!/usr/bin/env bash
# Builds the container with buildah over a bare Debian root, without a registry of images, and runs an MPI program in it.
#
# usage: check.sh ROOT PACKAGES PROGRAM [ARGUMENTS]     (as root)
#   ROOT      made by debootstrap for Debian 12, with sources of apt that work here
#   PACKAGES  the directory of ./run package
set -euo pipefail
(($# >= 3)) || { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }
root=$(realpath "$1") packages=$(realpath "$2") program=$(realpath "$3")
shift 3
containerfile=$(realpath "$(dirname "$0")")/Containerfile
store=$(mktemp -d /var/tmp/cepheus-container.XXXXXX)
trap 'rm -rf --one-file-system "$store"' EXIT
export BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }

base=$(buildah from scratch)
buildah copy -q "$base" "$root" / >/dev/null
buildah commit -q --rm "$base" docker.io/library/debian:bookworm >/dev/null
buildah build --pull-never --file "$containerfile" --tag cepheus "$packages"
container=$(buildah from --pull-never localhost/cepheus)
buildah copy -q "$container" "$program" /home/mpi/program >/dev/null
mapfile -t entry < <(buildah inspect --format '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}' "$container" | sed '/^$/d')
buildah run "$container" -- "${entry[@]}" --hosts 4 -- ./program "$@"
