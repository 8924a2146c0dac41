// MC_IDs of one host: virtual destination QPNs of sender groups (MC-RDMA III-A), each held by one connection.
#pragma once

#include <deque>
#include <optional>
#include <set>

#include "wire/types.h"

namespace cepheus::connections {

class VirtualQpns {
 public:
  // What switches and receivers still know of a group is older than that.
  static constexpr wire::Duration kRest = std::chrono::seconds(10);

  // `seed`: where to begin, so that a daemon started again does not hand out the same ones.
  explicit VirtualQpns(std::uint32_t seed);
  // One that is neither held nor resting. Nothing: all are.
  std::optional<wire::Qpn> take(wire::Instant now);
  // It rests from now on.
  void give_back(wire::Qpn qpn, wire::Instant now);
  std::size_t held() const { return taken_.size() - resting_.size(); }

 private:
  struct Resting {
    wire::Qpn qpn;
    wire::Instant until;
  };

  std::uint32_t next_;
  std::set<wire::Qpn> taken_;  // held, or resting
  std::deque<Resting> resting_;
};

}  // namespace cepheus::connections
