#include "fabric-sim/checked/congestion_plan.h"

#include "fabric-sim/core/random.h"
#include "net/buffer_plan.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kCongestionStream =
    0xC0'96E5'7104;  // the rest of the seed's plan stays as it is
constexpr std::uint64_t kHaltStream = 0x6'8A17'96E5;
constexpr wire::Bytes kHardlyAny = 4'000;

template <typename F>
void for_each_link(net::Topology& topology, F&& f) {
  for (net::HostSpec& host : topology.hosts) {
    f(host.up);
    f(host.down);
  }
  for (net::TrunkSpec& trunk : topology.trunks) {
    f(trunk.ab);
    f(trunk.ba);
  }
}

void add_marks(Random& random, net::Topology& topology) {
  net::EcnConfig ecn{.on = true};
  ecn.kmin = random.between(1, 2'000);
  ecn.kmax = ecn.kmin + random.between(0, 10'000);
  ecn.pmax = random.fraction();
  for_each_link(topology, [&](net::LinkConfig& link) { link.ecn = ecn; });
}

void choose_policies(Random& random, net::Topology& topology) {
  for (net::SwitchSpec& spec : topology.switches) {
    spec.config.rules.cnp_policy = static_cast<net::CnpPolicy>(random.below(3));
    spec.config.cnp_window = random.between(20us, 1ms);
  }
}

// Some NICs know nothing of congestion control.
void pace(Random& random, ScenarioPlan& plan) {
  const bool hpcc = random.chance(0.5);
  const bool echo = random.chance(0.4);
  const wire::Duration cnp_interval = random.between(5us, 50us);
  for (std::size_t i = 0; i < plan.nics.size(); ++i) {
    if (random.chance(0.2)) continue;
    rnic::CongestionConfig config;
    config.link = plan.topology.hosts[i].up.rate;
    config.reaction =
        hpcc ? rnic::DcqcnParameters::hpcc(config.link) : rnic::DcqcnParameters::orig();
    config.reaction.min_bps = 100'000'000;  // hpcc's would hardly ever be left on slow links
    config.notification = echo ? rnic::Notification::kCeEcho : rnic::Notification::kCnp;
    config.cnp_interval = cnp_interval;
    plan.nics[i].congestion = config;
  }
}

// Switches halt groups, and pause each other whenever anything waits, often for slow hosts.
void choose_halts(ScenarioPlan& plan) {
  Random random(plan.seed ^ kHaltStream);
  if (random.chance(0.6)) return;
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.buffer.group_halt = random.chance(0.8);
    spec.config.buffer.reserve = spec.config.buffer.hysteresis = 0;
    spec.config.buffer.share = 1.0 / 32;
  }
  for (net::HostSpec& host : plan.topology.hosts) {
    if (random.chance(0.6)) host.down.rate = wire::BitRate{200'000'000};
  }
}

void make_lossless(Random& random, ScenarioPlan& plan) {
  if (random.chance(0.6)) {
    net::HostSpec& slow = plan.topology.hosts[random.below(plan.topology.hosts.size())];
    slow.up.rate = slow.down.rate = wire::BitRate{500'000'000};
  }
  for_each_link(plan.topology, [](net::LinkConfig& link) { link.pfc.on = true; });
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.buffer.reserve = random.between(0, 1'500);
    spec.config.buffer.share = 1.0 / static_cast<double>(1u << random.between(1, 5));
    spec.config.buffer.hysteresis = random.between(0, 3'000);
  }
  choose_halts(plan);
  const auto buffers = net::buffer_plans(plan.topology);
  for (std::size_t s = 0; s < buffers.size(); ++s) {
    if (!buffers[s].has_lossless_ports()) continue;
    plan.topology.switches[s].config.buffer.bytes = buffers[s].least + random.below(kHardlyAny);
  }
  plan.faults.duplicate = plan.faults.reorder = 0;
}

}  // namespace

void use_congestion(ScenarioPlan& plan) {
  Random random(plan.seed ^ kCongestionStream);
  add_marks(random, plan.topology);
  choose_policies(random, plan.topology);
  if (random.chance(0.75)) make_lossless(random, plan);
  pace(random, plan);
}

}  // namespace cepheus::sim
