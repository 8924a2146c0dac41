// How fast the simulator is, one case a run. A packet-hop is one packet over one link: data,
// feedback, registration.
//
//     sim_bench CASE PORTS [HOSTS] [BYTES]
//
//     multicast     the first host to the next HOSTS - 1, rack by rack
//     permutation   every host to the one half the fabric away, all at once
//     chain         from each of HOSTS hosts to the next, in as many slices
//     register      HOSTS hosts become a group; nothing is sent
//     flight        the same, then the first host sends: memory of a packet under way
//
// All in a fat-tree of PORTS-port switches (fewer pods where HOSTS need fewer), 100 Gb/s and 1 us a
// link; `flight` has links of 1 ms, so that all copies of a window are under way at once. A line
// of JSON: seconds of the core, packet-hops, virtual time, memory.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "fabric-sim/experiments/multicast_group.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"
#include "net/shapes.h"

namespace {

using namespace cepheus;
using sim::Testbed;
// CPU seconds of this process: other processes do not count.
double core_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Case {
  std::string name;
  std::size_t ports = 0, hosts = 0;
  std::uint64_t bytes = 0;

  std::size_t hosts_per_pod() const { return ports * ports / 4; }
  std::size_t pods() const {
    return std::min(ports,
                    std::max<std::size_t>(2, (hosts + hosts_per_pod() - 1) / hosts_per_pod()));
  }
};

constexpr auto kLongLink = std::chrono::milliseconds(1);

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Sends, and stops when the copies are on the links to their hosts. Returns their number and memory.
std::pair<std::size_t, std::uint64_t> fill_links(Testbed& testbed, sim::MulticastGroup& group,
                                                 std::uint64_t bytes) {
  constexpr int kLinks = 6;  // from host to host
  const std::uint64_t before = resident_bytes();
  group.send(0, static_cast<std::uint32_t>(bytes));
  sim::Simulator& simulator = testbed.simulator();
  simulator.run(simulator.now() + kLinks * kLongLink - kLongLink / 2);
  return {testbed.network().frames_in_flight(), resident_bytes() - before};
}

// Every host sends `bytes` to a host half the fabric away. Runs until all have received them.
void permute(Testbed& testbed, std::size_t hosts, std::uint64_t bytes) {
  std::vector<std::unique_ptr<sim::UnicastRun>> flows;
  for (std::size_t i = 0; i < hosts; ++i) {
    const std::vector<std::size_t> ends{i, (i + hosts / 2) % hosts};
    flows.push_back(std::make_unique<sim::UnicastRun>(testbed, sim::fan_out(2, bytes), ends));
  }
  for (const auto& flow : flows) flow->start();
  testbed.run_until(
      [&] { return std::ranges::all_of(flows, [](const auto& f) { return f->is_done(); }); });
}

void run(const Case& c) {
  const auto begin = core_seconds();
  sim::TestbedConfig config;
  config.memory = std::max<std::uint64_t>(c.bytes, 1);
  config.max_qps = 8;
  const bool is_long = c.name == "flight";
  const net::LinkConfig link = is_long ? sim::paper_link(100, kLongLink) : sim::paper_link();
  if (is_long) config.ack_timeout = 100 * kLongLink;
  Testbed testbed(net::fat_tree(c.ports, link, c.pods()), config);
  const std::size_t there = testbed.network().host_count();
  const std::size_t hosts = c.hosts == 0 ? there : c.hosts;
  const double built = core_seconds() - begin;
  const auto ready = core_seconds();
  const wire::Instant virtual_begin = testbed.simulator().now();
  double set_up = 0;
  std::pair<std::size_t, std::uint64_t> flight{};
  std::uint64_t before = 0;
  auto sending = ready;
  if (c.name == "chain") {
    sim::time_of(testbed, sim::chain(hosts, c.bytes, hosts), sim::first_hosts(hosts));
  } else if (c.name == "permutation") {
    permute(testbed, hosts, c.bytes);
  } else {
    sim::MulticastGroup group(testbed, sim::first_hosts(hosts));
    set_up = core_seconds() - ready;
    if (is_long) flight = fill_links(testbed, group, c.bytes);
    if (c.name == "multicast") {
      before = testbed.totals().hops;
      sending = core_seconds();
      group.send(0, static_cast<std::uint32_t>(c.bytes));
      testbed.run_until([&] { return group.is_done(); });
    }
  }
  const double took = core_seconds() - sending;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto virtual_us = sim::microseconds(testbed.simulator().now() - virtual_begin);
  std::printf("%s\n", nlohmann::json{{"case", c.name},
                                     {"hosts", there},
                                     {"built", built},
                                     {"set_up", set_up},
                                     {"seconds", took},
                                     {"hops", testbed.totals().hops - before},
                                     {"virtual_us", virtual_us},
                                     {"in_flight", flight.first},
                                     {"in_flight_bytes", flight.second},
                                     {"rss_kib", usage.ru_maxrss}}
                          .dump()
                          .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool known = name == "multicast" || name == "permutation" || name == "chain" ||
                     name == "register" || name == "flight";
  if (!known || argc < 3 || argc > 5) {
    std::fprintf(stderr,
                 "usage: sim_bench multicast|permutation|chain|register|flight PORTS [HOSTS] "
                 "[BYTES]\n");
    return 2;
  }
  try {
    Case c{name, std::stoul(argv[2]), argc > 3 ? std::stoul(argv[3]) : 0,
           argc > 4 ? std::stoull(argv[4]) : 0};
    if (c.hosts == 0) c.hosts = c.ports * c.hosts_per_pod();
    run(c);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sim_bench: %s\n", error.what());
    return 1;
  }
}
