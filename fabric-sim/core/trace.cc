// The hash is FNV-1a over time, place, text, headers, payload length and ICRC; payload bytes are
// not in it. Text is made only if a stream is set. Registration datagrams are printed with their
// members; a frame that no parser accepts is printed by its size.
#include "fabric-sim/core/trace.h"

#include <iomanip>
#include <ostream>
#include <span>

#include "wire/hello.h"
#include "wire/mrp.h"
#include "wire/roce.h"
#include "wire/sender_group.h"

namespace cepheus::sim {
namespace {

const char* kind_of(wire::Opcode opcode) {
  const wire::OpcodeInfo& info = wire::opcode_info(opcode);
  if (info.send)
    return info.first ? (info.last ? "only" : "first") : (info.last ? "last" : "middle");
  if (info.write) return "write";
  if (opcode == wire::Opcode::kRcAcknowledge) return "";
  return "other";
}

void print_aeth(std::ostream& out, const wire::Aeth& aeth) {
  switch (aeth.kind) {
    case wire::AckKind::kAck:
      out << "ack";
      break;
    case wire::AckKind::kRnrNak:
      out << "rnr(timer " << unsigned{aeth.value} << ')';
      break;
    default:
      out << "nak(" << unsigned{aeth.value} << ')';
      break;
  }
}

void print_roce(std::ostream& out, const wire::RoceHeaders& h, std::size_t payload) {
  const wire::OpcodeInfo& info = wire::opcode_info(h.bth.opcode);
  out << kind_of(h.bth.opcode);
  if (info.aeth) print_aeth(out, h.aeth);
  out << " psn 0x" << std::hex << h.bth.psn.value() << " qp 0x" << h.bth.destination_qp.value()
      << std::dec;
  if (info.request()) out << ' ' << payload << " bytes" << (h.bth.ack_request ? ", ack asked" : "");
  out << ' ' << h.ip.source.to_string() << " > " << h.ip.destination.to_string();
}

void print_members(std::ostream& out, std::span<const wire::MrpMember> members) {
  for (const wire::MrpMember& m : members) {
    out << ' ' << m.host.to_string() << '/' << m.qpn.value();
    if (m.flags != 0) out << '/' << unsigned{m.flags};
  }
}

}  // namespace

void Trace::mix(const void* data, std::size_t size) {  // FNV-1a, by words where possible
  const auto* p = static_cast<const std::uint8_t*>(data);
  std::uint64_t h = hash_;
  for (; size >= sizeof h; size -= sizeof h, p += sizeof h) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    h = (h ^ word) * 0x100000001B3ull;
    h ^= h >> 29;
  }
  for (; size > 0; --size, ++p) h = (h ^ *p) * 0x100000001B3ull;
  hash_ = h;
}

void Trace::mix(wire::Instant at, std::string_view place, std::string_view verb) {
  const auto t = at.time_since_epoch().count();
  mix(&t, sizeof t);
  mix(place.data(), place.size());
  mix(verb.data(), verb.size());
}

void Trace::begin_line(wire::Instant at, std::string_view place, std::string_view verb) {
  const double us = static_cast<double>(at.time_since_epoch().count()) / 1000;
  *out_ << std::fixed << std::setprecision(3) << std::setw(11) << us << "us " << place << ' '
        << verb;
}

void Trace::frame(wire::Instant at, std::string_view place, std::string_view verb,
                  const wire::Frame& frame) {
  if (is_off_) return;
  mix(at, place, verb);
  mix(frame.bytes.data(), frame.header_len);
  mix(&frame.payload_len, sizeof frame.payload_len);
  mix(&frame.icrc_state, sizeof frame.icrc_state);
  if (frame.icrc_state == wire::Icrc::kPresent) mix(&frame.icrc, sizeof frame.icrc);
  if (out_ == nullptr) return;
  begin_line(at, place, verb);
  *out_ << ' ';
  if (const auto h = wire::RoceHeaders::parse(frame)) {
    print_roce(*out_, *h, frame.payload_len);
  } else if (const auto d = wire::UdpDatagram::parse(frame)) {
    const auto m = wire::MrpMessage::parse(frame.payload());
    const auto s = wire::SenderGroupMessage::parse(frame.payload());
    const auto hello = m ? std::nullopt : wire::Hello::parse(frame.payload());
    *out_ << "mrp "
          << (m       ? wire::to_string(m->header.type)
              : s     ? wire::to_string(s->header.type)
              : hello ? wire::to_string(wire::MrpType::kHello)
                      : "malformed")
          << ' ' << d->ip.source.to_string() << " > " << d->ip.destination.to_string();
    if (m) print_members(*out_, m->list());
    if (hello) {
      for (const wire::Ipv4 one : hello->list()) *out_ << " not " << one.to_string();
    }
    if (s) *out_ << " epoch " << s->header.epoch << " share " << s->share;
    if (s) print_members(*out_, s->list());
  } else {
    *out_ << "unreadable frame, " << frame.size() << " bytes";
  }
  *out_ << '\n';
}

void Trace::note(wire::Instant at, std::string_view place, std::string_view text,
                 std::uint64_t value) {
  if (is_off_) return;
  mix(at, place, text);
  mix(&value, sizeof value);
  if (out_ == nullptr) return;
  begin_line(at, place, text);
  *out_ << ' ' << value << '\n';
}

}  // namespace cepheus::sim
