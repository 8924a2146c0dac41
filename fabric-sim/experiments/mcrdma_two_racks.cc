// MC-RDMA's testbed: a host writes to one in its rack and to one in another, several messages at a
// time. Fig. 4 varies the size. Fig. 7 varies the loss, on the trunk out of the sender's rack; runs
// are compared with that of their seed without loss. A writer keeps kDepth messages under way and
// times each.
#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "fabric-sim/experiments/replication.h"

namespace cepheus::sim {
namespace mcrdma_two_racks {

using namespace std::chrono_literals;

constexpr std::size_t kA1 = 0, kB1 = 1, kD1 = 3, kA2 = 4;
constexpr std::size_t kDepth = 8;

// A sender that keeps kDepth messages under way until all are sent.
class Writer {
 public:
  Writer(Testbed& testbed, ReplicationWay way, std::size_t sender,
         const std::vector<std::size_t>& receivers)
      : testbed_(testbed) {
    ways_.push_back(make_replication(way, testbed, sender, receivers, 0));
    make_ready(testbed, ways_);
    ways_.front()->on_acknowledged([this](Instant now) { end_one(now); });
  }

  void write(std::uint32_t bytes, std::size_t count) {
    bytes_ = bytes;
    begun_at_ = testbed_.simulator().now();
    left_ = count;
    while (under_way_.size() < kDepth && left_ > 0) begin_one(begun_at_);
    testbed_.run_until([&] { return under_way_.empty(); });
  }
  // Of the whole run.
  wire::Duration time() const { return ended_at_ - begun_at_; }
  const std::vector<double>& latencies() const { return latencies_; }  // us, of each message

 private:
  void begin_one(Instant now) {
    --left_;
    under_way_.push_back(now);
    ways_.front()->send(bytes_);
  }
  void end_one(Instant now) {
    latencies_.push_back(microseconds(now - under_way_.front()));
    under_way_.pop_front();
    ended_at_ = now;
    if (left_ > 0) begin_one(now);
  }

  Testbed& testbed_;
  std::vector<std::unique_ptr<Replication>> ways_;
  std::uint32_t bytes_ = 0;
  std::size_t left_ = 0;
  std::deque<Instant> under_way_;  // start times of messages under way
  Instant begun_at_{}, ended_at_{};
  std::vector<double> latencies_;
};

double gigabits(double bytes, wire::Duration time) {
  return bytes * 8 / static_cast<double>(time.count());
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(part * last))];
}

// --- fig. 4 ---

void measure_size(ReplicationWay way, std::uint32_t bytes, std::size_t messages, Report& report) {
  const std::string name = name_of(way);
  Testbed testbed(two_racks_of_four(), {.memory = bytes});
  Writer writer(testbed, way, kA1, {kD1, kA2});
  const rnic::Counters& nic = testbed.network().host(kA1).nic().counters();
  const std::uint64_t before = nic[rnic::Counter::kTxBytes];
  writer.write(bytes, messages);
  const auto sent = static_cast<double>(nic[rnic::Counter::kTxBytes] - before);
  const double payload = static_cast<double>(bytes) * static_cast<double>(messages);
  report.add(name, bytes, mean(writer.latencies()), "us");
  report.add(name + ", throughput", bytes, gigabits(payload, writer.time()), "Gb/s of payload");
  report.add(name + ", sent", bytes, gigabits(sent, writer.time()), "Gb/s sent");
  report.add(name + ", sent for each byte", bytes, sent / payload, "bytes");
}

void run_fig4(const ExperimentOptions& options, Report& report) {
  const std::uint32_t step = options.quick ? 8 : 2;
  for (const ReplicationWay way : kReplicationWays) {
    for (std::uint32_t bytes = 128; bytes <= 1 << 20; bytes *= step) {
      report.progress(name_of(way) + (", " + std::to_string(bytes)) + " bytes");
      measure_size(way, bytes, options.quick ? 100 : 400, report);
    }
  }
}

// --- fig. 7 ---

constexpr std::uint32_t kMessage = 64 << 10;

struct LossyRun {
  double throughput = 0, latency = 0, timeouts = 0, naks = 0;
  double part = 0;  // of the same seed's throughput without loss
};

LossyRun run_with_loss(ReplicationWay way, double loss, std::uint64_t seed, std::size_t messages) {
  net::Topology topology = two_racks_of_four();
  // From the sender's rack to the switch between the racks, where data for the near receiver does
  // not pass.
  for (net::TrunkSpec& trunk : topology.trunks) {
    if (trunk.a == topology.hosts[kA1].switch_index) trunk.ab.loss = loss;
    if (trunk.b == topology.hosts[kA1].switch_index) trunk.ba.loss = loss;
  }
  Testbed testbed(topology, {.seed = seed, .memory = kMessage});
  Writer writer(testbed, way, kA1, {kB1, kA2});
  writer.write(kMessage, messages);
  LossyRun run;
  run.throughput =
      gigabits(static_cast<double>(kMessage) * static_cast<double>(messages), writer.time());
  run.latency = percentile(writer.latencies(), 0.99);
  run.timeouts = static_cast<double>(testbed.totals().timeouts);
  run.naks = static_cast<double>(testbed.totals().naks);
  return run;
}

void measure_loss(ReplicationWay way, const ExperimentOptions& options, Report& report) {
  const std::string name = name_of(way);
  const std::size_t messages = options.quick ? 2000 : 10000;
  const unsigned seeds = options.seeds_or(1, 5);
  std::vector<LossyRun> whole;  // by seed, without loss
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    whole.push_back(run_with_loss(way, 0, seed, messages));
  }
  report.add(name + ", lossless", 0, each(whole, &LossyRun::throughput), "Gb/s");
  report.add(name + ", p99, lossless", 0, each(whole, &LossyRun::latency), "us");
  for (const double per : {16384.0, 4096.0, 1024.0, 256.0}) {
    report.progress(name + ", a packet of " + std::to_string(static_cast<int>(per)));
    std::vector<LossyRun> runs;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      runs.push_back(run_with_loss(way, 1 / per, seed, messages));
      runs.back().part = runs.back().throughput / whole[seed - 1].throughput;
    }
    const auto add = [&](const char* series, double LossyRun::*figure, const char* unit) {
      report.add(name + series, 1 / per, each(runs, figure), unit);
    };
    add("", &LossyRun::throughput, "Gb/s");
    add(", of its own without loss", &LossyRun::part, "of lossless");
    add(", p99", &LossyRun::latency, "us");
    add(", NAKs", &LossyRun::naks, "NAKs");
    add(", time-outs", &LossyRun::timeouts, "time-outs");
  }
}

void run_fig7(const ExperimentOptions& options, Report& report) {
  for (const ReplicationWay way : kReplicationWays) measure_loss(way, options, report);
}

}  // namespace mcrdma_two_racks

const Experiment kMcRdmaFig4 = {
    "mcrdma-fig4",
    "a host writes to one in its rack and one in another, eight messages at a time: by size",
    "MC-RDMA fig. 4",
    "10 s quick, a minute",
    "bytes",
    "mc-rdma, throughput",
    "twice fan-out's from 8 KiB on",
    mcrdma_two_racks::run_fig4};

const Experiment kMcRdmaFig7 = {"mcrdma-fig7",
                                "the same with loss on the way to the other rack: throughput and "
                                "the 99th percentile of latency",
                                "MC-RDMA fig. 7",
                                "10 s quick, 2 min",
                                "loss",
                                "mc-rdma, of its own without loss",
                                "fan-out keeps more at 1/256, chains a little more",
                                mcrdma_two_racks::run_fig7};

}  // namespace cepheus::sim
