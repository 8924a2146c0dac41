// How fast the simulator is, one case a run. A packet-hop is one packet over one link: data,
// feedback, registration.
//
//     sim_bench CASE PORTS [HOSTS] [BYTES]
//
//     multicast     the first host to the next HOSTS - 1, rack by rack
//     permutation   every host to the one half the fabric away, all at once
//     chain         from each of HOSTS hosts to the next, in as many slices
//     register      HOSTS hosts become a group; nothing is sent
//
// All in a fat-tree of PORTS-port switches (fewer pods where HOSTS need fewer), 100 Gb/s and 1 us a
// link. A line of JSON: seconds of this machine, packet-hops, virtual time, memory.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "fabric-sim/experiments/multicast_time.h"
#include "fabric-sim/experiments/rivals.h"
#include "fabric-sim/experiments/unicast_run.h"
#include "net/shapes.h"

namespace {

using namespace cepheus;
using sim::Testbed;
using Clock = std::chrono::steady_clock;

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

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// Every host sends `bytes` half the fabric away. Until all have what is for them.
void permute(Testbed& testbed, std::size_t hosts, std::uint64_t bytes) {
  std::vector<std::unique_ptr<sim::UnicastRun>> flows;
  for (std::size_t i = 0; i < hosts; ++i) {
    const std::vector<std::size_t> ends{i, (i + hosts / 2) % hosts};
    flows.push_back(std::make_unique<sim::UnicastRun>(testbed, sim::fan_out(2, bytes), ends));
  }
  for (const auto& flow : flows) flow->start();
  testbed.run_until([&] {
    return std::all_of(flows.begin(), flows.end(), [](const auto& f) { return f->is_done(); });
  });
}

void run(const Case& c) {
  const auto begin = Clock::now();
  sim::TestbedConfig config;
  config.memory = std::max<std::uint64_t>(c.bytes, 1);
  config.max_qps = 8;
  Testbed testbed(net::fat_tree(c.ports, sim::paper_link(), c.pods()), config);
  const std::size_t there = testbed.network().host_count();
  const std::size_t hosts = c.hosts == 0 ? there : c.hosts;
  const double built = seconds_since(begin);
  const auto ready = Clock::now();
  const wire::Instant virtual_begin = testbed.simulator().now();
  double set_up = 0;
  std::uint64_t before = 0;
  auto sending = ready;
  if (c.name == "chain") {
    sim::time_of(testbed, sim::chain(hosts, c.bytes, hosts), sim::first_hosts(hosts));
  } else if (c.name == "permutation") {
    permute(testbed, hosts, c.bytes);
  } else {
    sim::MulticastGroup group(testbed.simulator(), testbed.network(), sim::kFirstGroup,
                              sim::first_hosts(hosts), testbed.memory());
    if (!group.set_up()) throw std::runtime_error("the group is not set up");
    set_up = seconds_since(ready);
    if (c.name == "multicast") {
      before = testbed.totals().hops;
      sending = Clock::now();
      group.send(0, static_cast<std::uint32_t>(c.bytes));
      testbed.run_until([&] { return group.is_done(); });
    }
  }
  const double took = seconds_since(sending);
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
                                     {"rss_kib", usage.ru_maxrss}}
                          .dump()
                          .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool known =
      name == "multicast" || name == "permutation" || name == "chain" || name == "register";
  if (!known || argc < 3 || argc > 5) {
    std::fprintf(stderr,
                 "usage: sim_bench multicast|permutation|chain|register PORTS [HOSTS] [BYTES]\n");
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
