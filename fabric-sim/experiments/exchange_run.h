// Carries exchanges out over RC connections between simulated hosts, one for each pair that sends.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/experiments/exchanges.h"
#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

class ExchangeRun {
 public:
  // `hosts[r]` of the network is rank r. The connections are ready at once. A program needs `post`
  // for each message that it sends, and no time to receive one. Messages are short enough to be
  // copied: no rank waits for an acknowledgement.
  ExchangeRun(Testbed& testbed, const Exchanges& exchanges, const std::vector<std::size_t>& hosts,
              wire::Duration post = {});
  ~ExchangeRun();

  void start();
  bool is_done() const { return running_ == 0; }
  Instant ended_at() const { return ended_at_; }

 private:
  class Program;
  friend class Program;

  Testbed& testbed_;
  const wire::Duration post_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::size_t running_;
  Instant ended_at_{};
};

// Runs the exchanges alone from now on; returns the time until the last rank is done.
wire::Duration time_of(Testbed& testbed, const Exchanges& exchanges,
                       const std::vector<std::size_t>& hosts, wire::Duration post = {});

}  // namespace cepheus::sim
