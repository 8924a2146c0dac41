// Prints registration datagrams of ours and their fields, one JSON object a line, so that another
// implementation can be compared (tools/wireshark/dissector_test.py): every type, every reason,
// with and without members, signed and not.
#include <cstdio>
#include <random>
#include <string>

#include "wire/hello.h"
#include "wire/mrp_key.h"
#include "wire/publication.h"

namespace {

using namespace cepheus::wire;

using Buffer = std::array<std::uint8_t, MrpMessage::kMaxDatagram>;

constexpr Ipv4 kSource{10, 0, 0, 1};
constexpr char kKey[] = "000102030405060708090a0b0c0d0e0f";

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  char two[3];
  for (const std::uint8_t byte : bytes) {
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

// An object without its closing brace: the fields of every datagram.
void print_header(const MrpHeader& h, std::span<const std::uint8_t> message, std::size_t size,
                  const Buffer& buffer) {
  std::printf("{\"hex\": \"%s\", \"type\": %d, \"type_name\": \"%s\", \"flags\": %d, \"epoch\": %d",
              hex(std::span(buffer).first(size)).c_str(), static_cast<int>(h.type),
              to_string(h.type), h.flags, h.epoch);
  std::printf(", \"seq\": %d, \"total\": %d, \"length\": %zu, \"mcst_id\": \"%s\"", h.seq, h.total,
              message.size(), h.mcst_id.to_string().c_str());
  std::printf(", \"instance\": %u, \"start_psn\": %u, \"signature\": \"%s\"", h.instance,
              group_start_psn(h.mcst_id, h.epoch).value(),
              hex(std::span(buffer).subspan(message.size(), size - message.size())).c_str());
}

void print(const MrpMessage& m, const MrpKey* key) {
  Buffer buffer{};
  const std::size_t length = m.emit(buffer);
  const std::size_t size = key == nullptr ? length : key->sign(kSource, buffer, length);
  print_header(m.header, std::span(buffer).first(length), size, buffer);
  const auto reason = static_cast<MrpReject>(m.header.flags);
  std::printf(", \"reason\": \"%s\", \"members\": [", to_string(reason));
  for (std::size_t i = 0; i < m.member_count; ++i) {
    const MrpMember& one = m.members[i];
    std::printf("%s[\"%s\", %u, %d, %d, %u]", i == 0 ? "" : ", ", one.host.to_string().c_str(),
                one.qpn.value(), one.control_port, one.flags, one.token);
  }
  std::printf("], \"paths\": [");
  if (m.path) std::printf("[%d, %u]", m.path->mtu, m.path->window);
  std::printf("], \"reductions\": [");
  if (m.reduction) {
    std::printf("[%d, %d, %d, %d]", m.reduction->kind, m.reduction->ascends ? 1 : 0,
                m.reduction->unit, m.reduction->window);
  }
  std::printf("], \"trees\": [");
  if (m.tree) {
    std::printf("[%d, %d, \"%s\", \"%s\", %u]", m.tree->height, m.tree->flags,
                m.tree->lowest.to_string().c_str(), m.tree->highest.to_string().c_str(),
                m.tree->members);
  }
  std::printf("]}\n");
}

// The member that sends it, and its regions.
void print(const Publication& p) {
  Buffer buffer{};
  const std::size_t size = p.emit(buffer);
  print_header(p.header, std::span(buffer).first(size), size, buffer);
  std::printf(", \"reason\": \"\", \"members\": [[\"%s\", %u, %d, %d, %u]], \"regions\": [",
              p.member.host.to_string().c_str(), p.member.qpn.value(), p.member.control_port,
              p.member.flags, p.member.token);
  for (std::size_t i = 0; i < p.count; ++i) {
    const MrpRegion& r = p.regions[i];
    std::printf("%s[%d, %llu, %llu, %u]", i == 0 ? "" : ", ", r.number,
                static_cast<unsigned long long>(r.virtual_address),
                static_cast<unsigned long long>(r.length), r.rkey);
  }
  std::printf("]}\n");
}

void print(const Hello& hello) {
  Buffer buffer{};
  const std::size_t size = hello.emit(buffer);
  const auto header = MrpHeader::parse(std::span(buffer).first(size));
  print_header(*header, std::span(buffer).first(size), size, buffer);
  std::printf(", \"hears\": %s, \"unreachable\": [", hello.receives ? "true" : "false");
  for (std::size_t i = 0; i < hello.count; ++i) {
    std::printf("%s\"%s\"", i == 0 ? "" : ", ", hello.unreachable[i].to_string().c_str());
  }
  std::printf("]}\n");
}

MrpMessage message(MrpType type, std::uint16_t flags, std::size_t members, std::mt19937& random) {
  MrpMessage m;
  m.header.type = type;
  m.header.flags = flags;
  m.header.epoch = static_cast<std::uint16_t>(random());
  m.header.seq = static_cast<std::uint16_t>(random());
  m.header.total = static_cast<std::uint16_t>(random());
  m.header.mcst_id = McstId(198, 18, static_cast<std::uint8_t>(random()), 7);
  m.header.instance = static_cast<std::uint32_t>(random());
  for (std::size_t i = 0; i < members; ++i) {
    m.add({Ipv4(static_cast<std::uint32_t>(random())), Qpn(static_cast<std::uint32_t>(random())),
           static_cast<std::uint8_t>(random() % 16), static_cast<std::uint16_t>(random()),
           static_cast<std::uint32_t>(random())});
  }
  if (type == MrpType::kRegister && (flags & 1) != 0 && members < MrpMessage::kMaxMembers) {
    m.reduction = MrpReduction{static_cast<std::uint8_t>(random()), 4096, 64, members > 0};
  }
  const bool may_have_tree =
      type == MrpType::kConfirm || type == MrpType::kConnect || type == MrpType::kActivate;
  if (may_have_tree && (flags & 1) != 0 && members < MrpMessage::kMaxMembers) {
    m.tree = MrpTree{static_cast<std::uint8_t>(1 + random() % 255),
                     static_cast<std::uint8_t>(random() % 4),
                     Ipv4(static_cast<std::uint32_t>(random() | 1)), Ipv4(0xFFFF'FFFF),
                     static_cast<std::uint32_t>(random() | 1)};
  }
  if ((flags & 1) != 0) {
    m.path = MrpPath{static_cast<std::uint16_t>(random()), static_cast<std::uint32_t>(random())};
  }
  return m;
}

}  // namespace

int main() {
  std::mt19937 random(20240131);
  const auto key = MrpKey::parse(kKey);
  if (!key) return 1;
  for (int type = 1; type < static_cast<int>(MrpType::kHello); ++type) {
    for (const std::size_t members : {std::size_t{0}, std::size_t{1}, MrpMessage::kMaxMembers}) {
      for (const std::uint16_t flags : {0, 1, 0x8001}) {
        const MrpMessage m = message(static_cast<MrpType>(type), flags, members, random);
        print(m, nullptr);
        print(m, &*key);
      }
    }
  }
  // Every reason, and one undefined number.
  const std::string unknown = to_string(MrpReject{0xFF});
  for (std::uint16_t reason = 0;; ++reason) {
    print(message(MrpType::kReject, reason, 1, random), nullptr);
    if (to_string(static_cast<MrpReject>(reason)) == unknown) break;
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{3}, Hello::kMaxSwitches}) {
    Hello hello;
    hello.receives = count != 3;
    hello.total = 2;
    hello.seq = 1;
    hello.count = count;
    for (Ipv4& one : hello.unreachable) one = Ipv4(static_cast<std::uint32_t>(random()));
    print(hello);
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{2}, Publication::kMaxRegions}) {
    Publication p;
    p.header = message(MrpType::kPublish, 0, 0, random).header;
    p.member = {Ipv4(10, 0, 0, 2), Qpn(0x11), 0, 40000, static_cast<std::uint32_t>(random())};
    for (std::uint16_t i = 0; i < count; ++i) {
      p.regions[i] = {i, static_cast<std::uint32_t>(random()), random() * 0x100000000ULL, random()};
    }
    p.count = count;
    print(p);
  }
}
