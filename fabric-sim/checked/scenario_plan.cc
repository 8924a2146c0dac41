#include "fabric-sim/checked/scenario_plan.h"

#include <array>
#include <numeric>

#include "fabric-sim/checked/fabric_plan.h"
#include "fabric-sim/checked/incidents.h"
#include "fabric-sim/checked/plan_variants.h"
#include "fabric-sim/checked/trunk_cut.h"
#include "fabric-sim/core/random.h"
#include "wire/sender_group.h"
#include "wire/splitmix.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;
using net::LinkConfig;
using net::Topology;

constexpr std::uint64_t kFeedbackWaits = 0xFEED, kQuestions = 0xA5C, kIdle = 0x1D1E;
constexpr std::size_t kMinHosts = 2;
constexpr std::size_t kMaxHosts = 8;
constexpr std::size_t kMaxFarHosts = 16;

// Special features of some seeds; the rest of the seed's plan stays the same.
struct Character {
  Character(std::uint64_t seed, const PlanOptions& options) : random(seed ^ 0xFA2'A9A27) {
    far = random.chance(0.12) || options.far;
    plain_nics = random.chance(far ? 0.5 : 0.1);
  }
  Random random;
  bool far = false;         // hosts whose delays differ by up to 2 ms
  bool plain_nics = false;  // NICs that treat every NAK as new
};

std::size_t index_below(Random& random, std::size_t bound) {
  return static_cast<std::size_t>(random.below(bound));
}

Faults make_faults(Random& random) {
  Faults f;
  if (random.chance(0.05)) return f;  // a fabric without faults must work as well
  f.loss = random.fraction() * 0.10;  // with more loss all of a sender's retries may be lost
  f.duplicate = random.chance(0.7) ? random.fraction() * 0.10 : 0;
  f.reorder = random.chance(0.7) ? random.fraction() * 0.15 : 0;
  f.corrupt = random.chance(0.3) ? random.fraction() * 0.03 : 0;
  f.reorder_by = random.chance(0.4) ? random.between(200us, 1500us) : random.between(5us, 40us);
  f.begin = random.chance(0.4) ? wire::Duration{0} : wire::Duration{300us};
  f.end = f.begin + random.between(1ms, 6ms);
  return f;
}

// Switches in a random tree, with a host at every leaf.
void add_switches(Random& random, Topology& topology, std::size_t count, const Faults& faults,
                  const net::Rules& rules) {
  for (std::size_t i = 0; i < count; ++i) {
    net::SwitchSpec spec;
    spec.name = "s" + std::to_string(i);
    configure_switch(random, spec, rules);
    topology.switches.push_back(spec);
    if (i == 0) continue;
    const std::size_t other = index_below(random, i);
    const net::LinkConfig link = make_link(random, faults);
    topology.trunks.push_back({other, i, link, link});
  }
}

std::vector<std::size_t> leaves_of(const Topology& topology) {
  std::vector<std::size_t> degree(topology.switches.size(), 0);
  for (const net::TrunkSpec& trunk : topology.trunks) {
    ++degree[trunk.a];
    ++degree[trunk.b];
  }
  std::vector<std::size_t> leaves;
  for (std::size_t i = 0; i < degree.size(); ++i) {
    if (degree[i] <= 1) leaves.push_back(i);
  }
  return leaves;
}

void add_hosts(Random& random, Topology& topology, const Faults& faults, std::size_t most) {
  std::vector<std::size_t> places = leaves_of(topology);
  const std::size_t least = std::max(kMinHosts, places.size());
  const std::size_t count =
      random.between(static_cast<std::uint32_t>(least), static_cast<std::uint32_t>(most));
  while (places.size() < count) places.push_back(index_below(random, topology.switches.size()));
  for (std::size_t i = 0; i < count; ++i) {
    net::HostSpec host;
    host.name = "h" + std::to_string(i);
    host.address = wire::Ipv4(wire::Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(i));
    host.switch_index = places[i];
    host.up = host.down = make_link(random, faults);
    topology.hosts.push_back(host);
  }
  // One host far away or on a slow link: the others' answers come long before its own.
  if (random.chance(0.35)) {
    net::HostSpec& slow = topology.hosts[index_below(random, count)];
    if (random.chance(0.5)) {
      slow.down.delay = random.between(50us, 300us);
    } else {
      slow.up.delay = random.between(50us, 300us);
    }
  }
}

// Each operation under way may have two, and many may be acknowledged late.
constexpr std::uint32_t kRegionsOfReductions = 512;

rnic::NicConfig make_nic(Random& random, std::uint32_t mtu) {
  rnic::NicConfig nic;
  nic.max_mtu = mtu;
  nic.make_icrc = random.chance(0.75);
  nic.window_packets = random.chance(0.8) ? random.between(2, 16) : 128;
  nic.ack_every = random.chance(0.8) ? random.between(1, 5) : 32;
  nic.min_ack_timeout = 1us;
  nic.timeout_doublings = TransportPlan::kTimeoutDoublings;
  nic.max_qps = 8;
  nic.max_regions = 8;
  nic.seed = random.next();
  return nic;
}

