#!/bin/bash
# In the guest: hosts and switch up, then the command (or a shell on the console), then power off.
# Parameters are files in /lab, the share with the host: `project`, `build`, `hosts`, `switch`,
# `command` (words quoted for a shell; empty: a shell), `terminal`. Results: `stdout` and
# `stderr` while the command runs, `kernel` at the end, and last `code`.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
project=$(</lab/project) build=$(</lab/build) hosts=$(</lab/hosts)
export CEPHEUS_BUILD=$build CEPHEUS_LAB=1 CEPHEUS_LAB_HOSTS=$hosts CEPHEUS_FABRIC=/run/cepheus.sock
export PATH=$build/bin:$PATH
ulimit -l unlimited
ln -sfn /proc/self/fd /dev/fd
trap 'finish 125' EXIT

finish() {  # CODE
  trap - EXIT
  kill "${followers[@]}" 2>/dev/null
  wait "${followers[@]}" 2>/dev/null
  local name
  for name in stdout stderr; do
    tail -c "+$(($(stat -c %s "/lab/$name") + 1))" "/run/$name" >>"/lab/$name"
  done
  dmesg >/lab/kernel
  echo "$1" >/lab/code.new
  mv /lab/code.new /lab/code
  echo o >/proc/sysrq-trigger
  wait
}

# Files of the share are slow to write: in memory first, and copied in pieces.
followers=()
follow() {  # NAME
  : >"/run/$1" >"/lab/$1"
  tail -c +1 -f "/run/$1" >"/lab/$1" &
  followers+=($!)
}

start_switch() {
  local ready
  exec {ready}< <(cepheus-switch --topology /run/fabric.toml --fabric "$CEPHEUS_FABRIC" --ready-fd 1 2>/run/switch.log)
  read -r -t 60 -u "$ready" && return
  echo "lab: cepheus-switch did not start: $(</run/switch.log)" >&2
  return 1
}

ip link set lo up
echo lab >/proc/sys/kernel/hostname
echo "127.0.0.1 localhost lab" >/etc/hosts
cat /proc/uptime >/lab/uptime
follow stdout
follow stderr
cd "$project" || finish 125
{
  source nic-emulator/lab/network.sh
  network_up "$hosts" &&
    python3 nic-emulator/lab/topology.py --hosts "$hosts" >/run/fabric.toml &&
    if [[ $(</lab/switch) == yes ]]; then start_switch; fi
} >>/run/stdout 2>>/run/stderr || finish 125

if [[ -s /lab/command ]]; then
  eval "$(</lab/command)" >>/run/stdout 2>>/run/stderr </dev/null
  code=$?
else
  export TERM
  TERM=$(</lab/terminal)
  setsid --ctty --wait bash -i </dev/ttyS0 >/dev/ttyS0 2>&1
  code=$?
fi
finish "$code"
