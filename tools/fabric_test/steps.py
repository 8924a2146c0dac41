"""The steps of the ladder: each needs those before it, and names the likely cause of its failure.

A step is a function of the Ladder; it calls ladder.passed() or ladder.failed() once. A cause has a short name, which stays.
"""

import errno

import way
from probe import FROM_SWITCH, MERGING, QUEUES, ROCE_ON, SIZE, UNTAGGED
from sockets import IP_UDP, ROCE_PORT

SIZES = (1024, 2048, 4160)  # bytes of an IP packet; the last is the largest of groups with packets of 4096 bytes
EMULATED_SIZES = (1024, 1500)  # ... of the datagrams of an emulated NIC
TRAFFIC_CLASSES = (0x00, 0x68, 0x6A)  # best effort; UCX's default without and with "capable of ECN"
BURST = 120  # probes at once: below the switch's burst
BURST_SECONDS = 4  # no probe of a burst is repeated: more time for a busy box
GOOD_NEIGHBOUR = ("REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT", "NOARP")


class Stop(Exception):
    """The later steps would tell nothing."""


def identity(ladder):
    way_ = ladder.way
    if ladder.helper is not None:
        helper = ladder.helper
        return ladder.passed(f"{helper.device} of an emulated fabric, {helper.address}, packets of {helper.mtu} bytes",
                             ibv_devinfo=way.output_of("ibv_devinfo", "-v"))
    if way_.dev is None:
        return None
    seen = way.identity(way_.dev)
    return ladder.passed(f"{way_.dev}, driver {seen['driver']}, MTU {seen['mtu']}", **seen)


def route(ladder):
    way_, wanted = ladder.way, ladder.interface
    if ladder.helper is not None:
        return ladder.passed(f"{way_.group} by the emulated NIC from {way_.source}")
    if way_.dev is None:
        ladder.failed("no-route", f"no route to {way_.group}", f"ip route add 198.18.0.0/15 via BOX{f' dev {wanted}' if wanted else ''}, where "
                                  "BOX is the address of the machine with cepheus-switch")
        raise Stop
    if wanted and wanted != way_.dev:
        ladder.failed("wrong-interface", f"groups leave by {way_.dev}, but the NIC is {wanted}: it would wait for an ARP answer there",
                      f"ip route replace 198.18.0.0/15 via BOX dev {wanted}, or name the other NIC by --device or --interface")
        raise Stop
    return ladder.passed(f"{way_.group} by {way_.dev}" + (f" via {way_.gateway}" if way_.gateway else "") + f" from {way_.source}")


def answer(ladder):
    """A probe to the registration port, answered to a port that has sent nothing."""
    prober, way_ = ladder.prober, ladder.way
    dropped = way.reverse_path_drops()
    try:
        found = prober.request()
        on_wire = found is None and ladder.has_seen()
        known = found or prober.request(to_sender=True)
    except OSError as error:
        ladder.failed("no-route", f"can't send: {error.strerror}", f"ip route get {way_.group}")
        raise Stop from None
    state, mac = way_.neighbour()
    if found is not None:
        ladder.first = found
        return ladder.passed(f"{found.bytes} bytes from {found.source} after {found.seconds * 1e6:.0f} us, to a port that has sent nothing",
                             answer=found.as_json(), neighbour=[state, mac])
    if on_wire and way.reverse_path_drops() > dropped:
        reverse_path(ladder, way_)
    elif on_wire:
        ladder.failed("filter-at-host", f"answers reach {way_.dev}, but no program: this host filters them",
                      f"accept UDP from port {prober.port}, for instance: nft insert rule inet filter input udp sport {prober.port} accept")
    elif known is not None:
        ladder.failed("filter-new-ports", "answers reach ports that have sent before, but no other: a filter keeps state",
                      f"accept UDP from port {prober.port} of 198.18.0.0/15 to any port, on hosts and on the way")
    elif ladder.helper is None and state not in GOOD_NEIGHBOUR:
        ladder.failed("no-neighbour", f"{way_.hop} does not answer ARP: {state}",
                      f"check the box at {way_.hop} and the cable of {way_.dev}: ip neigh show {way_.hop}; tcpdump -ni {way_.dev} arp")
    else:
        ladder.failed("no-answer", f"{way_.hop} ({mac}, {state}) is there, but no probe is answered",
                      f"on the box: cepheusctl ports (is {way_.source} listed and attached?), cepheusctl counters (which drop grows?); "
                      f"probe_rate may be 0, or UDP port {prober.port} filtered")
    raise Stop