void add_messages(Random& random, GroupPlan& group, std::uint32_t mtu) {
  const std::uint32_t count = random.chance(0.5) ? random.between(2, 5) : random.between(4, 14);
  std::size_t source = index_below(random, group.members.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i > 0 && random.chance(0.6)) source = index_below(random, group.members.size());
    MessagePlan message;
    message.source = source;
    if (!random.chance(0.05)) {  // zero bytes are a packet as well
      message.bytes = (random.between(1, 6) - 1) * mtu + random.between(1, mtu);
    }
    group.messages.push_back(message);
  }
}

// Delays of hosts differ by far more than a packet's time through the fabric: the answers of the
// nearest and of the farthest are milliseconds apart, with retransmissions between them.
void spread_delays(Random& random, ScenarioPlan& plan) {
  const wire::Duration spread = random.between(200us, 2ms);
  for (net::HostSpec& host : plan.topology.hosts) {
    if (random.chance(0.3)) continue;  // near
    const wire::Duration far = random.between(wire::Duration{0}, spread);
    const wire::Duration down = random.between(wire::Duration{0}, far);
    host.down.delay += down;
    host.up.delay += far - down;
  }
  // A time-out is longer than the round trip; the other times are in proportion.
  while (plan.transport.ack_timeout() < 2 * spread + 1ms) ++plan.transport.timeout_code;
  plan.faults.end = plan.faults.begin + 4 * (plan.faults.end - plan.faults.begin);
  plan.recovery = 4s;
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.rest = 20ms;
}

// NICs that treat every NAK as new. Cables do not duplicate frames then, because no switch could
// hide a copy that is made behind the last switch.
void use_plain_nics(ScenarioPlan& plan) {
  for (rnic::NicConfig& nic : plan.nics) nic.every_nak_counts = true;
  plan.faults.duplicate = 0;
}

// Some groups are idle for longer than their members wait for an answer.
void add_idle_time(ScenarioPlan& plan) {
  if (plan.late_packets_meet_tombstone || wire::splitmix(plan.seed, kIdle) % 10 >= 3) return;
  plan.lasts = plan.faults.end + plan.transport.silence() * 3 / 2;
}

GroupPlan make_group(Random& random, std::size_t hosts, std::uint32_t mtu, std::uint32_t number) {
  GroupPlan group;
  group.id = wire::McstId(wire::kDefaultMcstPool.base.value() + 1 + number +
                          4 * static_cast<std::uint32_t>(random.below(0x4000)));
  group.epoch = static_cast<std::uint16_t>(random.next());
  std::vector<std::size_t> order(hosts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = hosts - 1; i > 0; --i)
    std::swap(order[i], order[index_below(random, i + 1)]);
  const bool all = random.chance(0.7);
  const std::size_t count = all ? hosts : random.between(2, static_cast<std::uint32_t>(hosts));
  for (std::size_t i = 0; i < count; ++i) group.members.push_back({order[i], random.between(0, 3)});
  group.leader = index_below(random, count);
  add_messages(random, group, mtu);
  return group;
}

// Times of waiting members and of switches, after the plan's other times are known.
void set_times(ScenarioPlan& plan) {
  // From far more often than live, in proportion to silence(), to very seldom.
  plan.transport.presence.first = 2ms * (1 << wire::splitmix(plan.seed, kQuestions) % 4);
  plan.transport.presence.last = 8 * plan.transport.presence.first;
  plan.transport.presence.again = 2ms;
  for (rnic::NicConfig& nic : plan.nics) {
    nic.own_timeout_code = static_cast<std::uint8_t>(plan.transport.timeout_code + 1);
  }
  // None, as shipped, or up to times after NICs' time-outs.
  const auto halvings = wire::splitmix(plan.seed, kFeedbackWaits) % 8;
  const wire::Duration feedback_wait =
      halvings < 4 ? plan.transport.ack_timeout() / (1 << 2 * halvings) : wire::Duration{0};
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.feedback_wait = feedback_wait;
    spec.config.gate_age = 2 * plan.transport.silence();
    // Longer than any program stalls: a leader that is silent for this time is gone.
    spec.config.age = std::max(spec.config.age, plan.transport.silence() / 2);
    spec.config.pending_age = std::max(spec.config.pending_age, plan.transport.silence() / 2);
  }
}

void use_features(ScenarioPlan& plan, const PlanOptions& options) {
  use_makes(plan, options);
  if (options.host_sync) use_host_sync(plan);
  if (options.writes || options.per_request) use_writes(plan, options.host_sync);
  if (options.per_request) use_announcements(plan);
  if (options.sender_groups) use_sender_groups(plan);
  if (options.long_turns) use_long_turns(plan, options.host_sync);
}

}  // namespace

