"""The HTML page about a run, for cepheus-run, which contains this file, and for the demo."""

import base64
import pathlib
import struct

REPORT_STYLE = """
:root { color-scheme: light dark; --ink: #20252b; --ground: #fff; --faint: #5b6570; --line: #c9ced5; --data: #0072b2; --back: #b35c00; --bad: #c00020; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --ground: #16191d; --faint: #a3adb8; --line: #4a525c; --data: #56b4e9;
  --back: #e69f00; --bad: #ff6b7d; } }
body { margin: 0 auto; max-width: 1000px; padding: 16px; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 32px; } code { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } img { max-width: 100%; min-width: 320px; max-height: 560px; } .faint { color: var(--faint); } .bad { color: var(--bad); }
table { border-collapse: collapse; } th, td { text-align: right; padding: 2px 14px 2px 0; } th:first-child, td:first-child { text-align: left; }
tr + tr > * { border-top: 1px solid var(--line); } th { font-weight: 600; }
.ladder text { fill: var(--ink); font: 12px sans-serif; } .ladder .life { stroke: var(--line); }
.ladder .data { stroke: var(--data); fill: var(--data); } .ladder .back { stroke: var(--back); fill: var(--back); }
.ladder .bad { stroke: var(--bad); fill: var(--bad); }
"""
ROCE_PORT = 4791
PCAP_MAGIC = 0xA1B23C4D  # nanoseconds
ACKNOWLEDGE, CNP = 0x11, 0x81
MOST_ARROWS = 60
PATHS_BY_NETWORK = ("eager lane", "bulk lane", "hosts", "network")


