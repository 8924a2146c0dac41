#include "wire/mrp.h"

#include "wire/byte_order.h"

namespace cepheus::wire {

const char* to_string(MrpReject reason) {
  switch (reason) {
    case MrpReject::kNone:
      return "none";
    case MrpReject::kTableFull:
      return "table full";
    case MrpReject::kNoRoute:
      return "no route";
    case MrpReject::kIdInUse:
      return "group id in use";
    case MrpReject::kMalformed:
      return "malformed request";
    case MrpReject::kNotAuthorised:
      return "not authorised";
    case MrpReject::kNotMember:
      return "host does not know the queue pair";
    case MrpReject::kMemberFailed:
      return "member could not bring its queue pair up";
    case MrpReject::kEvicted:
      return "evicted";
  }
  return "unknown reason";
}

const char* to_string(MrpType type) {
  switch (type) {
    case MrpType::kRegister:
      return "register";
    case MrpType::kConfirm:
      return "confirm";
    case MrpType::kReject:
      return "reject";
    case MrpType::kActivate:
      return "activate";
    case MrpType::kUnregister:
      return "unregister";
    case MrpType::kRefresh:
      return "refresh";
    case MrpType::kQuery:
      return "query";
    case MrpType::kReport:
      return "report";
    case MrpType::kEvict:
      return "evict";
  }
  return "unknown type";
}

std::optional<MrpHeader> MrpHeader::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  if (p[0] != kVersion || p[1] < static_cast<std::uint8_t>(MrpType::kRegister) ||
      p[1] > static_cast<std::uint8_t>(MrpType::kEvict)) {
    return std::nullopt;
  }
  MrpHeader h;
  h.type = static_cast<MrpType>(p[1]);
  h.flags = load_be16(p + 2);
  h.epoch = load_be16(p + 4);
  h.seq = load_be16(p + 6);
  h.total = load_be16(p + 8);
  h.mcst_id = McstId(load_be32(p + 12));
  h.instance = load_be32(p + 16);
  return h;
}

void MrpHeader::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kVersion;
  p[1] = static_cast<std::uint8_t>(type);
  store_be16(p + 2, flags);
  store_be16(p + 4, epoch);
  store_be16(p + 6, seq);
  store_be16(p + 8, total);
  store_be16(p + 10, 0);
  store_be32(p + 12, mcst_id.value());
  store_be32(p + 16, instance);
}

bool MrpMessage::add(const MrpMember& m) {
  if (member_count == kMaxMembers) return false;
  members[member_count++] = m;
  return true;
}

std::optional<MrpMessage> MrpMessage::parse(std::span<const std::uint8_t> data) {
  const auto parsed = MrpHeader::parse(data);
  if (!parsed || data.size() > kMaxSize) return std::nullopt;
  const auto list = data.subspan(MrpHeader::kSize);
  if (list.size() % MrpMember::kSize != 0) return std::nullopt;
  std::optional<MrpMessage> message(std::in_place);
  message->header = *parsed;
  for (std::size_t at = 0; at < list.size(); at += MrpMember::kSize) {
    const std::uint8_t* p = list.data() + at;
    message->add({Ipv4(load_be32(p)), Qpn(load_be24(p + 5)), p[4]});
  }
  return message;
}

std::size_t MrpMessage::emit(std::span<std::uint8_t> out) const {
  const std::size_t size = MrpHeader::kSize + member_count * MrpMember::kSize;
  if (out.size() < size) return 0;
  header.emit(out.first<MrpHeader::kSize>());
  std::uint8_t* p = out.data() + MrpHeader::kSize;
  for (const MrpMember& m : list()) {
    store_be32(p, m.host.value());
    p[4] = m.flags;
    store_be24(p + 5, m.qpn.value());
    p += MrpMember::kSize;
  }
  return size;
}

Psn group_start_psn(McstId id, std::uint16_t epoch) {
  constexpr std::uint64_t kBelow = 0xFF0000;
  std::uint64_t x = std::uint64_t{id.value()} << 16 | epoch;
  // splitmix64's finalizer: every input bit moves every output bit.
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  x ^= x >> 31;
  return Psn(static_cast<std::uint32_t>((x >> 32) * kBelow >> 32));
}

Mac mac_for(Ipv4 address) {
  Mac mac{{0x02, 0xCE}};
  store_be32(mac.octets.data() + 2, address.value());
  return mac;
}

}  // namespace cepheus::wire
