// After the SENDER record come receivers, then regions: a receiver behind a region is malformed. A
// region belongs to the receiver with its host address. Unknown records refuse the message,
// optional ones included. The two reserved bytes must be 0. The path MTU travels in units of 256
// bytes, so a remainder is lost.
#include "wire/sender_group.h"

#include <algorithm>
#include <utility>

#include "wire/byte_order.h"

namespace cepheus::wire {
namespace {

constexpr std::uint8_t kSenderRecordType = 4;

bool is_of_sender_groups(MrpType type) {
  switch (type) {
    case MrpType::kInstall:
    case MrpType::kInstalled:
    case MrpType::kRemove:
    case MrpType::kQuery:
    case MrpType::kReport:
    case MrpType::kReject:
      return true;
    default:
      return false;
  }
}

// Parses the record at the beginning of `records`; its size, or 0 if it is malformed.
std::size_t take_record(SenderGroupMessage& message, std::span<const std::uint8_t> records) {
  if (records[0] == MrpMember::kRecordType) {
    const auto member = MrpMember::parse(records);
    if (!member || message.region_count > 0 || !message.add(*member)) return 0;
    return MrpMember::kSize;
  }
  if (records[0] != MrpRegion::kRecordType) return 0;
  const auto read = MrpRegion::parse(records);
  if (!read) return 0;
  const auto owner = std::ranges::find(message.list(), read->host, &MrpMember::host);
  if (owner == message.list().end()) return 0;
  const auto number = static_cast<std::size_t>(owner - message.list().begin());
  return message.add_region(number, read->region) ? MrpRegion::kSize : 0;
}

}  // namespace

bool SenderGroupMessage::add(const MrpMember& receiver) {
  const bool is_there = std::ranges::find(list(), receiver.host, &MrpMember::host) != list().end();
  if (is_there || receiver_count == kMaxReceivers) return false;
  receivers[receiver_count++] = receiver;
  return true;
}

bool SenderGroupMessage::add_region(std::size_t receiver, const MrpRegion& region) {
  if (region_count == kMaxRegions) return false;
  regions[region_count++] = {static_cast<std::uint8_t>(receiver), region};
  return true;
}

void SenderGroupMessage::remove(std::size_t receiver) {
  const auto gone = receivers.begin() + static_cast<std::ptrdiff_t>(receiver);
  std::move(gone + 1, receivers.begin() + static_cast<std::ptrdiff_t>(receiver_count--), gone);
  const auto all = std::span(regions).first(std::exchange(region_count, 0));
  for (const Region& each : all) {
    if (each.receiver == receiver) continue;
    add_region(each.receiver - (each.receiver > receiver ? 1u : 0u), each.region);
  }
}

std::optional<SenderGroupMessage> SenderGroupMessage::parse(std::span<const std::uint8_t> data) {
  const auto header = MrpHeader::parse(data);
  constexpr std::size_t kBefore = MrpHeader::kSize + SenderGroupMessage::kSenderRecord;
  if (!header || !is_of_sender_groups(header->type) || data.size() < kBefore ||
      data.size() > MrpMessage::kMaxSize || data.size() != load_be16(data.data() + 10)) {
    return std::nullopt;
  }
  const std::uint8_t* p = data.data() + MrpHeader::kSize;
  if (p[0] != kSenderRecordType || p[1] != SenderGroupMessage::kSenderRecord / 4) {
    return std::nullopt;
  }
  const std::uint8_t reserved = p[8] | p[12];
  if (reserved != 0) return std::nullopt;
  std::optional<SenderGroupMessage> message(std::in_place);
  message->header = *header;
  message->control_port = load_be16(p + 2);
  message->addressed = Ipv4(load_be32(p + 4));
  message->virtual_qpn = Qpn(load_be24(p + 9));
  message->sender_qpn = Qpn(load_be24(p + 13));
  message->start = Psn(load_be24(p + 17));
  message->window = load_be32(p + 20);
  message->path_mtu = static_cast<std::uint16_t>(p[16] * SenderGroupMessage::kMtuUnit);
  message->share = load_be64(p + 24);
  if (!is_sender_group(message->virtual_qpn)) return std::nullopt;
  for (auto records = data.subspan(kBefore); !records.empty();) {
    const std::size_t size = take_record(*message, records);
    if (size == 0) return std::nullopt;
    records = records.subspan(size);
  }
  return message;
}

std::size_t SenderGroupMessage::emit(std::span<std::uint8_t> out) const {
  const std::size_t size = MrpHeader::kSize + kSenderRecord + receiver_count * MrpMember::kSize +
                           region_count * MrpRegion::kSize;
  if (out.size() < size) return 0;
  header.emit(out.first<MrpHeader::kSize>());
  store_be16(out.data() + 10, static_cast<std::uint16_t>(size));
  std::uint8_t* p = out.data() + MrpHeader::kSize;
  std::fill_n(p, kSenderRecord, std::uint8_t{0});
  p[0] = kSenderRecordType;
  p[1] = kSenderRecord / 4;
  store_be16(p + 2, control_port);
  store_be32(p + 4, addressed.value());
  store_be24(p + 9, virtual_qpn.value());
  store_be24(p + 13, sender_qpn.value());
  store_be24(p + 17, start.value());
  store_be32(p + 20, window);
  p[16] = static_cast<std::uint8_t>(path_mtu / kMtuUnit);
  store_be64(p + 24, share);
  p += kSenderRecord;
  for (const MrpMember& receiver : list()) {
    receiver.emit(std::span<std::uint8_t, MrpMember::kSize>(p, MrpMember::kSize));
    p += MrpMember::kSize;
  }
  for (const Region& region : region_list()) {
    region.region.emit(std::span<std::uint8_t, MrpRegion::kSize>(p, MrpRegion::kSize),
                       receivers[region.receiver].host);
    p += MrpRegion::kSize;
  }
  return size;
}

}  // namespace cepheus::wire
