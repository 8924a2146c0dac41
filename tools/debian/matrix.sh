#!/usr/bin/env bash
# Builds this tree and runs the demo and the tests on Debian releases, each in a root of its own: ./run matrix
#
# usage: matrix.sh [RELEASE...] [-- CTEST ARGUMENTS]     (as root; releases by number, 12 and 13 by default)
#
# Roots stay in build/matrix for the next time, about 5 GB each, with their build trees. Packages come from where this
# machine's apt has Debian's from, by the same ways. Prints a line a release; exit status 1 if one failed.
set -euo pipefail
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
readonly source place=$source/build/matrix
declare -rA suites=([12]=bookworm [13]=trixie)

say() { printf 'matrix: %s\n' "$*" >&2; }
die() { say "$@"; exit 2; }

# A root's own files of apt: this machine's sources of Debian under the other suite's name, and its ways through proxies.
configure_apt() {  # SUITE ROOT
  local own files
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  mapfile -t files < <(grep -lsE "\b$own\b" /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list |
    xargs -r grep -lE '/debian(-security)?/?( |$)')
  ((${#files[@]})) || die "no source of $own is in /etc/apt: nothing to take Debian from"
  : >"$2/etc/apt/sources.list"
  for file in "${files[@]}"; do
    sed "s/\b$own\b/$1/g" "$file" >"$2/etc/apt/sources.list.d/$(basename "$file")"
  done
  apt-config dump | grep -E '^Acquire::(http|https|Retries|Proxy)' >"$2/etc/apt/apt.conf.d/90matrix" || true
}

make_root() {  # SUITE ROOT
  [[ ! -e $2/.made ]] || return 0
  local mirror
  mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian //p' | head -n 1)
  [[ $mirror ]] || die "this machine's apt has no source of Debian; add one, then: apt-get update"
  say "making a root of $1"
  rm -rf --one-file-system "$2"
  mkdir -p "$2"
  debootstrap --variant=minbase --include=ca-certificates,git "$1" "$2" "$mirror" >"$2.log" 2>&1 ||
    die "debootstrap could not make a root of $1; $2.log says why"
  configure_apt "$1" "$2"
  touch "$2/.made"
}

# Mounts are those of a namespace of its own, which ends with the command.
inside() {  # ROOT COMMAND: in the root, at the tree, with a build directory of the root's own
  mkdir -p "$1/cepheus" "$1.build" "$source/build"
  cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
  unshare --mount --propagation private bash -euc '
    root=$1
    mount --bind "$root" "$root"  # "ip netns" needs / to be a mount
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount --bind "$2" "$root/cepheus"
    mount --bind "$root.build" "$root/cepheus/build"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      bash -c "cd /cepheus && $3"' inside "$1" "$source" "$2"
}

versions() {  # ROOT
  chroot "$1" dpkg-query -W -f '${Package} ${Version}\n' g++ libopenmpi-dev libucx-dev libibverbs-dev |
    sed -E 's/ ([0-9]+:)?([^-+]*).*/ \2/; s/^g\+\+/GCC/; s/^libopenmpi-dev/Open MPI/; s/^libucx-dev/UCX/; s/^libibverbs-dev/rdma-core/' |
    paste -sd, | sed 's/,/, /g'
}

releases=()
tests=()
while (($#)); do
  case $1 in
    --) shift; tests=("$@"); break ;;
    *) [[ ${suites[$1]:-} ]] || die "'$1' is no release that is known here; there are: $(printf '%s\n' "${!suites[@]}" | sort | paste -sd' ')"
       releases+=("$1"); shift ;;
  esac
done
((${#releases[@]})) || releases=(12 13)
((EUID == 0)) || die "roots are made by root; as root: ./run matrix ${releases[*]}"

failed=0
lines=()
for release in "${releases[@]}"; do
  root=$place/debian-$release
  make_root "${suites[$release]}" "$root"
  demo=ok outcome=ok
  inside "$root" "./run demo" || demo=FAILED
  inside "$root" "./run test ${tests[*]@Q}" 2>&1 | tee "$root.tests" || outcome=FAILED
  [[ $demo == ok && $outcome == ok ]] || failed=1
  counted=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$root.tests" | tail -n 1) || counted="not run"
  lines+=("Debian $release ($(versions "$root")): demo $demo; tests $outcome: $counted")
done
printf '%s\n' "${lines[@]}"
exit $failed