def reverse_path(ladder, way_):
    ladder.failed("rp-filter", f"this host's rp_filter drops answers (it is {way_.reverse_path_filter()})",
                  f"sysctl net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{way_.dev}.rp_filter=0")


def switch_address(ladder):
    """Registration also comes from the switch's own address and from other hosts'."""
    dropped = way.reverse_path_drops()
    found = ladder.prober.request(flags=FROM_SWITCH)
    if found is not None:
        return ladder.passed(f"answers from the switch's own address arrive, too: {found.source}")
    if way.reverse_path_drops() > dropped:
        return reverse_path(ladder, ladder.way)
    return ladder.failed("filter-source", "answers from the switch's own address (10.255.0.0/16) do not arrive: the network filters sources",
                         "let the box's port send from other addresses than its own: no uRPF, IP source guard or port security there")


def tag(ladder):
    seen = ladder.first.tag
    if seen == UNTAGGED:
        return ladder.passed("frames reach the switch without a VLAN tag")
    ladder.failed("vlan-tag", f"frames reach the switch with a tag: VLAN {seen & 0xFFF}, priority {seen >> 13}; it drops all but probes",
                  f"let the switch port of the box send VLAN {seen & 0xFFF} untagged, or give the box an interface of that VLAN")
    raise Stop


def hops(ladder):
    seen = ladder.first
    own = ladder.way.mac()
    routers = 64 - seen.ttl
    ladder.passed(f"{routers} routers on the way; the switch sees " + ("this host's MAC address" if seen.mac == own else f"MAC address {seen.mac}"),
                  own_mac=own, seen_mac=seen.mac)


ROCE_OFF = ("on the box: cepheus fabric-test --box names the command; for mlx5: devlink dev param set pci/ADDRESS name enable_roce value false "
            "cmode driverinit && devlink dev reload pci/ADDRESS")


def box(ladder):
    """What the switch says about its own interface."""
    seen = ladder.first
    data = {"doubts": seen.doubts, "cores": seen.cores, "lost": seen.lost}
    if seen.doubts & MERGING:
        return ladder.failed("merging", "the box's interface joins UDP packets, and the switch drops joined ones", "on the box: ethtool -K INTERFACE "
                             "gro off, then restart cepheus-switch", **data)
    if seen.doubts & QUEUES:
        return ladder.failed("queues", "the box's thread may move among cores and transmit queues: copies overtake each other",
                             "on the box: cepheus fabric-test --box names the command, then restart cepheus-switch; or taskset -c CORE "
                             "cepheus-switch", **data)
    if seen.doubts & ROCE_ON:
        return None  # the next step
    return ladder.passed("the switch finds nothing wrong with its interface" + (f"; its thread has {seen.cores} cores" if seen.cores else ""), **data)


def roce_port(ladder):
    """The same to UDP port 4791, where data and feedback go."""
    found = ladder.prober.request(roce=True)
    if ladder.first.doubts & ROCE_ON:
        return ladder.failed("roce-on", f"the box's NIC has RoCE on: its hardware takes UDP port {ROCE_PORT} from the interface, so the switch sees "
                                        "no data", ROCE_OFF, arrived=found is not None)
    if found is not None:
        return ladder.passed(f"UDP port {ROCE_PORT} reaches the switch")
    return ladder.failed("roce-port", f"nothing to UDP port {ROCE_PORT} reaches the switch: a filter on the way drops it; the box's interface has "
                                      "no RoCE",
                         f"accept UDP to port {ROCE_PORT} on hosts, switches and routers on the way, and on the box")


def sizes(ladder):
    """Packets that may not be fragmented, there and back."""
    most, own = ladder.first.most_bytes, ladder.way.mtu()
    sizes_ = SIZES if ladder.helper is None else EMULATED_SIZES
    passing, wanted = 0, [size for size in sizes_ if size <= max(ladder.mtu + 64, sizes_[0])]
    for size in wanted:
        try:
            there = ladder.prober.request(length=size)
            back = there and ladder.prober.request(length=size, answer=size)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            return ladder.failed("mtu-host", f"{ladder.way.dev} has an MTU of {own}: packets of {size} bytes do not fit, so this host's groups have "
                                             "shorter ones",
                                 f"ip link set {ladder.way.dev} mtu {wanted[-1] + 50}; or, if shorter ones do, run this with --mtu 1024",
                                 largest=passing)
        if there is None and size > most:
            return ladder.failed("mtu-box", f"the box takes packets of at most {most} bytes, not of {size}, so groups have shorter ones",
                                 f"on the box: mtu = 4096 in [fabric] and an interface with MTU {wanted[-1] + 50}; or, if shorter ones do, "
                                 "run this with --mtu 1024",
                                 largest=passing)
        if there is None or back is None:
            limit = bisect(ladder, passing, size, back=there is not None)
            return ladder.failed("mtu-network", f"packets of more than {limit} bytes get lost {'towards' if there is None else 'back from'} the "
                                                f"switch, though {ladder.way.dev} has an MTU of {own} and the box takes {most}",
                                 f"set the MTU of every switch and router on the way to {wanted[-1] + 50} or more", largest=limit)
        passing = size
    return ladder.passed(f"{', '.join(map(str, wanted))} bytes, there and back, without fragments", largest=passing)


