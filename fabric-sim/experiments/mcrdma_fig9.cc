// Training with parameter servers: gradients to a server, their sum back to all its workers.
// Servers have the first pod, workers random places in the others. An iteration begins when all
// workers have the last result; the sum itself takes no time. It runs without and with DCQCN.
#include <algorithm>
#include <numeric>
#include <optional>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "fabric-sim/experiments/message_ends.h"
#include "fabric-sim/experiments/replication.h"
#include "net/shapes.h"

namespace cepheus::sim {
namespace mcrdma_fig9 {

using namespace std::chrono_literals;

constexpr std::size_t kServers = 5, kWorkers = 6;  // workers of each server
constexpr std::size_t kPorts = 6, kPod = kPorts * kPorts / 4, kAll = kPod * kPorts;
constexpr std::uint32_t kMiB = 1 << 20;

// A server and its workers: an iteration begins when all workers have the result of the last one.
class Training {
 public:
  Training(Testbed& testbed, ReplicationWay way, std::size_t server,
           const std::vector<std::size_t>& workers, std::uint32_t bytes, std::size_t iterations)
      : simulator_(testbed.simulator()),
        bytes_(bytes),
        iterations_(iterations),
        to_workers_(make_replication(way, testbed, server, workers, 0)) {
    for (const std::size_t worker : workers) {
      gradients_.push_back(std::make_unique<Channel>(testbed, worker, server));
      gradients_.back()->sink.on_received([this](Instant) {
        if (--missing_ > 0) return;
        missing_ = gradients_.size();
        to_workers_->send(bytes_);
      });
    }
    to_workers_->on_received([this](std::size_t, Instant now) {
      if (--missing_ == 0) end_iteration(now);
    });
  }

  Replication& to_workers() { return *to_workers_; }
  void begin() {
    begun_at_ = simulator_.now();
    missing_ = gradients_.size();
    for (const auto& gradient : gradients_) gradient->source.send(bytes_);
  }
  bool is_done() const { return times_.size() == iterations_; }
  const std::vector<double>& times() const { return times_; }  // ms, of each iteration

 private:
  void end_iteration(Instant now) {
    times_.push_back(milliseconds(now - begun_at_));
    if (!is_done()) begin();
  }

  Simulator& simulator_;
  const std::uint32_t bytes_;
  const std::size_t iterations_;
  std::unique_ptr<Replication> to_workers_;
  std::vector<std::unique_ptr<Channel>> gradients_;
  std::size_t missing_ = 0;  // messages of the current half of the iteration
  Instant begun_at_{};
  std::vector<double> times_;
};

// Mean iteration of all servers, in ms.
double train(Testbed& testbed, ReplicationWay way, std::uint32_t bytes, std::size_t iterations,
             std::uint64_t seed) {
  const auto places = random_hosts(kServers * kWorkers, kAll - kPod, seed);
  std::vector<std::unique_ptr<Training>> servers;
  for (std::size_t s = 0; s < kServers; ++s) {
    std::vector<std::size_t> workers;
    for (std::size_t w = 0; w < kWorkers; ++w) workers.push_back(kPod + places[s * kWorkers + w]);
    servers.push_back(std::make_unique<Training>(testbed, way, s, workers, bytes, iterations));
    servers.back()->to_workers().begin();
  }
  const auto all = [&](auto&& what) { return std::ranges::all_of(servers, what); };
  testbed.run_until([&] { return all([](auto& s) { return s->to_workers().is_ready(); }); });
  for (const auto& server : servers) server->begin();
  testbed.run_until([&] { return all([](auto& s) { return s->is_done(); }); });
  double sum = 0;
  for (const auto& server : servers) {
    sum = std::accumulate(server->times().begin(), server->times().end(), sum);
  }
  return sum / static_cast<double>(kServers * iterations);
}

constexpr double kPaperMcRdma = 6.1;  // ms at 8 MB
double paper_at_8(ReplicationWay way) {
  if (way == ReplicationWay::kMcRdma) return kPaperMcRdma;
  return way == ReplicationWay::kFanOut ? 10.8 : 11.3;
}

void measure(bool has_control, const ExperimentOptions& options, Report& report) {
  const std::size_t iterations = options.quick ? 2 : 5;
  const std::string note = has_control ? ", dcqcn" : "";
  const net::Topology fabric = net::fat_tree(kPorts, paper_link(100, 500ns));
  for (const std::uint32_t mib : {1u, 4u, 8u}) {
    double ours = 0;
    for (const ReplicationWay way : kReplicationWays) {
      report.progress(name_of(way) + note + ", " + std::to_string(mib) + " MiB");
      std::vector<double> times;
      for (unsigned seed = 1; seed <= options.seeds_or(1, 5); ++seed) {
        const TestbedConfig config{.seed = seed, .ack_timeout = kNoTimeout, .memory = mib * kMiB};
        Testbed testbed = has_control ? congested_testbed(fabric, kAllCnps, options, config)
                                      : Testbed(fabric, config);
        times.push_back(train(testbed, way, mib * kMiB, iterations, seed));
      }
      const std::optional<double> paper = mib == 8 ? std::optional(paper_at_8(way)) : std::nullopt;
      const double time = median(times);
      if (way == ReplicationWay::kMcRdma) ours = time;
      report.add(name_of(way) + note, mib, times, "ms", {.paper = paper});
      if (way == ReplicationWay::kMcRdma) continue;
      report.add(name_of(way) + (" over mc-rdma" + note), mib, time / ours, "times",
                 {.paper = paper ? std::optional(*paper / kPaperMcRdma) : std::nullopt});
    }
  }
}

void run(const ExperimentOptions& options, Report& report) {
  measure(false, options, report);
  measure(true, options, report);
}

}  // namespace mcrdma_fig9

const Experiment kMcRdmaFig9 = {
    "mcrdma-fig9",
    "training with five parameter servers of six workers each: an iteration",
    "MC-RDMA fig. 9",
    "20 s quick, minutes",
    "MiB",
    "fan-out over mc-rdma",
    "within 4 % without congestion control; 1.24 times with DCQCN",
    mcrdma_fig9::run};

}  // namespace cepheus::sim
