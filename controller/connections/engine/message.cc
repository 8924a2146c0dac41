// kFields has the fields of each type; parse() and emit() go through its bits in one order. parse()
// refuses unknown types, numbers out of range, texts and lists beyond their bounds, and bytes
// behind the message. emit() truncates long texts; more data or members than allowed are a bug.
#include "controller/connections/engine/message.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"
#include "wire/sender_group.h"

namespace cepheus::connections {
namespace {

enum Field : unsigned {
  kHasVersion = 1 << 0,
  kHasHost = 1 << 1,
  kHasPeer = 1 << 2,
  kHasNonce = 1 << 3,
  kHasSigned = 1 << 4,
  kHasTime = 1 << 5,
  kHasConnection = 1 << 6,
  kHasRequest = 1 << 7,
  kHasQpn = 1 << 8,
  kHasService = 1 << 9,
  kHasText = 1 << 10,
  kHasName = 1 << 11,
  kHasData = 1 << 12,
  kHasHosts = 1 << 13,
  kHasMembers = 1 << 14,
  kHasStatus = 1 << 15,
  kIsUnknown = 1 << 16,
};

// Indexed by MessageType, which has no 0. In the order of the bits, on the wire too.
constexpr std::array<unsigned, 23> kFields{
    kIsUnknown,
    kHasVersion | kHasHost | kHasPeer | kHasNonce | kHasSigned | kHasTime,  // HELLO
    0,                                                                      // READY
    0,                                                                      // PING
    kHasText,                                                               // REFUSAL
    kHasHost | kHasConnection | kHasQpn | kHasService | kHasData,           // OFFER
    kHasConnection | kHasText,                                              // CANCEL
    kHasConnection,                                                         // ESTABLISHED
    kHasConnection | kHasText,                                              // CLOSED
    kHasConnection | kHasName | kHasData,                                   // ACCEPT
    kHasConnection | kHasText,                                              // REFUSE
    kHasHost | kHasConnection | kHasText,                                   // LEFT
    kHasVersion,                                                            // PROGRAM
    kHasService,                                                            // LISTEN
    kHasTime | kHasRequest | kHasService | kHasData | kHasHosts,            // CONNECT
    kHasConnection,                                                         // CLOSE
    0,                                                                      // STATUS_REQUEST
    kHasService,                                                            // LISTENING
    kHasService | kHasText,                                                 // NOT_LISTENING
    kHasConnection | kHasRequest | kHasQpn,                                 // CONNECTING
    kHasConnection | kHasRequest | kHasQpn | kHasMembers,                   // CONNECTED
    kHasHost | kHasConnection | kHasRequest | kHasText,                     // FAILED
    kHasStatus,                                                             // STATUS
};
static_assert(kFields.size() == static_cast<std::size_t>(MessageType::kStatus) + 1);

unsigned fields_of(MessageType type) {
  const auto number = static_cast<std::size_t>(type);
  return number < kFields.size() ? kFields[number] : kIsUnknown;
}

std::string_view truncated(std::string_view text, std::size_t most) { return text.substr(0, most); }

void put_data(wire::ByteWriter& out, const Data& data) {
  assert(data.size() <= kMostData);
  out.u16(static_cast<std::uint32_t>(data.size()));
  out.bytes(data);
}

// False: it breaks a bound.
bool take_data(wire::ByteReader& in, Data& data) {
  const std::size_t n = in.u16();
  if (n > kMostData || n > in.left()) return false;
  data.resize(n);
  in.bytes(data);
  return true;
}

bool take_members(wire::ByteReader& in, std::vector<Member>& members) {
  const std::size_t n = in.u8();
  if (n > kMostReceivers) return false;
  for (std::size_t i = 0; i < n; ++i) {
    Member& m = members.emplace_back();
    m.host = wire::Ipv4(in.u32());
    in.bytes(m.name);
    if (!take_data(in, m.data)) return false;
  }
  return true;
}

bool take_hosts(wire::ByteReader& in, std::vector<wire::Ipv4>& hosts) {
  const std::size_t n = in.u8();
  if (n > kMostReceivers) return false;
  for (std::size_t i = 0; i < n; ++i) hosts.emplace_back(in.u32());
  return true;
}

// Fields that index a table have to be numbers of that table.
bool is_qpn(std::uint32_t v) {
  return v == 0 || (v >= wire::kFirstSenderGroupQpn && v <= wire::kLastSenderGroupQpn);
}

}  // namespace

std::optional<Message> Message::parse(std::span<const std::uint8_t> bytes) {
  wire::ByteReader in(bytes);
  Message m;
  m.type = static_cast<MessageType>(in.u8());
  const unsigned has = fields_of(m.type);
  if ((has & kIsUnknown) != 0) return std::nullopt;
  bool ok = true;
  if (has & kHasVersion) m.version = in.u16();
  if (has & kHasHost) m.host = wire::Ipv4(in.u32());
  if (has & kHasPeer) m.peer = wire::Ipv4(in.u32());
  if (has & kHasNonce) in.bytes(m.nonce);
  if (has & kHasSigned) {
    const std::uint8_t v = in.u8();
    ok = ok && v <= 1;
    m.is_signed = v == 1;
  }
  if (has & kHasTime) m.time_ms = in.u32();
  if (has & kHasConnection) m.connection = in.u64();
  if (has & kHasRequest) m.request = in.u32();
  if (has & kHasQpn) {
    const std::uint32_t v = in.u32();
    ok = ok && is_qpn(v);
    m.virtual_qpn = wire::Qpn(v);
  }
  if (has & kHasService) {
    m.service = in.text();
    ok = ok && is_service(m.service);
  }
  if (has & kHasText) {
    m.text = in.text();
    ok = ok && m.text.size() <= kMostText;
  }
  if (has & kHasName) in.bytes(m.name);
  if (has & kHasData) ok = ok && take_data(in, m.data);
  if (has & kHasHosts) ok = ok && take_hosts(in, m.hosts);
  if (has & kHasMembers) ok = ok && take_members(in, m.members);
  if (has & kHasStatus) {
    const std::size_t n = in.u32();
    ok = ok && n <= kMostStatus && n <= in.left();
    if (ok) {
      Data text(n);
      in.bytes(text);
      m.status.assign(text.begin(), text.end());
    }
  }
  if (!ok || !in.is_done()) return std::nullopt;
  return m;
}

void Message::emit(std::vector<std::uint8_t>& to) const {
  const unsigned has = fields_of(type);
  assert(has != kIsUnknown && hosts.size() <= kMostReceivers && members.size() <= kMostReceivers);
  wire::ByteWriter out(to);
  out.u8(static_cast<std::uint8_t>(type));
  if (has & kHasVersion) out.u16(version);
  if (has & kHasHost) out.u32(host.value());
  if (has & kHasPeer) out.u32(peer.value());
  if (has & kHasNonce) out.bytes(nonce);
  if (has & kHasSigned) out.u8(is_signed ? 1 : 0);
  if (has & kHasTime) out.u32(time_ms);
  if (has & kHasConnection) out.u64(connection);
  if (has & kHasRequest) out.u32(request);
  if (has & kHasQpn) out.u32(virtual_qpn.value());
  if (has & kHasService) out.text(truncated(service, kMostService));
  if (has & kHasText) out.text(truncated(text, kMostText));
  if (has & kHasName) out.bytes(name);
  if (has & kHasData) put_data(out, data);
  if (has & kHasHosts) {
    out.u8(static_cast<std::uint8_t>(hosts.size()));
    for (const wire::Ipv4 h : hosts) out.u32(h.value());
  }
  if (has & kHasMembers) {
    out.u8(static_cast<std::uint8_t>(members.size()));
    for (const Member& m : members) {
      out.u32(m.host.value());
      out.bytes(m.name);
      put_data(out, m.data);
    }
  }
  if (has & kHasStatus) {
    assert(status.size() <= kMostStatus);
    out.u32(static_cast<std::uint32_t>(status.size()));
    out.bytes({reinterpret_cast<const std::uint8_t*>(status.data()), status.size()});
  }
}

Message about(MessageType type, std::uint64_t connection, std::string text) {
  Message m;
  m.type = type;
  m.connection = connection;
  m.text = std::move(text);
  return m;
}

bool is_service(std::string_view name) {
  return !name.empty() && name.size() <= kMostService &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7F; });
}

std::vector<std::uint8_t> frame_of(const Message& message) {
  std::vector<std::uint8_t> out(kFrameHeader);
  message.emit(out);
  wire::store_be32(out.data(), static_cast<std::uint32_t>(out.size() - kFrameHeader));
  return out;
}

}  // namespace cepheus::connections
