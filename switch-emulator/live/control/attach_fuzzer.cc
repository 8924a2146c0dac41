// Any datagrams of clients and launchers to a fabric's attach socket: a message that parses encodes
// to the same message, and a host has one owner.
//
// Input: records of (what, length, bytes). `what` selects the sender and the kind: a whole
// datagram, the fields of a valid one, or the end of a host's client or of a launcher.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "switch-emulator/live/control/host_assignment.h"

namespace {

using namespace cepheus::fabric;  // NOLINT: a fuzzer's own file
using cepheus::live::HostAssignment;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kHosts = 4;
constexpr const char* kNames[] = {"", "h0", "h1", "h3", "10.0.0.3", "#2", "#4", "h9"};

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Decode>
void check_codec(Bytes datagram, Decode decode) {
  const auto message = decode(datagram);
  if (!message || message->version != kHandshakeVersion) return;
  const auto once = encode(*message);
  const auto again = decode(once);
  require(again && encode(*again) == once);
}

class Fabric final : HostAssignment::Ports {
 public:
  void take(uid_t user, Bytes datagram) {
    check_codec(datagram, decode_welcome);
    check_codec(datagram, decode_hosts_reserved);
    check_codec(datagram, decode_attach_request);
    check_codec(datagram, decode_hosts_wanted);
    const auto hello = decode_attach_request(datagram);
    const auto wanted = decode_hosts_wanted(datagram);
    require(!hello || !wanted || hello->version != kHandshakeVersion);
    if (hello) choose(user, *hello);
    if (wanted) reserve(user, *wanted);
  }
  void take_fields(uid_t user, Bytes fields) {
    const auto field = [&](std::size_t i) { return i < fields.size() ? fields[i] : 0u; };
    const auto name = [&](std::size_t i) { return std::string(kNames[field(i) % 8]); };
    if (field(0) % 2 == 0) {
      return take(
          user, encode(AttachRequest{
                    .host = name(1), .or_any = (field(0) & 2) != 0, .reservation = field(2) % 8}));
    }
    std::string names = name(1);
    for (std::size_t i = 3; i < fields.size(); ++i) names += "," + name(i);
    take(user, encode(HostsWanted{.number = field(2) % 8, .names = names}));
  }
  void end(std::size_t which) {
    if (which < kHosts) {
      is_taken_[which] = false;
      return;
    }
    const ReservationId id = which - kHosts + 1;
    assignment_.end(id);
    for (Reservation& each : reserved_) {
      if (each.id == id) each = {};
    }
    for (std::size_t host = 0; host < kHosts; ++host) {
      require(assignment_.reserved_by(host).has_value() == (reserved_[host].id != 0));
    }
  }

 private:
  struct Reservation {
    ReservationId id = 0;
    uid_t user = 0;
  };

  bool is_free(std::size_t host) override { return !is_taken_[host]; }
  std::string why_not_free(std::size_t) const override { return "is held by pid 7"; }

  void choose(uid_t user, const AttachRequest& hello) {
    const auto choice = assignment_.choose(hello, user);
    require(choice.host < kHosts && choice.text.empty() == is_granted(choice.status));
    if (!is_granted(choice.status)) return refuse(choice.status, choice.text);
    const Reservation& kept = reserved_[choice.host];
    require(!is_taken_[choice.host]);
    require(kept.id == 0 || (kept.id == hello.reservation && kept.user == user));
    is_taken_[choice.host] = true;
  }
  void reserve(uid_t user, const HostsWanted& wanted) {
    const ReservationId id = ++launchers_;
    const auto got = assignment_.reserve(wanted, id, {7, user});
    require(got.names.empty() != is_granted(got.status));
    if (!is_granted(got.status)) refuse(got.status, got.text);
    std::size_t count = 0;
    for (std::size_t host = 0; host < kHosts; ++host) {
      const bool is_new =
          (got.names + ",").find("h" + std::to_string(host) + ",") != std::string::npos;
      require(!is_new || (reserved_[host].id == 0 && !is_taken_[host]));
      if (is_new) reserved_[host] = {id, user};
      count += is_new;
    }
    const bool by_number = wanted.names.empty() && wanted.number != 0 && is_granted(got.status);
    require(!by_number || count == wanted.number);
  }
  static bool is_granted(WelcomeStatus status) { return status == WelcomeStatus::kGranted; }
  static void refuse(WelcomeStatus status, const std::string& text) {
    Welcome welcome;
    welcome.status = status;
    welcome.text = text;
    const auto decoded = decode_welcome(encode(welcome));
    require(decoded && decoded->status == status && text.starts_with(decoded->text) &&
            !decoded->text.empty());
  }

  std::array<bool, kHosts> is_taken_{};
  std::array<Reservation, kHosts> reserved_{};
  ReservationId launchers_ = 0;
  HostAssignment assignment_{{{"h0", cepheus::wire::Ipv4(10, 0, 0, 1)},
                              {"h1", cepheus::wire::Ipv4(10, 0, 0, 2)},
                              {"h2", cepheus::wire::Ipv4(10, 0, 0, 3)},
                              {"h3", cepheus::wire::Ipv4(10, 0, 0, 4)}},
                             *this};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fabric fabric;
  Bytes rest(data, size);
  while (rest.size() >= 2) {
    const std::uint8_t what = rest[0];
    const auto body = rest.subspan(2, std::min<std::size_t>(rest[1], rest.size() - 2));
    rest = rest.subspan(2 + body.size());
    const uid_t user = what & 3;
    if (what >= 0xC0) {
      fabric.end(what & 15);
    } else if (what >= 0x80) {
      fabric.take_fields(user, body);
    } else {
      fabric.take(user, body);
    }
  }
  return 0;
}
