"""Second opinion on the ICRC: scapy's RoCE layer over packets of ours and over the kernel's.

usage: icrc_scapy_test.py PACKET_WRITER WORK_DIRECTORY CAPTURE...
"""

import pathlib
import subprocess
import sys

try:
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import UDP
    from scapy.utils import rdpcap
except ImportError as error:
    print(f"SKIPPED: scapy is missing ({error}); install python3-scapy to check the ICRC against it")
    sys.exit(77)


def check(path):
    """Compares the last four bytes of every packet with scapy's; returns how many packets there were."""
    packets = rdpcap(str(path))
    for number, packet in enumerate(packets, 1):
        carried = bytes(packet)[-4:]
        if BTH not in packet:
            sys.exit(f"{path}: packet {number} is not RoCE to scapy")
        computed = packet[BTH].compute_icrc(bytes(packet[BTH]))
        if computed != carried:
            sys.exit(f"{path}: packet {number}: carries {carried.hex()}, scapy says {computed.hex()}")
    print(f"{path}: {len(packets)} packets agree")
    return len(packets)


def main():
    writer, directory, *captures = sys.argv[1:]
    ours = pathlib.Path(directory) / "icrc_packets.pcap"
    subprocess.run([writer, str(ours)], check=True)
    counts = [check(path) for path in [ours, *captures]]
    if min(counts) == 0:
        sys.exit("a capture without packets proves nothing")


main()
