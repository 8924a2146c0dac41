// Splitting goes by layers: Ethernet, IPv4, UDP, BTH. A frame that is not IPv4 has only Ethernet's
// header; options and fragments are opaque behind it. Padding of Ethernet is cut off by IPv4's
// length.
//
// Refused: lengths of IPv4 and UDP that disagree, an unknown RoCE opcode, a packet that is too
// short for its extension headers, pad and ICRC. Nothing is copied but headers; the payload stays
// in `data`.
#include "wire/frame.h"

#include "wire/bth.h"
#include "wire/byte_order.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::wire {
namespace {

constexpr std::size_t kMaxPayload = 0xFFFF;  // Frame::payload_len

// Lengths in bytes, and whether an ICRC ends the packet.
struct FrameParts {
  std::size_t header = 0;
  std::size_t total = 0;  // without Ethernet padding
  bool roce = false;
};

// Engines do not serve IPv4 with options and fragments: all behind Ethernet is opaque to them.
bool is_opaque_ipv4(const std::uint8_t* ip) {
  const bool options = ip[0] >> 4 == 4 && (ip[0] & 0xF) > 5;
  const bool fragment = (load_be16(ip + 6) & 0x3FFF) != 0;
  return options || fragment;
}

std::optional<FrameParts> split_roce(std::span<const std::uint8_t> packet) {
  const auto bth = Bth::parse(packet.subspan(kBthOffset));
  if (!bth) return std::nullopt;
  const OpcodeInfo& info = opcode_info(bth->opcode);
  const std::size_t header = kExtensionOffset + info.extension_bytes;
  if (!info.known || packet.size() < header + bth->pad_count + kIcrcSize) return std::nullopt;
  return FrameParts{header, packet.size(), true};
}

std::optional<FrameParts> split_ipv4(std::span<const std::uint8_t> data) {
  const auto ip_bytes = data.subspan(kIpOffset);
  if (ip_bytes.size() < Ipv4Header::kSize) return std::nullopt;
  const std::size_t total = kIpOffset + load_be16(ip_bytes.data() + 2);
  if (total < kUdpOffset || total > data.size()) return std::nullopt;
  if (is_opaque_ipv4(ip_bytes.data())) return FrameParts{kIpOffset, total};

  const auto ip = Ipv4Header::parse(ip_bytes);
  if (!ip) return std::nullopt;
  if (ip->protocol != Ipv4Header::kUdp) return FrameParts{kUdpOffset, total};

  const auto packet = data.first(total);
  const auto udp = Udp::parse(packet.subspan(kUdpOffset));
  if (!udp || udp->length != total - kUdpOffset) return std::nullopt;
  if (udp->destination_port != kRoceUdpPort) return FrameParts{kBthOffset, total};
  return split_roce(packet);
}

std::optional<FrameParts> split(std::span<const std::uint8_t> data) {
  const auto ethernet = Ethernet::parse(data);
  if (!ethernet) return std::nullopt;
  if (ethernet->ether_type == Ethernet::kIpv4) return split_ipv4(data);
  if (data.size() - Ethernet::kSize > kMaxPayload) return std::nullopt;
  return FrameParts{Ethernet::kSize, data.size()};
}

}  // namespace

std::optional<Frame> Frame::from_bytes(std::span<const std::uint8_t> data, BufferRef buffer) {
  const auto parts = split(data);
  if (!parts) return std::nullopt;
  std::optional<Frame> frame(std::in_place);
  frame->header_len = static_cast<std::uint16_t>(parts->header);
  std::memcpy(frame->bytes.data(), data.data(), parts->header);
  std::size_t end = parts->total;
  if (parts->roce) {
    end -= kIcrcSize;
    frame->icrc = __builtin_bswap32(load_be32(data.data() + end));  // little-endian
    frame->icrc_state = Icrc::kPresent;
  }
  frame->set_external_payload(data.subspan(parts->header, end - parts->header), buffer);
  return frame;
}

std::size_t Frame::to_bytes(std::span<std::uint8_t> out) const {
  const std::size_t n = size();
  if (n > out.size()) return 0;
  std::memcpy(out.data(), bytes.data(), header_len);
  const auto data = payload();
  if (!data.empty()) std::memcpy(out.data() + header_len, data.data(), data.size());
  if (icrc_state != Icrc::kNone) {
    const bool deferred = icrc_state == Icrc::kDeferred;
    store_be32(out.data() + header_len + payload_len,
               __builtin_bswap32(deferred ? compute_icrc(*this) : icrc));
  }
  return n;
}

}  // namespace cepheus::wire
