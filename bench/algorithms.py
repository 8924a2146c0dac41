"""Open MPI's broadcast algorithms (coll/tuned), a circulant graph of our own, and the least time that each and Cepheus can take."""

import math

CIRCULANT = "circulant"  # mpi_bcast's own, by MPI's point-to-point messages (circulant_broadcast.h)

# Name: (coll/tuned's number, or mpi_bcast's; takes segments)
ALGORITHMS = {
    "linear": (1, False),
    "chain": (2, True),
    "pipeline": (3, True),
    "binomial": (6, True),
    "knomial": (7, True),
    "scatter_allgather": (8, False),
    CIRCULANT: (-1, True),
}
CHAIN_FANOUT = 2  # with one it is the pipeline
KNOMIAL_RADIX = 4  # coll/tuned's default

PACKET = 4096
# Ethernet, IPv4, UDP, BTH and ICRC around each packet's payload.
PACKET_OVERHEAD = 14 + 20 + 8 + 12 + 4


class Link:
    """Serialisation and propagation of one host's link, each way; rate in bits per microsecond, delay in microseconds."""

    def __init__(self, rate, delay):
        self.rate, self.delay = rate, delay

    def serialise(self, size):
        packets = max(1, math.ceil(size / PACKET))
        return (size + packets * PACKET_OVERHEAD) * 8 / self.rate

    def hop(self, size):
        """Time of a message beyond its serialisation by the sender: two links and a stored packet."""
        return 2 * self.delay + self.serialise(min(size, PACKET))


def children_of_root(algorithm, hosts):
    if algorithm == "linear":
        return hosts - 1
    if algorithm == "binomial":
        return math.ceil(math.log2(hosts))
    if algorithm == "chain":
        return min(CHAIN_FANOUT, hosts - 1)
    if algorithm == "knomial":
        count, step = 0, 1
        while step < hosts:
            count += sum(1 for j in range(1, KNOMIAL_RADIX) if j * step < hosts)
            step *= KNOMIAL_RADIX
        return count
    return 1


def circulant_hops(hosts):
    """Hops to the farthest host: the most skips that add up to a rank. Each skip is half of the next, rounded up."""
    skips = [hosts]
    while skips[-1] > 1:
        skips.append((skips[-1] + 1) // 2)
    hops = [0]
    for rank in range(1, hosts):
        hops.append(hops[rank - next(skip for skip in skips if skip <= rank)] + 1)
    return max(hops)


def depth(algorithm, hosts):
    if algorithm == "binomial":
        return math.ceil(math.log2(hosts))
    if algorithm == "chain":
        return math.ceil((hosts - 1) / CHAIN_FANOUT)
    if algorithm == "knomial":
        return math.ceil(math.log(hosts, KNOMIAL_RADIX))
    return hosts - 1 if algorithm == "pipeline" else 1


def shaped_bound(algorithm, size, segment, hosts, link):
    """Microseconds until the last host has everything, links being the only limit (alpha-beta model, full duplex)."""
    if algorithm == "cepheus":
        return link.serialise(size) + link.hop(size)
    if algorithm == "scatter_allgather":
        steps = 2 * math.ceil(math.log2(hosts))
        return 2 * (hosts - 1) / hosts * link.serialise(size) + steps * link.hop(size / hosts)
    fanout, levels = children_of_root(algorithm, hosts), depth(algorithm, hosts)
    if algorithm == "linear":
        return fanout * link.serialise(size) + link.hop(size)
    part = segment if 0 < segment < size else size
    if algorithm == CIRCULANT:
        rounds, hops = math.ceil(math.log2(hosts)), circulant_hops(hosts)
        # The root sends in each round. The last block needs its hops one after the other.
        return link.serialise(size) + max((rounds - 1) * link.serialise(part) + link.hop(part),
                                          (hops - 1) * link.serialise(part) + hops * link.hop(part))
    if algorithm in ("chain", "pipeline"):
        return fanout * link.serialise(size) + (levels - 1) * link.serialise(part) + levels * link.hop(part)
    if part < size:  # a tree: the root's link, then the last segment's last hop
        return fanout * link.serialise(size) + link.hop(part)
    return levels * (link.serialise(size) + link.hop(size)) if algorithm == "binomial" else (
        fanout * link.serialise(size) + link.hop(size))


def copies(algorithm, hosts):
    """Times that the message is copied in memory, all hosts together: out of and into a program's buffers."""
    return hosts if algorithm == "cepheus" else 2 * (hosts - 1)


def reduction_copies(hosts):
    """Times that an allreduce in the network passes over a vector: each host's copy out and in, and the switch adds each to the sum."""
    return 3 * hosts
