// Any bytes: a packet that parses must come back unchanged, and its values must survive emit and
// parse.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/byte_order.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace {

using namespace cepheus::wire;
using Packet = std::vector<std::uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

bool same(const RoceHeaders& a, const RoceHeaders& b) {
  return a.ethernet == b.ethernet && a.ip == b.ip && a.udp == b.udp && a.bth == b.bth &&
         a.deth == b.deth && a.reth == b.reth && a.atomic == b.atomic && a.aeth == b.aeth &&
         a.atomic_ack == b.atomic_ack && a.imm == b.imm && a.ieth == b.ieth;
}

void check_roce(const Frame& frame) {
  const auto headers = RoceHeaders::parse(frame);
  require(headers.has_value());  // from_bytes() guarantees it
  Frame again = frame;
  headers->emit(again, frame.payload().size());
  const auto parsed = RoceHeaders::parse(again);
  require(parsed.has_value() && same(*headers, *parsed));
  require(patch_icrc(compute_icrc(frame), frame.header(), again.header(), frame.payload_len) ==
          compute_icrc(again));
}

void check_udp(const Frame& frame) {
  const auto datagram = UdpDatagram::parse(frame);
  if (!datagram) return;
  Frame again;
  datagram->emit(again, frame.payload());
  const auto parsed = UdpDatagram::parse(again);
  require(parsed.has_value() && parsed->ip == datagram->ip &&
          parsed->ethernet == datagram->ethernet);
}

void check(const Packet& packet) {
  const auto frame = Frame::from_bytes(packet);
  if (!frame) return;
  Packet out(frame->size());
  require(frame->to_bytes(out) == out.size() && out.size() <= packet.size());
  require(std::equal(out.begin(), out.end(), packet.begin()));
  require(Frame::from_bytes(out).has_value());
  if (frame->icrc_state == Icrc::kPresent) {
    check_roce(*frame);
  } else {
    check_udp(*frame);
  }
}

// A fuzzer does not find checksums: this computes those for the fields that the fuzzer found.
void repair(Packet& packet) {
  if (packet.size() < kExtensionOffset || packet.size() > 0xFFFF) return;
  store_be16(packet.data() + 12, Ethernet::kIpv4);
  std::uint8_t* ip = packet.data() + kIpOffset;
  ip[0] = 0x45;
  store_be16(ip + 2, static_cast<std::uint32_t>(packet.size() - kIpOffset));
  store_be16(ip + 6, 0x4000);
  ip[9] = Ipv4Header::kUdp;
  store_be16(ip + 10, ipv4_checksum(
                          std::span<const std::uint8_t, Ipv4Header::kSize>(ip, Ipv4Header::kSize)));
  std::uint8_t* udp = packet.data() + kUdpOffset;
  if ((udp[0] & 1) != 0) store_be16(udp + 2, kRoceUdpPort);
  store_be16(udp + 4, static_cast<std::uint32_t>(packet.size() - kUdpOffset));
  if ((udp[0] & 2) != 0) store_be16(udp + 6, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Packet packet(data, data + size);
  check(packet);
  repair(packet);
  check(packet);
  return 0;
}
