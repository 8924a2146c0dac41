// One broadcast where several ranks share a host, window after window. A root that does not lead
// its host passes the data to its host first. Then the hosts' leaders broadcast among themselves,
// by multicast where possible. Then each leader passes the data to its host. Inside a host packed
// bytes go down a binomial tree of the host's own messages, so through its memory.
//
// If the leaders' group does not serve a blocking broadcast, the saved function serves it among all
// ranks. Only the leaders see their group, so they tell their hosts:
//
//   window                      the lane is        the leaders tell their hosts of a refusal
//   first of a blocking one     not known to serve in a verdict before the data
//   the same, root leads        known to serve     instead of the data
//   any other                   -                  never: their tree serves it. Some ranks have data
//                                                  of the broadcast, and would not learn of it
#pragma once

#include <array>
#include <optional>
#include <string>

#include "collectives/algorithm.h"
#include "collectives/team_broadcast.h"

namespace cepheus::coll {

// The places of a communicator's ranks, as one of them sees them.
struct Hosts {
  Team leaders;              // of all hosts; self() is -1 on a rank that is none
  Team inside;               // the ranks of this host, its leader first
  std::vector<int> host_of;  // by rank: index among the leaders
  // All ranks know that the lane of large broadcasts serves, and that of small ones.
  std::array<bool, 2> serving = {};
};

class HostsBroadcast final : public Algorithm {
 public:
  // `multicast`: the leaders'; null on other ranks.
  HostsBroadcast(Hosts& hosts, Multicast* multicast)
      : hosts_(hosts), multicast_(multicast), across_(hosts.leaders) {}

  // `root`: rank of the communicator.
  void begin(Payload& payload, int root, bool blocking);
  Code progress() override;
  std::chrono::nanoseconds spare_time() const override {
    return is_across_ ? across_.spare_time() : std::chrono::nanoseconds(0);
  }
  Route route() const override {
    return error_ == Code::kNotServed ? Route::kSaved : Route::kHosts;
  }
  const std::string& reason() const override { return reason_; }
  bool is_comparable() const override { return !is_point_to_point_; }

 private:
  // kRootLeads: the root leads its host. Otherwise, kOtherHost: this rank is on another host than
  // the root; kCollects: on the same.
  enum class Role : std::uint8_t { kRootLeads, kOtherHost, kCollects };
  // kClose is 0: the step behind those that a path names.
  enum class Step : std::uint8_t { kClose, kDecide, kCollect, kAcross, kSpread };
  struct Path {
    std::array<Step, 4> steps;  // of a window; the last one is kClose
    TeamBroadcast::Otherwise otherwise;
  };
  static const Path kPaths[3][2];

  const Path& path() const;
  void open();
  Code run(Step step);
  Code decide();
  void start_across();
  Code across();
  Code inside(Payload& payload, int root);
  void finish_inside();
  Code close();
  void lose_data(Code rc);

  Hosts& hosts_;
  Multicast* const multicast_;
  std::optional<Payload> window_;  // as plain bytes
  std::byte verdict_byte_{};
  std::optional<Payload> verdict_;  // the leader's, for its host: marked as failed for a refusal
  TeamBroadcast across_;            // kept for all windows, as is the next one
  TreeOperation tree_;

  Payload* payload_ = nullptr;
  int source_host_ = 0;
  int source_inside_ = -1;  // the root among the ranks of its host, if that is this host; else -1
  bool is_root_ = false;
  Role role_ = Role::kRootLeads;
  bool* serves_ = nullptr;  // the lane, as all ranks know
  bool blocking_ = false;

  std::size_t at_ = 0;                 // among the steps
  std::size_t done_ = 0, length_ = 0;  // bytes before the window, and of it
  Code error_ = Code::kDone;           // of this window; that of the whole is the payload's
  bool is_inside_ = false, is_across_ = false;  // the operation, or the algorithm, has begun
  bool is_point_to_point_ = false;              // a window among the leaders, as they know
  std::string reason_;
};

}  // namespace cepheus::coll
