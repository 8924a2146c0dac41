// The same broadcast at rising rates of loss, and its goodput relative to no loss.
#pragma once

#include <functional>
#include <vector>

#include "fabric-sim/experiments/report.h"
#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

struct LossSweep {
  net::Topology fabric;            // without loss
  LossAt where = LossAt::kCopies;  // place of the loss
  std::vector<std::size_t> hosts;  // of the fabric, that take part
  std::uint64_t bytes = 0;         // the largest message
  std::vector<double> rates;       // of loss
  unsigned seeds = 1;
  std::uint32_t ack_every = rnic::NicConfig().ack_every;  // packets of a long message
};

// Medians of the seeds, by rate.
struct LossMedians {
  std::vector<double> ms;
  std::vector<double> goodput;  // of lossless
};

// Microseconds of the measured operation on a testbed of the sweep's hosts alone.
using Measured = std::function<double(Testbed&)>;

// Adds for each rate: the time as `series` ("ms"); "SERIES, goodput" as a share of the same seed's
// without loss ("of lossless": a seed sets flows' hashes, too), beside it the papers' value if
// `paper_goodput` has the rate; and the NICs' time-outs, because a lost last packet, or its lost
// acknowledgement, costs half a millisecond. `note` is that of the times.
LossMedians sweep_loss(const LossSweep& sweep, const std::string& series, const Measured& measured,
                       Report& report,
                       const std::vector<std::pair<double, double>>& paper_goodput = {},
                       const std::string& note = "");

}  // namespace cepheus::sim
