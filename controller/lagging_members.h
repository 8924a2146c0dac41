// Members that switches name as holding a group up, and whether they are silent (docs/protocol.md,
// "Members that die or stall").
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "wire/types.h"

namespace cepheus::mrp {

class LaggingMembers {
 public:
  // A host that was not named during such a pause is a new one at its next naming. Bound of the comparison
  // of counts: fewer than 2^23 packets come from one host within a pause (2.5 s, 3.3 million a
  // second); over a longer one nothing is compared.
  explicit LaggingMembers(wire::Duration pause) : pause_(pause) {}

  struct Verdict {
    bool is_active = false;    // something came from it since it was named last
    wire::Duration silence{};  // since its first report, or its last packet
  };
  // The switch's counter of a host: its answers, or the packets that it sends.
  enum class Role : std::uint8_t { kReceiver, kSource };
  // A switch reports `host` and the count `received` of its packets, modulo 2^24. Several switches
  // may report a source, some with an older count.
  Verdict name(wire::Instant now, wire::Ipv4 host, Role role, std::uint32_t received) {
    const auto at = find(host, role);
    if (at == list_.end() || now - at->last > pause_) {
      if (at != list_.end()) list_.erase(at);
      list_.push_back({host, role, received, now, now});
      return {};
    }
    const bool is_active = distance(wire::Psn(at->received), wire::Psn(received)) > 0;
    if (is_active) {
      at->received = received;
      at->since = now;
    }
    at->last = now;
    return {is_active, now - at->since};
  }
  void forget(wire::Ipv4 host) {
    std::erase_if(list_, [host](const LaggingMember& l) { return l.host == host; });
  }
  bool any(wire::Instant now) const {
    return std::ranges::any_of(list_,
                               [&](const LaggingMember& l) { return now - l.last <= pause_; });
  }
  // True if a member named within the last `limit` had been silent for as long by then.
  bool any_silent(wire::Instant now, wire::Duration limit) const {
    return std::ranges::any_of(list_, [&](const LaggingMember& l) {
      return now - l.last <= limit && l.last - l.since >= limit;
    });
  }

 private:
  struct LaggingMember {
    wire::Ipv4 host;
    Role role;
    std::uint32_t received;
    wire::Instant since, last;  // silent since; named last
  };
  std::vector<LaggingMember>::iterator find(wire::Ipv4 host, Role role) {
    return std::ranges::find_if(
        list_, [host, role](const LaggingMember& l) { return l.host == host && l.role == role; });
  }

  wire::Duration pause_;
  std::vector<LaggingMember> list_;
};

}  // namespace cepheus::mrp