def bisect(ladder, passing, failing, back):
    """The largest packet that passes."""
    passing = max(passing, SIZE + IP_UDP + 20)
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if ladder.prober.request(length=middle, answer=middle if back else 0, tries=2) is None:
            failing = middle
        else:
            passing = middle
    return passing


def traffic_class(ladder):
    for tos in (*TRAFFIC_CLASSES, *([ladder.tos] if ladder.tos is not None else [])):
        found = ladder.prober.request(tos=tos)
        if found is None:
            return ladder.failed("tos-lost", f"packets with TOS {tos:#04x} (DSCP {tos >> 2}) get lost",
                                 "look at the policy of that DSCP on switches and routers on the way", tos=tos)
        for seen, where in ((found.tos, "the switch sees"), (found.tos_back, "its answer has")):
            if seen is None or seen == tos:
                continue
            if seen >> 2 != tos >> 2:
                return ladder.failed("tos-rewritten", f"DSCP {tos >> 2} is rewritten: {where} DSCP {seen >> 2}",
                                     "let every switch port on the way trust DSCP", tos=tos, arrived=seen)
            if seen & 3 != 3:
                return ladder.failed("ecn-erased", f"ECN bits {tos & 3} are changed: {where} {seen & 3}",
                                     "let switches and routers on the way leave ECN bits alone, except for marking", tos=tos, arrived=seen)
    return ladder.passed("DSCP and ECN bits arrive unchanged, there and back")


def box_losses(ladder):
    """Frames from and to this host that full rings of the box have cost so far."""
    found = ladder.prober.request()
    return ladder.first.lost if found is None else found.lost


def order(ladder):
    """A burst of probes: none may be lost, or overtake another."""
    prober, lost = ladder.prober, box_losses(ladder)
    payloads = [prober.datagram() for _ in range(BURST)]
    first = (prober.number - BURST + 1) & 0xFFFF
    for payload in payloads:
        prober.send(payload)
    answers = []
    while len(answers) < BURST and (found := prober.receive(prober.wait + BURST_SECONDS)):
        if (found.number - first) & 0xFFFF < BURST:
            answers.append(((found.number - first) & 0xFFFF, found.time_us))
    by_number = dict(answers)
    times = [by_number[n] for n in sorted(by_number)]
    overtaken = sum(a > b for a, b in zip(times, times[1:]))
    numbers = [n for n, _ in answers]
    overtaken_back = sum(a > b for a, b in zip(numbers, numbers[1:]))
    data = {"sent": BURST, "answered": len(by_number), "twice": len(answers) - len(by_number), "overtaken": overtaken,
            "overtaken_back": overtaken_back}
    if overtaken or overtaken_back:
        return ladder.failed("order", f"of {BURST} packets {overtaken} were overtaken towards the switch, and {overtaken_back} back",
                             "let one flow take one path and one queue: no spraying on switches; on the box, one transmit queue or a pinned "
                             "thread", **data)
    if data["twice"]:
        return ladder.failed("duplicates", f"{data['twice']} packets arrived twice: a loop, or a bond in mode broadcast",
                             "look at spanning tree and bonds on the way", **data)
    if len(by_number) < BURST and (grown := box_losses(ladder) - lost & 0xFFFFFFFF):
        return ladder.failed("slow-box", f"of {BURST} packets at once only {len(by_number)} were answered: full rings of the box cost {grown} frames",
                             "on the box: cepheus fabric-test --box, cepheusctl counters, ethtool -G; a faster box", lost=grown, **data)
    if len(by_number) < BURST:
        return ladder.failed("burst-loss", f"of {BURST} packets at once only {len(by_number)} were answered, and the box has lost none: a "
                                           "queue on the way is too short",
                             "ethtool -S and -G on this host and on the box, drops of switch ports on the way", **data)
    return ladder.passed(f"{BURST} packets at once, all answered in order", **data)


STEPS = (identity, route, answer, switch_address, tag, hops, box, roce_port, sizes, traffic_class, order)
