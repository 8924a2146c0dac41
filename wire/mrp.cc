// A record has its length in words; a length of 0 or beyond the datagram is malformed. Members and
// one PATH are read, unknown optional records are kept as bytes, other unknown ones refuse the
// message. More members than kMaxMembers are malformed, too.
//
// refuse_version() needs no more than the 20 bytes that are the same in every version. It answers a
// REGISTER of this version only if an unknown record is its sole flaw. Nothing allocates.
#include "wire/mrp.h"

#include <algorithm>

#include "wire/byte_order.h"
#include "wire/splitmix.h"

namespace cepheus::wire {
namespace {

constexpr std::size_t kWord = 4;          // bytes
constexpr std::uint8_t kOptional = 0x80;  // in a record's type

enum class Reading : std::uint8_t { kWhole, kMalformed, kUnknownRecord };

// Walks the records behind a header. Records of known types go to `take`, which may refuse them, and
// those of unknown optional types to `skip`.
template <typename Take, typename Skip>
Reading read_records(std::span<const std::uint8_t> records, Take&& take, Skip&& skip) {
  while (!records.empty()) {
    if (records.size() < kWord) return Reading::kMalformed;
    const std::uint8_t type = records[0];
    const std::size_t size = records[1] * kWord;
    if (size == 0 || size > records.size()) return Reading::kMalformed;
    if (type == MrpMember::kRecordType) {
      const auto member = MrpMember::parse(records);
      if (!member || !take(*member)) return Reading::kMalformed;
    } else if (type == MrpPath::kRecordType) {
      const auto path = MrpPath::parse(records);
      if (!path || !take(*path)) return Reading::kMalformed;
    } else if (type == MrpReduction::kRecordType) {
      const auto reduction = MrpReduction::parse(records);
      if (!reduction) return Reading::kUnknownRecord;  // of another version: it has other fields
      if (!take(*reduction)) return Reading::kMalformed;
    } else if (type == MrpTree::kRecordType) {
      const auto tree = MrpTree::parse(records);
      if (!tree || !take(*tree)) return Reading::kMalformed;
    } else if ((type & kOptional) == 0) {
      return Reading::kUnknownRecord;
    } else {
      skip(records.first(size));
    }
    records = records.subspan(size);
  }
  return Reading::kWhole;
}

bool take_record(MrpMessage& message, const MrpMember& member) { return message.add(member); }

bool take_record(MrpMessage& message, const MrpPath& path) {
  if (message.path) return false;
  message.path = path;
  return true;
}

bool take_record(MrpMessage& message, const MrpReduction& reduction) {
  if (message.reduction || message.header.type != MrpType::kRegister) return false;
  message.reduction = reduction;
  return true;
}

bool take_record(MrpMessage& message, const MrpTree& tree) {
  const MrpType type = message.header.type;
  const bool may_have_one =
      type == MrpType::kConfirm || type == MrpType::kConnect || type == MrpType::kActivate;
  if (message.tree || !may_have_one) return false;
  message.tree = tree;
  return true;
}

bool has_stated_length(std::span<const std::uint8_t> data) {
  return data.size() >= MrpHeader::kSize && data.size() == load_be16(data.data() + 10);
}

// By MrpReject.
constexpr std::array kRejectNames{"none",
                                  "table full",
                                  "no route",
                                  "group id in use",
                                  "malformed request",
                                  "not authorised",
                                  "queue pair unknown to its host",
                                  "member could not bring its queue pair up",
                                  "evicted",
                                  "another version of the registration protocol",
                                  "too many members behind one switch",
                                  "members are missing in the table",
                                  "too many groups of one host",
                                  "a trunk on the way is down",
                                  "a write outside a member's regions",
                                  "another write mode than the switches have",
                                  "the switches serve no sender groups",
                                  "a packet too long for a port on the way",
                                  "no memory for another reduction group",
                                  "a kind of group that the switch does not serve",
                                  "members that reduce different things",
                                  "a result that a member's device refused",
                                  "an operation that the switch does not serve"};
static_assert(kRejectNames.size() == static_cast<std::size_t>(MrpReject::kOperation) + 1);

// By MrpType, which has no 0.
constexpr std::array kTypeNames{
    "unknown type", "register", "confirm",   "reject",  "activate", "unregister", "refresh",
    "query",        "report",   "evict",     "give up", "complain", "alive",      "hello",
    "publish",      "install",  "installed", "remove",  "probe",    "probed",     "connect"};
static_assert(kTypeNames.size() == static_cast<std::size_t>(MrpType::kConnect) + 1);

}  // namespace

const char* to_string(MrpReject reason) {
  const auto code = static_cast<std::size_t>(reason);
  return code < kRejectNames.size() ? kRejectNames[code] : "unknown reason";
}

const char* to_string(MrpType type) {
  const auto code = static_cast<std::size_t>(type);
  return code < kTypeNames.size() ? kTypeNames[code] : "unknown type";
}

std::optional<MrpType> MrpHeader::type_of(std::span<const std::uint8_t> data) {
  if (data.size() < kSize || data[1] < static_cast<std::uint8_t>(MrpType::kRegister) ||
      data[1] > static_cast<std::uint8_t>(MrpType::kConnect)) {
    return std::nullopt;
  }
  return static_cast<MrpType>(data[1]);
}

std::optional<MrpHeader> MrpHeader::parse(std::span<const std::uint8_t> data) {
  const auto type = type_of(data);
  if (!type || data[0] != kVersion) return std::nullopt;
  const std::uint8_t* p = data.data();
  MrpHeader h;
  h.type = *type;
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
  store_be16(p + 10, kSize);
  store_be32(p + 12, mcst_id.value());
  store_be32(p + 16, instance);
}

std::optional<MrpMember> MrpMember::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  if (p[0] != kRecordType || p[1] != kSize / kWord) return std::nullopt;
  return MrpMember{Ipv4(load_be32(p + 4)), Qpn(load_be24(p + 9)), p[8], load_be16(p + 2),
                   load_be32(p + 12)};
}

