// parse() goes through BTH and the extension headers that the opcode has, in wire order. Refused:
// lengths of IPv4, UDP and frame that differ, a header of another size than the opcode's, a pad
// larger than the payload. Ports and addresses are not judged.
//
// emit() computes lengths and leaves the ICRC deferred; only other datagrams get a UDP checksum
// (RFC 768). The object that parse() returns is built in place and never copied.
#include "wire/roce.h"

#include <cassert>

#include "wire/icrc.h"

namespace cepheus::wire {
namespace {

// The next extension header, if there is one. Precondition: its bytes are present.
template <typename Header>
void take(std::span<const std::uint8_t>& data, bool present, Header& header) {
  if (!present) return;
  header = *Header::parse(data);
  data = data.subspan(Header::kSize);
}

template <typename Header>
void put(std::uint8_t*& at, bool present, const Header& header) {
  if (!present) return;
  header.emit(std::span<std::uint8_t, Header::kSize>(at, Header::kSize));
  at += Header::kSize;
}

// RFC 768: ones' complement sum over pseudo header, UDP header without its checksum, and data.
std::uint16_t udp_checksum(const Ipv4Header& ip, const Udp& udp,
                           std::span<const std::uint8_t> data) {
  const std::uint64_t sum = std::uint64_t{ip.source.value()} + ip.destination.value() +
                            Ipv4Header::kUdp + udp.length + udp.source_port + udp.destination_port +
                            udp.length + ipv4::sum_words(data);
  const std::uint16_t checksum = ipv4::finish_checksum(sum);
  return checksum == 0 ? 0xFFFF : checksum;  // 0 means "none"
}

}  // namespace

bool UdpHeaders::read(const Frame& frame) {
  const auto header = frame.header();
  return header.size() >= kBthOffset && ethernet.read(header) &&
         ip.read(header.subspan(kIpOffset)) && udp.read(header.subspan(kUdpOffset)) &&
         ethernet.ether_type == Ethernet::kIpv4 && ip.protocol == Ipv4Header::kUdp;
}

// The rest, behind the UDP header.
bool RoceHeaders::read_transport(const Frame& frame) {
  const auto header = frame.header();
  if (header.size() < kExtensionOffset || frame.icrc_state == Icrc::kNone ||
      udp.destination_port != kRoceUdpPort || !bth.read(header.subspan(kBthOffset))) {
    return false;
  }
  const OpcodeInfo& info = opcode_info(bth.opcode);
  if (!info.known || header.size() != kExtensionOffset + info.extension_bytes ||
      kIpOffset + ip.total_length != frame.size() ||
      udp.length + Ipv4Header::kSize != ip.total_length || bth.pad_count > frame.payload_len) {
    return false;
  }
  if (info.extension_bytes == 0) return true;
  auto rest = header.subspan(kExtensionOffset);
  take(rest, info.deth, deth);
  take(rest, info.reth, reth);
  take(rest, info.atomic_eth, atomic);
  take(rest, info.aeth, aeth);
  take(rest, info.atomic_ack_eth, atomic_ack);
  take(rest, info.imm, imm);
  take(rest, info.ieth, ieth);
  return true;
}

// Both return their one object, so that it is constructed at the caller's (copy elision).
std::optional<RoceHeaders> RoceHeaders::parse(const Frame& frame) {
  std::optional<RoceHeaders> h(std::in_place);
  if (!h->read(frame) || !h->read_transport(frame)) h.reset();
  return h;
}

std::optional<RoceHeaders> RoceHeaders::parse(const Frame& frame, const UdpHeaders& outer) {
  std::optional<RoceHeaders> h(std::in_place);
  static_cast<UdpHeaders&>(*h) = outer;
  if (!h->read_transport(frame)) h.reset();
  return h;
}

void RoceHeaders::emit(Frame& frame, std::size_t payload_bytes) const {
  const OpcodeInfo& info = opcode_info(bth.opcode);
  assert(info.known);
  const std::size_t header_len = kExtensionOffset + info.extension_bytes;
  const std::size_t udp_length = header_len - kUdpOffset + payload_bytes + kIcrcSize;
  assert(udp_length + Ipv4Header::kSize <= 0xFFFF);

  Ipv4Header ip_out = ip;
  ip_out.total_length = static_cast<std::uint16_t>(Ipv4Header::kSize + udp_length);
  Udp udp_out = udp;
  udp_out.length = static_cast<std::uint16_t>(udp_length);

  std::uint8_t* at = frame.bytes.data();
  put(at, true, ethernet);
  put(at, true, ip_out);
  put(at, true, udp_out);
  put(at, true, bth);
  put(at, info.deth, deth);
  put(at, info.reth, reth);
  put(at, info.atomic_eth, atomic);
  put(at, info.aeth, aeth);
  put(at, info.atomic_ack_eth, atomic_ack);
  put(at, info.imm, imm);
  put(at, info.ieth, ieth);
  if (bth.opcode == Opcode::kCnp) std::memset(at, 0, info.extension_bytes);
  frame.header_len = static_cast<std::uint16_t>(header_len);
  frame.icrc_state = Icrc::kDeferred;
}

std::optional<UdpDatagram> UdpDatagram::parse(const Frame& frame) {
  UdpHeaders outer;
  return outer.read(frame) ? parse(frame, outer) : std::nullopt;
}

std::optional<UdpDatagram> UdpDatagram::parse(const Frame& frame, const UdpHeaders& outer) {
  const Udp& udp = outer.udp;
  if (frame.header_len != kBthOffset || frame.icrc_state != Icrc::kNone ||
      udp.destination_port == kRoceUdpPort || kIpOffset + outer.ip.total_length != frame.size() ||
      udp.length + Ipv4Header::kSize != outer.ip.total_length) {
    return std::nullopt;
  }
  if (udp.checksum != 0 && udp.checksum != udp_checksum(outer.ip, udp, frame.payload())) {
    return std::nullopt;
  }
  return UdpDatagram{outer};
}

void UdpDatagram::emit(Frame& frame, std::span<const std::uint8_t> payload,
                       BufferRef buffer) const {
  const std::size_t udp_length = Udp::kSize + payload.size();
  assert(udp_length + Ipv4Header::kSize <= 0xFFFF);
  Ipv4Header ip_out = ip;
  ip_out.total_length = static_cast<std::uint16_t>(Ipv4Header::kSize + udp_length);
  ip_out.protocol = Ipv4Header::kUdp;
  Udp udp_out = udp;
  udp_out.length = static_cast<std::uint16_t>(udp_length);
  udp_out.checksum = udp_checksum(ip_out, udp_out, payload);

  std::uint8_t* at = frame.bytes.data();
  put(at, true, ethernet);
  put(at, true, ip_out);
  put(at, true, udp_out);
  frame.header_len = kBthOffset;
  frame.icrc_state = Icrc::kNone;
  if (frame.payload_fits_inline(payload.size())) {
    frame.set_inline_payload(payload);
  } else {
    frame.set_external_payload(payload, buffer);
  }
}

}  // namespace cepheus::wire
