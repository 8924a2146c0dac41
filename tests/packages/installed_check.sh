#!/usr/bin/env bash
# On a disposable machine, as root: installs the packages of DIRECTORY, uses them as a new user would, and purges them.
# PROGRAM is broadcast_check of a build tree, a plain program of Open MPI.
# usage: installed_check.sh DIRECTORY PROGRAM
set -euo pipefail
directory=$(realpath "${1:?usage: installed_check.sh DIRECTORY PROGRAM}")
program=$(realpath "${2:?usage: installed_check.sh DIRECTORY PROGRAM}")
((EUID == 0)) || { echo "installed_check: this installs and purges packages: run it as root on a disposable machine" >&2; exit 2; }
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n')
! grep -qE '^installed (cepheus|libmcast)' <<<"$installed" || { echo "installed_check: Cepheus is installed here already" >&2; exit 2; }

export DEBIAN_FRONTEND=noninteractive
readonly us=installed-check
scratch=$(mktemp -d /tmp/installed-check.XXXXXX)
chmod 755 "$scratch"
install -m 755 "$program" "$scratch/program"
useradd --create-home "$us"
trap 'userdel -r "$us" 2>/dev/null || true; rm -rf "$scratch"' EXIT

check() {  # TEXT PATTERN COMMAND...: as an ordinary user, without our variables
  local text=$1 pattern=$2 out code=0
  shift 2
  out=$(cd "$scratch" && runuser -u "$us" -- env -i HOME="/home/$us" PATH=/usr/bin:/bin LANG=C.UTF-8 "$@" 2>&1) || code=$?
  # Not by a pipe: grep -q would end at the first match.
  if ((code != 0)) || ! grep -qE -- "$pattern" <<<"$out"; then
    printf 'installed_check: FAILED (exit %d): %s\n%s\n' "$code" "$text" "$out" >&2
    exit 1
  fi
  printf 'ok: %s\n' "$text"
}
left() {  # our files; other packages' files in our directories; diversions
  {
    find / -xdev \( -path /proc -o -path /sys -o -path "$directory" -o -path "$scratch" -o -path /root \) -prune -o \
      \( -iname '*cepheus*' -o -iname '*mcast*' \) -print
    find /usr/lib/*/openmpi /usr/lib/*/pmix2 -type f -exec md5sum {} + 2>/dev/null
    dpkg-divert --list '*mix*'
  } | sort
}

apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends openmpi-bin ibverbs-utils man-db pkg-config ssh-client >/dev/null
left >"$scratch/before"
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$directory"/*.deb >/dev/null

check "Open MPI has coll/cepheus, without a variable" 'MCA coll: cepheus' ompi_info
check "a plain mpirun uses it, and prints its choice" "cepheus: .*open mpi's own algorithms" \
  mpirun -np 2 --oversubscribe --mca coll_cepheus_verbose 1 --mca coll_cepheus_ranks_per_host 1 ./program --count 4
check "cepheus-run: MPI_Bcast by multicast on 4 hosts" '^ok: 20 broadcasts' \
  cepheus-run --hosts 4 -- --mca coll_cepheus_mode require ./program --count 20
check "ibv_devinfo under cepheus-run" 'hca_id:.*cepheus0' cepheus-run --hosts 1 -- ibv_devinfo
check "cepheus doctor finds UCX's and Open MPI's parts" 'mpirun: +its programs find coll/cepheus' sh -c 'cepheus doctor || test $? = 1'
for page in cepheus cepheus-run cepheus-sim cepheus-switch cepheusctl; do check "man $page" "/$page\." man -w "$page"; done
check "man cepheus-run can be read" 'run an MPI program' man -P cat cepheus-run
check "pkg-config mcast" '0\.[0-9]' pkg-config --modversion mcast
check "pkg-config finds the headers" 'ok' sh -c 'cd "$(pkg-config --variable=includedir mcast)/mcast" && ls mcast.h write.h && echo ok'
check "cepheus-sim" 'seeds' cepheus-sim --seeds 20
check "Slurm's scripts" 'task-prolog' ls /usr/share/cepheus/slurm
check "the unit can be read" 'cepheus-switch --topology' grep ExecStart /lib/systemd/system/cepheus-switch.service

apt-get purge -y 'cepheus*' 'libmcast*' >/dev/null
apt-get autoremove -y --purge >/dev/null
left >"$scratch/after"
# Notes of apt and dpkg about earlier packages are not ours.
more=$(comm -13 "$scratch/before" "$scratch/after" | { grep -vE '^/var/(lib/(apt|dpkg)|cache|log)/' || true; })
[[ -z $more ]] || { printf 'installed_check: FAILED: purging leaves\n%s\n' "$more" >&2; exit 1; }
echo "ok: purging leaves nothing"
