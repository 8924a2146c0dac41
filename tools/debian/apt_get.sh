#!/usr/bin/env bash
# apt-get, after whoever has its locks: apt_get.sh [--patience SECONDS] ARGUMENTS...
#
# A freshly booted machine runs apt of its own for some minutes. apt's own DPkg::Lock::Timeout waits for dpkg's
# locks alone, not for those of the package lists and of the archives. Says so while it waits, 15 min at most; exits as
# apt-get does, and prints what that said if it failed.
set -euo pipefail

time_limit=900
if [[ ${1:-} == --patience ]]; then
  time_limit=$2
  shift 2
fi
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
unset CEPHEUS_SUPERVISED  # services that packages start outlive this run

said=""
told=no
give_up=$((SECONDS + time_limit))
until said=$(apt-get -qq "$@" 2>&1 >/dev/null); do
  held=$(grep -m 1 'Could not get lock' <<<"$said") || held=""
  if [[ -z $held ]] || ((SECONDS >= give_up)); then
    printf '%s\n' "$said" >&2
    [[ -z $held ]] || printf 'apt-get %s: gave up after %s s; try again when that process has ended\n' "${1:-}" "$time_limit" >&2
    exit 100
  fi
  [[ $told == yes ]] || printf 'apt-get %s: waiting, %s s at most: %s\n' "${1:-}" "$time_limit" "${held#E: }" >&2
  told=yes
  sleep 1
done
