// Carries a schedule out over RC connections between simulated hosts, one for each pair that sends.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/experiments/schedule.h"
#include "fabric-sim/experiments/testbed.h"
#include "wire/types.h"

namespace cepheus::sim {

// Time of the papers' host software for a single request, fitted to two published numbers of
// Cepheus fig. 10: 23 % less time than three unicasts at 8 KiB, 60 % less at 512 KiB. Two constants
// for two numbers: they prove nothing about them. Gleam's fig. 13 is not in the fit.
//
// A request's way through the sender's and the receiver's host, whatever its size.
inline constexpr wire::Duration kHostPath = std::chrono::nanoseconds(14'500);
// ... and for each work request, one after the other.
inline constexpr wire::Duration kHostPost = std::chrono::nanoseconds(1'940);

// Times of the hosts' software.
struct HostCost {
  wire::Duration post{0};     // until the NIC has a request; one after the other
  wire::Duration receive{0};  // from a slice's last packet until the program has it
  wire::Duration relay{0};    // ... and additionally until it can send it on
};

class UnicastRun {
 public:
  // `hosts[r]` of the network is rank r. Keeps the schedule; the connections are ready at once.
  UnicastRun(Testbed& testbed, Schedule schedule, const std::vector<std::size_t>& hosts,
             const HostCost& cost = {});
  ~UnicastRun();

  void start();
  // Whether every send has been received.
  bool is_done() const { return receives_left_ == 0; }
  Instant received_at() const { return received_at_; }

 private:
  class Program;
  friend class Program;

  // A library copies messages up to this size, and does not wait for their acknowledgement.
  static constexpr std::uint64_t kEager = 16384;

  Testbed& testbed_;
  const Schedule schedule_;
  const HostCost cost_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::size_t receives_left_ = 0;
  Instant received_at_{};
};

// Runs it alone from now on; returns the time until the last rank has received the last slice.
wire::Duration time_of(Testbed& testbed, const Schedule& schedule,
                       const std::vector<std::size_t>& hosts, const HostCost& cost = {});

}  // namespace cepheus::sim
