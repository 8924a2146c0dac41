// How fast the simulator is: packet-hops a second of one core, for a multicast from one host to all
// others of a fat-tree. A packet-hop is one packet over one link: data, feedback, registration.
//
//     sim_bench [--quick]
//
// A table on standard output: median and range of the runs.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

#include "fabric-sim/experiments/multicast_group.h"
#include "net/shapes.h"

namespace {

using namespace cepheus;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Case {
  std::size_t ports;      // of each switch
  std::size_t receivers;  // the first hosts, rack by rack
  std::uint32_t bytes;
};

struct Result {
  double built = 0, registered = 0, sent = 0;  // seconds
  std::uint64_t hops = 0;
  std::size_t hosts = 0;
  wire::Duration virtual_time{};
};

std::uint64_t hops_of(const sim::Network& network) {
  std::uint64_t hops = 0;
  for (const auto& cable : network.cables()) hops += cable->delivered();
  return hops;
}

Result run(const Case& c) {
  net::LinkConfig link;
  link.rate = wire::BitRate{100'000'000'000};
  link.delay = std::chrono::microseconds(1);
  const auto begin = Clock::now();
  net::Topology topology = net::fat_tree(c.ports, link);
  topology.hello = {};  // nothing fails here
  rnic::NicConfig nic;
  nic.max_qps = 8;
  nic.make_icrc = false;
  nic.moves_payload = false;
  const std::vector<rnic::NicConfig> nics(topology.hosts.size(), nic);
  sim::Simulator simulator(~std::uint64_t{0});
  simulator.trace().turn_off();
  sim::Network network(simulator, topology, nics);
  network.set_checked(false);
  std::vector<std::uint8_t> memory(c.bytes);
  std::vector<std::size_t> hosts(c.receivers + 1);
  std::iota(hosts.begin(), hosts.end(), std::size_t{0});
  const auto built = Clock::now();
  sim::MulticastGroup group(simulator, network, wire::McstId(198, 18, 0, 1), hosts, memory);
  if (!group.set_up()) return {};
  const auto ready = Clock::now();
  const std::uint64_t before = hops_of(network);
  const wire::Instant sent_at = simulator.now();
  group.send(0, c.bytes);
  while (!group.is_done()) simulator.run(simulator.now() + std::chrono::microseconds(100));
  Result r;
  r.sent = Seconds(Clock::now() - ready).count();
  r.built = Seconds(built - begin).count();
  r.registered = Seconds(ready - built).count();
  r.hops = hops_of(network) - before;
  r.hosts = topology.hosts.size();
  r.virtual_time = group.received_at() - sent_at;
  return r;
}

void print(const Case& c, std::vector<Result> results) {
  std::sort(results.begin(), results.end(),
            [](const Result& a, const Result& b) { return a.sent < b.sent; });
  const Result& middle = results[results.size() / 2];
  const auto rate = [](const Result& r) { return static_cast<double>(r.hops) / r.sent / 1e6; };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%5zu %9zu %8.1f %9.2f  %.2f..%.2f %8.2f %10.1f %9.3f %8ld\n", middle.hosts,
              c.receivers, c.bytes / 1048576.0, rate(middle), rate(results.back()),
              rate(results.front()), middle.built, 1e3 * middle.registered,
              std::chrono::duration<double, std::milli>(middle.virtual_time).count(),
              usage.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "usage: sim_bench [--quick]\n");
    return 2;
  }
  const std::vector<Case> cases =
      quick ? std::vector<Case>{{4, 15, 4 << 20}, {8, 127, 1 << 20}}
            : std::vector<Case>{
                  {4, 15, 16 << 20}, {8, 127, 16 << 20}, {16, 512, 16 << 20}, {16, 1023, 16 << 20}};
  std::printf("simulated fat-trees, 100 Gb/s, 1 us a link; one core\n");
  std::printf(
      "hosts receivers      MiB M hops/s  range    built s  register ms   FCT ms  RSS MiB\n");
  for (const Case& c : cases) {
    std::vector<Result> results;
    for (int i = 0; i < (quick ? 3 : 5); ++i) {
      results.push_back(run(c));
      if (results.back().hops == 0) {
        std::fprintf(stderr, "sim_bench: the group was not registered\n");
        return 1;
      }
    }
    print(c, std::move(results));
  }
  return 0;
}
