#!/bin/sh
# Hosts that are network namespaces of this machine, on a bridge of their own.
#
#   tools/hosts-here.sh up RATE NAME=ROLE,ROLE... >hosts.toml
#   tools/hosts-here.sh down NAME...
#
# RATE is what each link carries in each direction, in tc's words: 1gbit, 100mbit; or `free`.
# Needs root, iproute2, and a kernel that has namespaces, veth, bridges and, for a rate, tbf.
set -eu

HUB=pmhosts-hub
NET=10.203.77

space() { echo "pmhosts-$1"; }

down() {
  for name in "$@"; do ip netns del "$(space "$name")" 2>/dev/null || true; done
  ip netns del "$HUB" 2>/dev/null || true
}

# What a link carries: on this device of this namespace.
limit() {
  [ "$3" = free ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst 256kb latency 50ms
}

up() {
  rate=$1
  shift
  ip netns add "$HUB"
  ip -n "$HUB" link add hub type bridge mcast_snooping 0
  ip -n "$HUB" link set hub up
  number=0
  for host in "$@"; do
    number=$((number + 1))
    name=${host%%=*}
    roles=$(echo "${host#*=}" | sed 's/[^,]*/"&"/g; s/,/, /g')
    ip netns add "$(space "$name")"
    ip -n "$HUB" link add "e$number" type veth peer name e netns "$(space "$name")"
    ip -n "$HUB" link set "e$number" master hub up
    ip -n "$(space "$name")" address add "$NET.$number/24" dev e
    ip -n "$(space "$name")" link set e up
    ip -n "$(space "$name")" link set lo up
    ip -n "$(space "$name")" route add 224.0.0.0/4 dev e
    limit "$HUB" "e$number" "$rate"
    limit "$(space "$name")" e "$rate"
    # By `ip netns exec` a host would have a /sys without control groups, and no limit of a
    # server would hold. Nothing else needs that network.
    printf '[hosts.%s]\nreach = ["nsenter", "--net=/run/netns/%s"]\naddress = "%s"\nroles = [%s]\nmay_cut = true\n\n' \
      "$name" "$(space "$name")" "$NET.$number" "$roles"
  done
}

case "${1:-}" in
  up)
    shift
    [ $# -ge 2 ] || { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }
    names=
    for host in "$@"; do names="$names ${host%%=*}"; done
    up "$@" || { down ${names#* }; exit 1; }
    ;;
  down)
    shift
    down "$@"
    ;;
  *)
    sed -n '4,5s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