def escaped(text):
    return str(text).translate({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"})


def html_table(titles, rows):
    """`rows`: lists of texts."""
    line = lambda kind, cells: "<tr>" + "".join(f"<{kind}>{escaped(cell)}</{kind}>" for cell in cells) + "</tr>"  # noqa: E731
    return '<div class="scroll"><table>' + line("th", titles) + "".join(line("td", row) for row in rows) + "</table></div>"


def picture(svg, description):
    """A drawing as an image, so that its style does not change the page."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<div class="scroll"><img alt="{escaped(description)}" src="data:image/svg+xml;base64,{data}"></div>' if svg else ""


def bytes_text(count):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} B" if units[0] == "B" else f"{count:.1f} {units[0]}"


def size_text(hosts, switches):
    return f"{hosts} emulated host{'' if hosts == 1 else 's'}, {switches} switch{'' if switches == 1 else 'es'}"


def is_by_network(path):
    """Hosts may also exchange a broadcast point to point: then its reason says so."""
    return path["path"].split(": ")[-1] in PATHS_BY_NETWORK and not path["reason"].startswith("point to point")


def calls_section(jobs):
    """The data of `cepheusctl explain --json`: the path of calls, and each fallback with its reason."""
    parts = []
    for job in jobs:
        for one in job["communicators"]:
            calls = sum(path["calls"] for path in one["paths"])
            good = sum(path["calls"] for path in one["paths"] if is_by_network(path))
            parts.append(f"<p>{escaped(one['name'])} ({one['ranks']} ranks): {good} of {calls} calls by the network.</p>")
            parts.append(html_table(["path", "reason", "calls of each rank"], [[path["path"], path["reason"], path["calls"]] for path in one["paths"]]))
    return "".join(parts) or '<p class="bad">No program reported calls: coll/cepheus was not loaded, or MPI_Bcast not called.</p>'


def links_section(status):
    """Bytes per host's link, and how many copies of each byte the switches made."""
    ports = [port for switch in status["switches"] for port in switch["ports"] if port["kind"] == "host"]
    sent, delivered = (sum(port[key] for port in ports) for key in ("rx_payload_bytes", "tx_payload_bytes"))
    used = [port for port in ports if port["rx_payload_bytes"] or port["tx_payload_bytes"]]
    rows = [[port["name"], port["address"], bytes_text(port["rx_payload_bytes"]), bytes_text(port["tx_payload_bytes"]), port["in"]["dropped_loss"] +
             port["out"]["dropped_loss"]] for port in used]
    if sent == 0:
        return "<p>Nothing was sent over the fabric.</p>"
    return (f"<p>Hosts sent {bytes_text(sent)} of payload and received {bytes_text(delivered)}: the switches made {delivered / sent:.2f} "
            f"copies of each byte. By unicast the senders' links would transmit all {bytes_text(delivered)}.</p>" +
            html_table(["host", "address", "sent", "received", "frames lost on its link"], rows))


def read_pcap(path):
    """[(ns, frame)] of a capture that cepheus-switch made."""
    data = pathlib.Path(path).read_bytes()
    if len(data) < 24 or struct.unpack_from("<I", data)[0] != PCAP_MAGIC:
        raise ValueError(f"{path} is no capture of cepheus-switch")
    packets, at = [], 24
    while at + 16 <= len(data):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", data, at)
        packets.append((seconds * 10**9 + nanoseconds, data[at + 16:at + 16 + kept]))
        at += 16 + kept
    return packets


def roce_packet(frame):
    """(source, opcode, PSN, AETH syndrome or None), or None if it is another packet."""
    if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 17 or struct.unpack_from(">H", frame, 36)[0] != ROCE_PORT:
        return None
    opcode, psn = frame[42], int.from_bytes(frame[51:54], "big")
    syndrome = frame[54] if opcode == ACKNOWLEDGE and len(frame) > 54 else None
    return ".".join(map(str, frame[26:30])), opcode, psn, syndrome


def arrow_label(opcode, psn, syndrome):
    if opcode == CNP:
        return "CNP", "bad"
    if syndrome is None:
        return f"data {psn}", "data"
    if syndrome >> 5 == 0:
        return f"ACK {psn}", "back"
    return (f"RNR NAK {psn}" if syndrome >> 5 == 1 else f"NAK {psn}"), "bad"


def ladder_section(directory, addresses):
    """The first packets of groups between hosts and the switches, by time. `addresses`: {host's name: its address}."""
    seen = []
    for host, address in addresses.items():
        path = pathlib.Path(directory) / f"{host}.pcap"
        for ns, frame in read_pcap(path) if path.exists() else []:
            packet = roce_packet(frame)
            if packet is not None:
                seen.append((ns, host, packet[0] == address, *arrow_label(*packet[1:])))
    seen.sort(key=lambda each: each[0])
    if not seen:
        return "<p>No packet of a group was captured.</p>"
    shown = seen[:MOST_ARROWS]
    hosts = [host for host in addresses if any(each[1] == host for each in seen)]
    # The switches' line comes after the first host's, which is mostly the root.
    columns = {host: 90 + 150 * (i if i == 0 else i + 1) for i, host in enumerate(hosts)}
    fabric, width, height = 240, 90 + 150 * len(hosts) + 90, 60 + 20 * len(shown) + 20
    lines = [f'<line class="life" x1="{x}" x2="{x}" y1="34" y2="{height - 10}"/><text x="{x}" y="24" text-anchor="middle">{escaped(name)}</text>'
             for name, x in [*columns.items(), ("switches", fabric)]]
    for row, (ns, host, inward, label, kind) in enumerate(shown):
        y = 56 + 20 * row
        x1, x2 = (columns[host], fabric) if inward else (fabric, columns[host])
        back = 8 if x2 > x1 else -8
        lines.append(f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
                     f'<path class="{kind}" d="M{x2} {y} l{-back} -4 v8 z"/>'
                     f'<text x="{columns[host] + (22 if columns[host] < fabric else -22)}" y="{y - 4}" '
                     f'text-anchor="{"start" if columns[host] < fabric else "end"}">{label}</text>'
                     f'<text x="4" y="{y + 4}">{(ns - shown[0][0]) / 1000:.0f} us</text>')
    left = f" {len(seen) - len(shown)} more are not shown." if len(seen) > len(shown) else ""
    return (f'<p>Each line is a packet as it passed a host\'s port, by time. Data leaves its source once and goes to all others; their '
            f'acknowledgements (ACK, with the packet number, PSN) become one.{left}</p>'
            f'<div class="scroll"><svg class="ladder" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="packet ladder">{"".join(lines)}</svg></div>')


def report_page(title, facts, sections):
    """One page without outside resources. `facts`: [(name, text)]; `sections`: [(heading, HTML)]."""
    listed = "".join(f"<p><b>{escaped(name)}</b> <code>{escaped(text)}</code></p>" for name, text in facts)
    body = "".join(f"<section><h2>{escaped(heading)}</h2>{content}</section>" for heading, content in sections if content)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{escaped(title)}</title><style>{REPORT_STYLE}</style></head>'
            f"<body><h1>{escaped(title)}</h1>{listed}{body}</body></html>\n")