LinkConfig make_link(Random& random, const Faults& faults) {
  LinkConfig link;
  constexpr std::array<std::uint64_t, 5> kGigabits{1, 2, 5, 10, 25};
  link.rate = wire::BitRate{random.one_of(kGigabits) * 1'000'000'000};
  link.delay = random.between(500ns, 8us);
  link.reorder_by = faults.reorder_by;
  return link;
}

void configure_switch(Random& random, net::SwitchSpec& spec, const net::Rules& rules) {
  constexpr std::array<std::uint32_t, 4> kHeld{0, 1, 4, 64};
  spec.config.max_held = random.one_of(kHeld);
  spec.config.rest = 4ms;
  spec.config.sender_lives = kSenderLives;
  // Senders repeat INSTALL each millisecond, not each second.
  spec.config.register_rate = 1'000'000;
  spec.config.reduction_probe = 8ms;
  spec.config.confirm_wait = 50us;  // shorter than a leader's time before a repeat
  spec.config.rules = rules;
}

ScenarioPlan make_plan(std::uint64_t seed, const PlanOptions& options) {
  Random random(seed);
  ScenarioPlan plan;
  plan.seed = seed;
  Character character(seed, options);
  const bool in_turns = !random.chance(0.1);
  std::size_t switches = random.chance(0.65) ? 1 : random.between(2, 4);
  if (!in_turns && switches == 1 && random.chance(0.7)) switches = random.between(2, 3);
  if (options.switches) switches = *options.switches;

  constexpr std::array<std::uint32_t, 6> kMtus{256, 256, 256, 256, 512, 1024};
  const std::uint32_t mtu = random.one_of(kMtus);
  plan.faults = make_faults(random);
  plan.topology.mtu = mtu;
  plan.topology.hello = {};                 // a tree has no alternative path
  plan.topology.seed = random.next() >> 1;  // a TOML integer has a sign
  add_switches(random, plan.topology, switches, plan.faults, options.rules);
  add_hosts(random, plan.topology, plan.faults, character.far ? kMaxFarHosts : kMaxHosts);
  plan.topology.assign_link_seeds();
  if (options.fabrics) {
    use_fabric_of_any_size(plan, options.cuts);
  } else if (options.cuts) {
    use_small_fabric(character.random, plan);
  }

  for (std::size_t i = 0; i < plan.topology.hosts.size(); ++i) {
    plan.nics.push_back(make_nic(random, mtu));
    if (options.reductions) plan.nics.back().max_regions = kRegionsOfReductions;
  }
  const std::uint32_t groups = random.chance(0.85) ? 1 : 2;
  for (std::uint32_t g = 0; g < groups; ++g) {
    plan.groups.push_back(make_group(random, plan.topology.hosts.size(), mtu, g));
    plan.groups.back().in_turns = in_turns;
    plan.groups.back().loss_ends = wire::splitmix(seed, g) % 3 == 0;
  }
  plan.transport.path_mtu = mtu;
  plan.transport.timeout_code = static_cast<std::uint8_t>(random.between(6, 8));
  plan.transport.min_rnr_timer = static_cast<std::uint8_t>(random.between(1, 7));
  plan.transport.receive_slots = random.between(3, 6);
  plan.transport.late_receive = random.between(20us, 400us);
  plan.transport.turn_pause = in_turns ? 80us : 20us;
  plan.late_packets_meet_tombstone = random.chance(0.5);
  plan.reduces = options.reductions;
  if (character.far) spread_delays(character.random, plan);
  if (character.plain_nics) use_plain_nics(plan);
  if (!options.congestion) use_mtus(plan);
  use_features(plan, options);
  add_idle_time(plan);
  if (options.incidents) add_incidents(plan);
  if (options.incidents && plan.reduces) add_hostile_member(plan);
  if (options.cuts) {
    add_trunk_cut(character.random, plan);
  } else if (options.fabrics && last_restart(plan).count() > 0) {
    add_successors(character.random, plan, last_restart(plan));
  }
  if (options.congestion) use_congestion(plan);
  if (!options.congestion) use_boxes(plan);
  set_times(plan);
  return plan;
}

namespace {

constexpr std::uint64_t kSenderStream =
    0x5'E2DE'2000;  // so that other parts of the seed's plan stay the same

void use_one_sender(GroupPlan& group) {
  constexpr std::size_t kMost = wire::SenderGroupMessage::kMaxReceivers + 1;
  group.has_one_sender = true;
  group.in_turns = true;
  std::swap(group.members.front(), group.members[group.leader]);
  group.leader = 0;
  if (group.members.size() > kMost) group.members.resize(kMost);
  for (MessagePlan& m : group.messages) m.source = group.leader;
}

}  // namespace

wire::Qpn virtual_qpn_of(const GroupPlan& group) {
  return wire::Qpn(wire::kFirstSenderGroupQpn + (group.id.value() & 0xFFFF) * 16);
}

void use_sender_groups(ScenarioPlan& plan) {
  Random random(plan.seed ^ kSenderStream);
  const auto branching =
      random.chance(0.5) ? net::SenderGroups::kEverywhere : net::SenderGroups::kRacks;
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.sender_groups = branching;
  for (GroupPlan& group : plan.groups) use_one_sender(group);
}

}  // namespace cepheus::sim