void MrpMember::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kRecordType;
  p[1] = kSize / kWord;
  store_be16(p + 2, control_port);
  store_be32(p + 4, host.value());
  p[8] = flags;
  store_be24(p + 9, qpn.value());
  store_be32(p + 12, token);
}

std::optional<MrpPath> MrpPath::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  if (p[0] != kRecordType || p[1] != kSize / kWord) return std::nullopt;
  MrpPath path;
  path.mtu = load_be16(p + 2);
  path.window = load_be32(p + 4);
  return path;
}

void MrpPath::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kRecordType;
  p[1] = kSize / kWord;
  store_be16(p + 2, mtu);
  store_be32(p + 4, window);
}

std::optional<MrpReduction> MrpReduction::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  if (p[0] != kRecordType || p[1] != kSize / kWord || p[3] > 1) return std::nullopt;
  return MrpReduction{p[2], load_be16(p + 4), load_be16(p + 6), p[3] != 0};
}

void MrpReduction::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kRecordType;
  p[1] = kSize / kWord;
  p[2] = kind;
  p[3] = ascends ? 1 : 0;
  store_be16(p + 4, unit);
  store_be16(p + 6, window);
}

void MrpTree::add(const MrpTree& other) {
  if (members == 0 || other.lowest < lowest) lowest = other.lowest;
  highest = std::max(highest, other.highest);
  height = std::max(height, other.height);
  members += other.members;
}

std::optional<MrpTree> MrpTree::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize) return std::nullopt;
  const std::uint8_t* p = data.data();
  if (p[0] != kRecordType || p[1] != kSize / kWord) return std::nullopt;
  const MrpTree tree{p[2], p[3], Ipv4(load_be32(p + 4)), Ipv4(load_be32(p + 8)), load_be32(p + 12)};
  const bool has_members =
      tree.height > 0 && tree.members > 0 && !tree.lowest.is_unset() && tree.lowest <= tree.highest;
  return has_members ? std::optional(tree) : std::nullopt;
}

void MrpTree::emit(std::span<std::uint8_t, kSize> out) const {
  std::uint8_t* p = out.data();
  p[0] = kRecordType;
  p[1] = kSize / kWord;
  p[2] = height;
  p[3] = flags;
  store_be32(p + 4, lowest.value());
  store_be32(p + 8, highest.value());
  store_be32(p + 12, members);
}

bool MrpMessage::add(const MrpMember& m) {
  if (member_count == kMaxMembers) return false;
  members[member_count++] = m;
  return true;
}

