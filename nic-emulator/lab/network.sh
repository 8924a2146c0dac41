# Hosts of the lab: rxe0.. on h0.., 10.0.0.1.., each on one end of a veth pair. The other end, p0..,
# is a port of cepheus-switch. Sourced by guest.sh.
#
# All devices are in one namespace, since this kernel's rdma_rxe works in the first one only. Policy
# routing therefore sends a host's packets by its device instead of the loopback:
# the local table comes last, except for packets that have arrived.
#
# Commands go to ip and rdma in batches: under emulation a process costs some 50 ms.

readonly lab_mtu=4210  # 4096 bytes of payload and the fabric's largest headers

set_sysctl() {  # PATH VALUE
  echo "$2" >"/proc/sys/net/$1"
}

pair_commands() {  # INDEX
  local i=$1 mac
  mac=$(printf %02x $((i + 1)))
  echo "link add h$i address 02:00:00:00:00:$mac mtu $lab_mtu type veth" \
    "peer name p$i address 02:00:00:00:01:$mac mtu $lab_mtu"
}

host_commands() {  # INDEX
  local i=$1 address=10.0.0.$(($1 + 1)) table=$((100 + $1))
  cat <<COMMANDS
address add $address/24 dev h$i noprefixroute
link set p$i up
link set h$i up
route add 10.0.0.0/24 dev h$i table $table
route add 198.18.0.0/15 dev h$i table $table
rule add pref 10 iif h$i lookup local
rule add pref 15 from $address to $address lookup local
rule add pref 20 oif h$i lookup $table
rule add pref 20 from $address lookup $table
COMMANDS
}

network_up() {  # HOSTS
  local i each
  set_sysctl core/netdev_max_backlog 100000
  set_sysctl ipv4/conf/all/rp_filter 0
  for ((i = 0; i < $1; ++i)); do pair_commands "$i"; done | ip -batch - || return
  for ((i = 0; i < $1; ++i)); do
    for each in "h$i" "p$i"; do set_sysctl "ipv6/conf/$each/disable_ipv6" 1; done
    set_sysctl "ipv4/conf/h$i/accept_local" 1
    set_sysctl "ipv4/conf/h$i/rp_filter" 0
    set_sysctl "ipv4/conf/h$i/arp_ignore" 1
    set_sysctl "ipv4/conf/h$i/arp_announce" 2
  done
  {
    for ((i = 0; i < $1; ++i)); do host_commands "$i"; done
    echo "rule add pref 1000 lookup local"
    echo "rule del pref 0"
  } | ip -batch - || return
  for ((i = 0; i < $1; ++i)); do echo "link add rxe$i type rxe netdev h$i"; done | rdma -b -
}
