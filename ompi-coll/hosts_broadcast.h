// One broadcast where several ranks share a host, window after window: a root that is not its
// host's leader gives its host the data first; then the hosts' leaders broadcast among themselves,
// by multicast where possible; then each leader gives it to its host. Inside a host packed bytes go
// down a binomial tree of Open MPI's own messages, so through its memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ompi-coll/course.h"
#include "ompi-coll/team_broadcast.h"

namespace cepheus::coll {

// The places of a communicator's ranks, as one of them sees them.
struct Hosts {
  Team leaders;              // of all hosts; self() is -1 on a rank that is none
  Team inside;               // the ranks of this host, its leader first
  std::vector<int> host_of;  // by rank: index among the leaders
};

class HostsBroadcast final : public Course {
 public:
  // `multicast`: the leaders'; null on other ranks. `root`: rank of the communicator.
  HostsBroadcast(const Hosts& hosts, Multicast* multicast, Payload& payload, int root,
                 bool attended);

  int progress() override;
  std::size_t done() const override { return done_; }
  std::chrono::nanoseconds spare_time() const override {
    return across_ ? across_->spare_time() : std::chrono::nanoseconds(0);
  }
  Route route() const override { return Route::kHosts; }
  const std::string& reason() const override { return reason_; }

 private:
  enum class Step : std::uint8_t { kOpen, kCollect, kAcross, kSpread, kClose };

  int open();
  int across();
  int inside(int root);
  int close();

  const Hosts& hosts_;
  Multicast* const multicast_;
  Payload& payload_;
  const int source_host_;
  const int source_inside_;  // the root among the ranks of its host, if that is this host; else -1
  const bool is_root_;
  const bool attended_;

  Step step_ = Step::kOpen;
  std::size_t done_ = 0, length_ = 0;  // bytes before the window, and of it
  std::optional<Payload> window_;      // as plain bytes
  std::unique_ptr<Operation> operation_;
  std::optional<TeamBroadcast> across_;
  std::string reason_;
};

}  // namespace cepheus::coll