std::optional<MrpMessage> MrpMessage::parse(std::span<const std::uint8_t> data) {
  const auto parsed = MrpHeader::parse(data);
  if (!parsed || data.size() > kMaxSize || !has_stated_length(data)) return std::nullopt;
  std::optional<MrpMessage> message(std::in_place);
  message->header = *parsed;
  const auto take = [&](const auto& record) { return take_record(*message, record); };
  const auto skip = [&](std::span<const std::uint8_t> record) {
    std::ranges::copy(
        record, message->skipped.begin() + static_cast<std::ptrdiff_t>(message->skipped_size));
    message->skipped_size += record.size();
  };
  const Reading reading = read_records(data.subspan(MrpHeader::kSize), take, skip);
  if (reading != Reading::kWhole) return std::nullopt;
  return message;
}

std::size_t MrpMessage::size_without_path() const {
  return MrpHeader::kSize + member_count * MrpMember::kSize +
         (reduction ? MrpReduction::kSize : 0) + (tree ? MrpTree::kSize : 0) +
         skipped_records().size();
}

std::size_t MrpMessage::emit(std::span<std::uint8_t> out) const {
  const std::size_t bare = size_without_path();
  const bool has_path = path && bare + MrpPath::kSize <= kMaxSize;
  const std::size_t size = bare + (has_path ? MrpPath::kSize : 0);
  if (out.size() < size) return 0;
  header.emit(out.first<MrpHeader::kSize>());
  store_be16(out.data() + 10, static_cast<std::uint16_t>(size));
  std::uint8_t* p = out.data() + MrpHeader::kSize;
  for (const MrpMember& m : list()) {
    m.emit(std::span<std::uint8_t, MrpMember::kSize>(p, MrpMember::kSize));
    p += MrpMember::kSize;
  }
  if (reduction) {
    reduction->emit(std::span<std::uint8_t, MrpReduction::kSize>(p, MrpReduction::kSize));
    p += MrpReduction::kSize;
  }
  if (tree) {
    tree->emit(std::span<std::uint8_t, MrpTree::kSize>(p, MrpTree::kSize));
    p += MrpTree::kSize;
  }
  if (has_path) {
    path->emit(std::span<std::uint8_t, MrpPath::kSize>(p, MrpPath::kSize));
    p += MrpPath::kSize;
  }
  std::ranges::copy(skipped_records(), p);
  return size;
}

std::optional<MrpRefusal> refuse_version(std::span<const std::uint8_t> datagram) {
  if (datagram.size() < MrpHeader::kSize ||
      datagram[1] != static_cast<std::uint8_t>(MrpType::kRegister)) {
    return std::nullopt;
  }
  if (datagram[0] == MrpHeader::kVersion) {
    if (!has_stated_length(datagram)) return std::nullopt;
    const auto take = [](const auto&) { return true; };
    const auto skip = [](std::span<const std::uint8_t>) {};
    const Reading reading = read_records(datagram.subspan(MrpHeader::kSize), take, skip);
    if (reading != Reading::kUnknownRecord) return std::nullopt;
  }
  MrpRefusal answer{};
  std::copy_n(datagram.begin(), answer.size(), answer.begin());
  answer[1] = static_cast<std::uint8_t>(MrpType::kReject);
  store_be16(answer.data() + 2, static_cast<std::uint16_t>(MrpReject::kVersion));
  store_be16(answer.data() + 6, 0);  // seq
  store_be16(answer.data() + 8, 1);  // total
  store_be16(answer.data() + 10, MrpHeader::kSize);
  return answer;
}

McstId group_of(const MrpRefusal& refusal) { return Ipv4(load_be32(refusal.data() + 12)); }

Psn group_start_psn(McstId id, std::uint16_t epoch) {
  constexpr std::uint64_t kBelow = 0xFF0000;
  const std::uint64_t x = splitmix(std::uint64_t{id.value()} << 16 | epoch);
  return Psn(static_cast<std::uint32_t>((x >> 32) * kBelow >> 32));
}

Mac mac_for(Ipv4 address) {
  Mac mac{{0x02, 0xCE}};
  store_be32(mac.octets.data() + 2, address.value());
  return mac;
}

}  // namespace cepheus::wire
