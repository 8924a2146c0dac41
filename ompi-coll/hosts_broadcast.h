// One broadcast where several ranks share a host, window after window: a root that is not its
// host's leader gives its host the data first; then the hosts' leaders broadcast among themselves,
// by multicast where possible; then each leader gives it to its host. Inside a host packed bytes go
// down a binomial tree of Open MPI's own messages, so through its memory.
//
// If the leaders' group does not serve a broadcast that all ranks wait for, the saved module serves
// it among all of them. The leaders alone see their group. Until all ranks know that it serves, each
// leader says so to its host first. Later it answers its host with a refusal instead of data.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ompi-coll/course.h"
#include "ompi-coll/team_broadcast.h"

namespace cepheus::coll {

// The places of a communicator's ranks, as one of them sees them.
struct Hosts {
  Team leaders;              // of all hosts; self() is -1 on a rank that is none
  Team inside;               // the ranks of this host, its leader first
  std::vector<int> host_of;  // by rank: index among the leaders
  // Which groups serve, as all ranks know: of small broadcasts or large ones, and with sender groups
  // of which host.
  std::set<std::pair<bool, int>> serving = {};
};

class HostsBroadcast final : public Course {
 public:
  // `multicast`: the leaders'; null on other ranks. `root`: rank of the communicator.
  HostsBroadcast(Hosts& hosts, Multicast* multicast, Payload& payload, int root, bool attended);

  int progress() override;
  std::chrono::nanoseconds spare_time() const override {
    return across_ ? across_->spare_time() : std::chrono::nanoseconds(0);
  }
  Route route() const override {
    return error_ == OMPI_ERR_NOT_AVAILABLE ? Route::kSaved : Route::kHosts;
  }
  const std::string& reason() const override { return reason_; }

 private:
  enum class Step : std::uint8_t { kOpen, kDecide, kCollect, kAcross, kSpread, kClose };

  int open();
  int decide();
  void start_across();
  int across();
  int inside(Payload& payload, int root);
  int close();
  void spoil(int rc);

  Hosts& hosts_;
  Multicast* const multicast_;
  Payload& payload_;
  const int source_host_;
  const int source_inside_;  // the root among the ranks of its host, if that is this host; else -1
  const bool is_root_;
  const bool root_leads_;  // its host
  const std::pair<bool, int> group_;
  const bool attended_;

  Step step_ = Step::kOpen;
  std::size_t done_ = 0, length_ = 0;  // bytes before the window, and of it
  int error_ = OMPI_SUCCESS;           // of this window; that of the whole is the payload's
  std::optional<Payload> window_;      // as plain bytes
  std::byte verdict_byte_{};
  std::optional<Payload> verdict_;  // of the leader, for its host: spoiled if it says no
  std::unique_ptr<Operation> operation_;
  std::optional<TeamBroadcast> across_;
  std::string reason_;
};

}  // namespace cepheus::coll
