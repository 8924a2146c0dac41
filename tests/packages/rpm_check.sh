#!/usr/bin/env bash
# Unpacks the RPM of DIRECTORY beside the system, and uses what it brings from there: rpm's own database and another distribution's
# libraries can't be had on Debian. PROGRAM is broadcast_check of a build tree.
# usage: rpm_check.sh DIRECTORY PROGRAM
set -euo pipefail
directory=$(realpath "${1:?usage: rpm_check.sh DIRECTORY PROGRAM}")
program=$(realpath "${2:?usage: rpm_check.sh DIRECTORY PROGRAM}")
package=$(ls "$directory"/cepheus-*.rpm)
scratch=$(mktemp -d /tmp/rpm-check.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

check() {  # TEXT PATTERN COMMAND...
  local text=$1 pattern=$2 out code=0
  shift 2
  out=$("$@" 2>&1) || code=$?
  if ((code != 0)) || ! grep -qE -- "$pattern" <<<"$out"; then
    printf 'rpm_check: FAILED (exit %d): %s\n%s\n' "$code" "$text" "$out" >&2
    exit 1
  fi
  printf 'ok: %s\n' "$text"
}

check "the topology is a configuration file" '^/etc/cepheus/fabric.toml$' rpm -qp --configfiles "$package"
check "no other file lies in a place of its own making" '^$' \
  bash -c "rpm -qpl '$package' | { grep -vE '^(/etc/cepheus|/usr/(bin|include|lib64|lib/systemd/system|share)/)' || true; } | head -n 1; echo"
check "no file of a distribution's own directories" '^$' \
  bash -c "rpm -qpl '$package' | { grep -xE '/(usr|etc|usr/(bin|lib64|share|include|lib|lib/systemd|share/man|share/man/man1))' || true; }; echo"
for page in cepheus cepheus-cmd cepheus-replica cepheus-run cepheus-sim cepheus-switch cepheusctl; do
  check "man $page" "/$page\.1" rpm -qpl "$package"
done
check "it asks for the libraries that it links" '^libibverbs\.so' rpm -qp --requires "$package"
mkdir "$scratch/root"
(cd "$scratch/root" && rpm2cpio "$package" | cpio --quiet -idm)
export LD_LIBRARY_PATH=$scratch/root/usr/lib64 PATH=$scratch/root/usr/bin:$PATH
check "cepheus-run: MPI_Bcast by multicast on 4 hosts" '^ok: 20 broadcasts' \
  cepheus-run --hosts 4 -- --mca coll_cepheus_mode require "$program" --count 20
check "cepheus-sim" 'seeds' cepheus-sim --seeds 20
check "the unit names installed programs" '^ExecStart=/usr/bin/cepheus-switch ' cat "$scratch/root/usr/lib/systemd/system/cepheus-switch.service"
