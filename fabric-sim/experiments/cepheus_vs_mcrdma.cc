// Both multicasts in the same scenarios: their state in switches, their times, and loss. Each run
// places source and receivers at random in a fat-tree of 128 hosts and sends one message. MC-RDMA
// runs with branching everywhere, and with switches of racks alone. Tables "if all may send" count
// one sender group for each member.
#include <algorithm>

#include "fabric-sim/experiments/all.h"
#include "fabric-sim/experiments/congested.h"
#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/sender_group.h"
#include "net/shapes.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace cepheus_vs_mcrdma {

constexpr std::uint32_t kSmall = 64 << 10, kLarge = 16 << 20;
enum class Kind { kCepheus, kMcRdma, kMcRdmaRacks };
constexpr Kind kKinds[] = {Kind::kCepheus, Kind::kMcRdma, Kind::kMcRdmaRacks};

const char* name_of(Kind kind) {
  if (kind == Kind::kCepheus) return "cepheus";
  return kind == Kind::kMcRdma ? "mc-rdma" : "mc-rdma, racks' switches alone";
}

struct Run {
  double set_up_us = 0, received_us = 0, acknowledged_us = 0;
  double timeouts = 0, naks = 0;
  double table_bytes = 0, largest_table = 0,
         switches = 0;  // of one group: in all, in one, switches with any
};

void count_tables(Testbed& testbed, Run& run) {
  for (const auto& node : testbed.network().switches()) {
    double bytes = 0;
    for (const fabric::GroupView& g : node->engine().groups()) {
      bytes += static_cast<double>(g.table_bytes);
    }
    for (const fabric::SenderGroupView& g : node->engine().sender_groups()) {
      bytes += static_cast<double>(g.rule_bytes + g.merge_bytes);
    }
    run.table_bytes += bytes;
    run.largest_table = std::max(run.largest_table, bytes);
    run.switches += bytes > 0 ? 1 : 0;
  }
}

// The first host to the others.
Run run_one(Kind kind, std::size_t receivers, std::uint32_t bytes, double loss,
            std::uint64_t seed) {
  constexpr std::size_t kPorts = 8, kHosts = kPorts * kPorts * kPorts / 4;
  net::Topology topology = net::fat_tree(kPorts, paper_link());
  lose(topology, LossAt::kCopies, loss);
  for (net::SwitchSpec& one : topology.switches) {
    one.config.sender_groups =
        kind == Kind::kMcRdmaRacks ? net::SenderGroups::kRacks : net::SenderGroups::kEverywhere;
  }
  Testbed testbed(topology, {.seed = seed, .memory = bytes});
  const std::vector<std::size_t> hosts = random_hosts(receivers + 1, kHosts, seed);
  Run run;
  const Instant began_at = testbed.simulator().now();
  if (kind == Kind::kCepheus) {
    MulticastGroup group(testbed, hosts);
    run.set_up_us = microseconds(group.ready_at() - began_at);
    count_tables(testbed, run);
    const Instant begin = testbed.simulator().now();
    group.send(0, bytes);
    testbed.run_until([&] { return group.is_done(); });
    run.received_us = microseconds(group.received_at() - begin);
    run.acknowledged_us = microseconds(group.completed_at() - begin);
  } else {
    SenderGroup group(testbed, hosts[0], {hosts.begin() + 1, hosts.end()}, 0);
    group.begin();
    testbed.run_until([&] { return group.is_ready(); });
    run.set_up_us = microseconds(group.ready_at() - began_at);
    count_tables(testbed, run);
    const Instant begin = testbed.simulator().now();
    bool is_done = false;
    group.on_received(
        [&](std::size_t, Instant now) { run.received_us = microseconds(now - begin); });
    group.on_acknowledged([&](Instant now) {
      run.acknowledged_us = microseconds(now - begin);
      is_done = true;
    });
    group.send(bytes);
    testbed.run_until([&] { return is_done; });
  }
  run.timeouts = static_cast<double>(testbed.totals().timeouts);
  run.naks = static_cast<double>(testbed.totals().naks);
  return run;
}

std::vector<Run> run_seeds(Kind kind, std::size_t receivers, std::uint32_t bytes, double loss,
                           unsigned seeds) {
  std::vector<Run> runs;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    runs.push_back(run_one(kind, receivers, bytes, loss, seed));
  }
  return runs;
}

void compare_sizes(Kind kind, unsigned seeds, Report& report) {
  const std::string name = name_of(kind);
  for (const std::size_t receivers : {3u, 7u, 15u}) {
    report.progress(name + ", " + std::to_string(receivers) + " receivers");
    const auto x = static_cast<double>(receivers);
    const auto small = run_seeds(kind, receivers, kSmall, 0, seeds);
    const auto large = run_seeds(kind, receivers, kLarge, 0, seeds);
    report.add(name + ", 64 KiB", x, each(small, &Run::received_us), "us");
    report.add(name + ", 16 MiB", x, each(large, &Run::received_us), "us of 16 MiB");
    report.add(name + ", set-up", x, each(small, &Run::set_up_us), "us of set-up");
    std::vector<double> bytes = each(small, &Run::table_bytes);
    report.add(name + ", tables of a group", x, bytes, "B");
    report.add(name + ", largest in a switch", x, each(small, &Run::largest_table), "B");
    report.add(name + ", switches with a table", x, each(small, &Run::switches), "switches");
    const double groups = kind == Kind::kCepheus ? 1 : x + 1;
    for (double& of_all : bytes) of_all *= groups;
    report.add(name + ", tables if all may send", x, bytes, "B");
  }
}

void compare_losses(Kind kind, unsigned seeds, Report& report) {
  constexpr std::size_t kReceivers = 7;
  for (const double loss : {1e-4, 1e-3}) {
    const std::string name =
        std::string(name_of(kind)) + (loss < 5e-4 ? ", loss 1e-4" : ", loss 1e-3");
    report.progress(name);
    const auto runs = run_seeds(kind, kReceivers, kLarge, loss, seeds);
    report.add(name, kReceivers, each(runs, &Run::acknowledged_us), "us of 16 MiB");
    report.add(name + ", NAKs", kReceivers, each(runs, &Run::naks), "NAKs");
    report.add(name + ", time-outs", kReceivers, each(runs, &Run::timeouts), "time-outs");
  }
}

void run(const ExperimentOptions& options, Report& report) {
  const unsigned seeds = options.seeds_or(3, 9);
  for (const Kind kind : kKinds) compare_sizes(kind, seeds, report);
  for (const Kind kind : kKinds) compare_losses(kind, seeds, report);
}

}  // namespace cepheus_vs_mcrdma

const Experiment kCepheusVsMcRdma = {
    "cepheus-vs-mcrdma",
    "Cepheus beside MC-RDMA: time, set-up, tables and loss of one multicast",
    "our own",
    "20 s quick, a minute",
    "receivers",
    "mc-rdma, 16 MiB",
    "equal to Cepheus's; its tables are smaller",
    cepheus_vs_mcrdma::run};

}  // namespace cepheus::sim
