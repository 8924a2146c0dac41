// Writes packets of ours into a capture for another implementation to check (icrc_scapy_test.py):
// every opcode, payloads up to the largest MTU, computed and patched ICRCs.
#include <pcap/pcap.h>

#include <cstdio>
#include <random>
#include <vector>

#include "wire/icrc.h"
#include "wire/roce.h"

namespace {

using namespace cepheus::wire;

RoceHeaders random_headers(Opcode opcode, std::mt19937& random) {
  RoceHeaders h;
  h.ip.tos = static_cast<std::uint8_t>(random());
  h.ip.ttl = static_cast<std::uint8_t>(random());
  h.ip.identification = static_cast<std::uint16_t>(random());
  h.ip.source = Ipv4(10, 0, 0, static_cast<std::uint8_t>(random()));
  h.ip.destination = Ipv4(198, 18, 0, static_cast<std::uint8_t>(random()));
  h.udp.source_port = static_cast<std::uint16_t>(0xC000 | (random() & 0x3FFF));
  h.bth.opcode = opcode;
  h.bth.solicited = random() % 2 != 0;
  h.bth.fecn = random() % 2 != 0;
  h.bth.becn = random() % 2 != 0;
  h.bth.destination_qp = Qpn(static_cast<std::uint32_t>(random()));
  h.bth.ack_request = random() % 2 != 0;
  h.bth.psn = Psn(static_cast<std::uint32_t>(random()));
  h.deth = {static_cast<std::uint32_t>(random()), Qpn(static_cast<std::uint32_t>(random()))};
  h.reth = {random() * std::uint64_t{0x100000001}, static_cast<std::uint32_t>(random()), 4096};
  h.aeth.msn = static_cast<std::uint32_t>(random()) & 0xFFFFFF;
  h.imm = {static_cast<std::uint32_t>(random())};
  return h;
}

// A frame with a computed ICRC, or with one that was computed for other headers and then patched.
Frame sealed_frame(Opcode opcode, std::span<const std::uint8_t> payload, bool patched,
                   std::mt19937& random) {
  Frame frame;
  frame.bytes.fill(0x3C);
  random_headers(opcode, random).emit(frame, payload.size());
  frame.set_external_payload(payload, kNoBuffer);
  seal_icrc(frame);
  if (!patched) return frame;
  Frame rewritten = frame;
  random_headers(opcode, random).emit(rewritten, payload.size());
  rewritten.icrc = patch_icrc(frame.icrc, frame.header(), rewritten.header(), payload.size());
  rewritten.icrc_state = Icrc::kPresent;
  return rewritten;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CAPTURE\n", argv[0]);
    return 2;
  }
  pcap_t* const format = pcap_open_dead(DLT_EN10MB, 65535);
  pcap_dumper_t* const dump = pcap_dump_open(format, argv[1]);
  if (dump == nullptr) {
    std::fprintf(stderr, "%s\n", pcap_geterr(format));
    return 1;
  }
  std::mt19937 random(20240131);
  std::vector<std::uint8_t> data(4096);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
  for (int i = 0; i < 256; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (!opcode_info(opcode).known) continue;
    for (const std::size_t size : {0, 4, 64, 252, 1024, 4096}) {
      for (const bool patched : {false, true}) {
        const Frame frame = sealed_frame(opcode, std::span(data).first(size), patched, random);
        std::vector<std::uint8_t> bytes(frame.size());
        frame.to_bytes(bytes);
        pcap_pkthdr header{};
        header.caplen = header.len = static_cast<bpf_u_int32>(bytes.size());
        pcap_dump(reinterpret_cast<u_char*>(dump), &header, bytes.data());
      }
    }
  }
  const bool written = pcap_dump_flush(dump) == 0;
  pcap_dump_close(dump);
  pcap_close(format);
  return written ? 0 : 1;
}
