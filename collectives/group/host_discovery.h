// Finds the ranks that share a host. If every rank knows that of all others, no message is needed
// where the host knows the memory of all devices, or no rank multicasts. Else rank 0 gathers the
// ranks' identities and sends four bytes a rank down a binomial tree. Never blocks but for the
// opening of the device: call progress() until it returns true.
//
// cepheus-run or the parameter ranks_per_host defines hosts. Else, in mode "require", a host is a
// NIC's address, and otherwise a machine: ranks on one machine pass data through its memory faster
// than by any NIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/core/placement.h"
#include "collectives/core/tree.h"
#include "collectives/group/messages.h"
#include "collectives/group/team.h"

namespace cepheus::coll {

class HostDiscovery {
 public:
  explicit HostDiscovery(const Team& team) : team_(team) {}

  // True when placement() is known.
  bool progress();
  const Placement& placement() const { return placement_; }
  void forget_ranks() { placement_.forget_ranks(); }
  // Before the first progress(), once: true if it needs no message. Every rank knows it then.
  bool is_known_to_all();
  // No rank knew it beforehand, and multicast was impossible: a device that was missing may be
  // there by now.
  bool may_change() const { return requested_ && placement_.shape == Placement::Shape::kNone; }
  // Starts anew; all ranks must do so at the same broadcast.
  void again();

 private:
  enum class State : std::uint8_t { kNew, kGathering, kSending, kDone };
  // Rank 0's message: behind the reason, for each rank the number of its host, and whether the rank
  // can lead there.
  struct Place {
    std::int32_t host_and_lead;
  };
  static constexpr std::size_t kReason = 192;  // bytes

  Code start();
  void keep(Placement placement);
  void compare_settings();
  void look_for_gpu_runtimes();
  void refuse(const std::string& why);
  void place();
  Code send_places();
  Tree tree() const { return {{team_.self(), team_.size(), 0}}; }
  std::size_t message_bytes() const {
    return kReason + static_cast<std::size_t>(team_.size()) * sizeof(Place);
  }

  const Team& team_;
  State state_ = State::kNew;
  bool requested_ = false, again_ = false;
  Identity own_{};
  std::vector<Identity> identities_;  // rank 0's, until it knows the placement
  std::vector<char> message_;
  Messages messages_;
  Placement placement_;
};

}  // namespace cepheus::coll
