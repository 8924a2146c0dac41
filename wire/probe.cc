// A datagram may be longer than its stated length, which must be that of PROBE with or without an
// ORDER. An ORDER of an unknown kind refuses the whole message. looks_like_probe() judges raw
// headers alone, for ports that let no other frame with a VLAN tag through.
#include "wire/probe.h"

#include <algorithm>

#include "wire/byte_order.h"
#include "wire/roce.h"

namespace cepheus::wire {
namespace {

constexpr std::uint8_t kProbeRecord = 6, kOrderRecord = 7;
constexpr std::size_t kBytesInWord = 4;

std::optional<OrderRecord> parse_order(const std::uint8_t* p) {
  if (p[0] != kOrderRecord || p[1] != OrderRecord::kSize / kBytesInWord || p[3] != 0 ||
      p[2] > static_cast<std::uint8_t>(OrderKind::kCnp)) {
    return std::nullopt;
  }
  return OrderRecord{static_cast<OrderKind>(p[2]),
                     load_be16(p + 4),
                     load_be16(p + 6),
                     load_be32(p + 8),
                     load_be32(p + 12),
                     load_be32(p + 16),
                     load_be32(p + 20),
                     load_be32(p + 24),
                     load_be32(p + 28),
                     p[32],
                     p[33],
                     load_be16(p + 34)};
}

void emit_order(const OrderRecord& order, std::uint8_t* p) {
  p[0] = kOrderRecord;
  p[1] = OrderRecord::kSize / kBytesInWord;
  p[2] = static_cast<std::uint8_t>(order.kind);
  p[3] = 0;
  store_be16(p + 4, order.number);
  store_be16(p + 6, order.done);
  store_be32(p + 8, order.repeat_us);
  store_be32(p + 12, order.nak_us);
  store_be32(p + 16, order.packets);
  store_be32(p + 20, order.repeats);
  store_be32(p + 24, order.naks);
  store_be32(p + 28, order.lost);
  p[32] = order.fill;
  p[33] = order.tos;
  store_be16(p + 34, order.rnr_naks);
}

}  // namespace

std::optional<Probe> Probe::parse(std::span<const std::uint8_t> data) {
  constexpr std::size_t kBare = MrpHeader::kSize + kRecord;
  const auto header = MrpHeader::parse(data);
  if (!header || (header->type != MrpType::kProbe && header->type != MrpType::kProbed) ||
      data.size() < kBare) {
    return std::nullopt;
  }
  const std::size_t length = load_be16(data.data() + 10);
  if (length > data.size() || (length != kBare && length != kBare + OrderRecord::kSize)) {
    return std::nullopt;
  }
  const std::uint8_t* p = data.data() + MrpHeader::kSize;
  if (p[0] != kProbeRecord || p[1] != kRecord / kBytesInWord) {
    return std::nullopt;
  }
  Probe probe;
  probe.header = *header;
  probe.reply_port = load_be16(p + 2);
  probe.answer_bytes = load_be16(p + 4);
  probe.seen.length = load_be16(p + 6);
  probe.seen.tos = p[8];
  probe.seen.ttl = p[9];
  probe.seen.vlan_tag = load_be16(p + 10);
  std::copy_n(p + 12, probe.seen.source_mac.octets.size(), probe.seen.source_mac.octets.begin());
  probe.seen.source_port = load_be16(p + 18);
  probe.seen.time_us = load_be64(p + 20);
  probe.seen.destination_port = load_be16(p + 28);
  probe.seen.largest = load_be16(p + 30);
  probe.seen.doubts = p[32];
  probe.seen.cores = p[33];
  probe.seen.lost = load_be32(p + 36);
  if (length == kBare) return probe;
  probe.order = parse_order(p + kRecord);
  return probe.order ? std::optional(probe) : std::nullopt;
}

std::size_t Probe::emit(std::span<std::uint8_t> out) const {
  if (out.size() < size()) return 0;
  header.emit(out.first<MrpHeader::kSize>());
  store_be16(out.data() + 10, static_cast<std::uint16_t>(size()));
  std::uint8_t* p = out.data() + MrpHeader::kSize;
  p[0] = kProbeRecord;
  p[1] = kRecord / kBytesInWord;
  store_be16(p + 2, reply_port);
  store_be16(p + 4, answer_bytes);
  store_be16(p + 6, seen.length);
  p[8] = seen.tos;
  p[9] = seen.ttl;
  store_be16(p + 10, seen.vlan_tag);
  std::ranges::copy(seen.source_mac.octets, p + 12);
  store_be16(p + 18, seen.source_port);
  store_be64(p + 20, seen.time_us);
  store_be16(p + 28, seen.destination_port);
  store_be16(p + 30, seen.largest);
  p[32] = seen.doubts;
  p[33] = seen.cores;
  store_be16(p + 34, 0);
  store_be32(p + 36, seen.lost);
  if (order) emit_order(*order, p + kRecord);
  return size();
}

bool looks_like_probe(std::span<const std::uint8_t> frame) {
  if (frame.size() < kBthOffset + MrpHeader::kSize) return false;
  const auto ip = Ipv4Header::parse(frame.subspan(kIpOffset));
  return ip && ip->protocol == Ipv4Header::kUdp &&
         load_be16(frame.data() + kUdpOffset + 2) != kRoceUdpPort &&
         frame[kBthOffset] == MrpHeader::kVersion &&
         frame[kBthOffset + 1] == static_cast<std::uint8_t>(MrpType::kProbe);
}

}  // namespace cepheus::wire
