#include "fabric-sim/checked/plan_variants.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "fabric-sim/checked/network_checks.h"
#include "fabric-sim/core/random.h"
#include "net/buffer_plan.h"
#include "nic-emulator/engine/nic_profile.h"
#include "wire/announcement.h"
#include "wire/mrp.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNicStream = 0x4'1C0F'07E5;
constexpr std::uint64_t kMtuStream = 0x9'0170'07E5;
constexpr std::uint64_t kBoxStream = 0x7'B0C5'07E5;
constexpr std::uint64_t kHostSyncStream = 0x5'A7C'5E7C;
constexpr std::uint64_t kWriteStream = 0x3'217E'0F0F;
constexpr std::uint64_t kLongTurnsStream = 0x10'6E52'7425;
constexpr std::uint64_t kCongestionStream = 0xC0'96E5'7104;
constexpr std::uint64_t kHaltStream = 0x6'8A17'96E5;

void make_writes(Random& random, GroupPlan& group, std::uint32_t mtu, bool silent_ends) {
  std::uint32_t largest = mtu;
  for (const MessagePlan& m : group.messages) largest = std::max(largest, m.bytes);
  // Few places, so that WRITEs overlap older ones.
  const std::uint32_t places = random.between(1, 3);
  group.region_bytes = places * largest;
  for (std::size_t i = 0; i < group.messages.size(); ++i) {
    MessagePlan& m = group.messages[i];
    if (random.chance(0.3)) continue;
    const auto place = static_cast<std::uint32_t>(random.below(places));
    m.offset = place * largest + static_cast<std::uint32_t>(random.below(largest - m.bytes + 1));
    // The next source has to learn of the turn's end: by immediate data, or outside the network.
    const bool is_runs_last =
        i + 1 == group.messages.size() || group.messages[i + 1].source != m.source;
    const bool has_completion = (is_runs_last && !silent_ends) || random.chance(0.5);
    m.kind = has_completion ? MessageKind::kWriteImm : MessageKind::kWrite;
  }
  MessagePlan& last = group.messages.back();
  if (!random.chance(0.2) || last.bytes == 0) return;
  last.kind = random.chance(0.5) ? MessageKind::kWriteImm : MessageKind::kWrite;
  last.offset = group.region_bytes - static_cast<std::uint32_t>(random.below(last.bytes));
  last.outside = true;
}

constexpr std::uint64_t kHalf = 1 << 23, kCircle = 1 << 24;
constexpr std::array<std::uint64_t, 5> kLengths{kHalf / 2, kHalf, kCircle - kHalf / 2, kCircle,
                                                kCircle + kHalf};
constexpr std::array<std::uint64_t, 3> kLongest{std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                                (std::uint64_t{1} << 32) + kHalf};
constexpr std::uint32_t kNear = 24;  // packets: about the size of the messages around a jump

std::uint64_t length_of_jump(Random& random, bool host_sync) {
  const bool is_longest = !host_sync && random.chance(0.3);
  const std::uint64_t edge = is_longest ? random.one_of(kLongest) : random.one_of(kLengths);
  return edge + kNear - random.below(2 * kNear);
}

// An epoch of the group with a first PSN among the highest possible; the last one before the wrap
// if there is a choice.
std::uint16_t late_epoch(Random& random, wire::McstId id) {
  const auto first = static_cast<std::uint16_t>(random.next());
  std::uint16_t latest = first;
  for (std::uint16_t n = 0; n < 512; ++n) {
    const auto epoch = static_cast<std::uint16_t>(first + n);
    const auto psn = wire::group_start_psn(id, epoch).value();
    if (psn > wire::group_start_psn(id, latest).value()) latest = epoch;
  }
  return latest;
}

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

// Some NICs have no congestion control.
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
    // Hpcc's value would hardly ever be exceeded on slow links.
    config.reaction.min_bps = 100'000'000;
    config.notification = echo ? rnic::Notification::kCeEcho : rnic::Notification::kCnp;
    config.cnp_interval = cnp_interval;
    plan.nics[i].congestion = config;
  }
}

// Switches halt groups, and pause each other whenever a frame waits, often because of slow hosts.
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

// Whether groups of such seeds live with this NIC. With fixed time-outs a sender gives up on a member
// that stands still, or stops its queue pair, for longer than its retries. Groups whose RNR retries
// end may fail. So they would show little of incidents, cuts and waits for last sources. Where fresh
// groups must come up, these fail, too.
bool can_live(const rnic::NicConfig& nic, const PlanOptions& options) {
  const bool may_fail = options.incidents || options.cuts || options.fabrics || options.host_sync;
  if (nic.manners.limits_rnr_retries && may_fail) return false;
  if (nic.timeout_doublings == 0 && (options.incidents || options.host_sync)) return false;
  return !options.host_sync || nic.manners.can_set_psns();
}

}  // namespace

void use_makes(ScenarioPlan& plan, const PlanOptions& options) {
  const std::string_view name = options.nic;
  if (name == rnic::nic_profiles().front().name) return;
  Random random(plan.seed ^ kNicStream);
  const rnic::NicProfile* const fixed = rnic::find_nic_profile(name);
  assert(fixed != nullptr || name.empty());
  const auto draw = [&]() -> const rnic::NicProfile& {
    const auto all = rnic::nic_profiles();
    return fixed != nullptr ? *fixed : all[random.below(all.size())];
  };
  // A cluster often has one make alone.
  const rnic::NicProfile* const only = random.chance(0.5) ? &draw() : nullptr;
  for (rnic::NicConfig& nic : plan.nics) {
    const rnic::NicProfile& profile = only != nullptr ? *only : draw();
    rnic::NicConfig made = nic;
    profile.apply(made);
    // The NIC's own code is the program's plus 1 (scenario_plan.cc, set_times), and its longest wait
    // is that of the program's code: stalled members outlast neither.
    if (made.manners.ignores_timeout_code) --made.timeout_doublings;
    // A group with one NIC of finite RNR retries may fail: it would show little of the others.
    const bool has_finite_alone = only != nullptr && made.manners.limits_rnr_retries;
    const bool is_drawn = fixed != nullptr || profile.serves_groups() || has_finite_alone;
    if (is_drawn && can_live(made, options)) nic = made;
  }
}

// Messages keep their number of packets, as far as the group's path MTU is known.
void use_mtus(ScenarioPlan& plan) {
  constexpr std::array<std::uint32_t, 3> kMtus{1024, 2048, 4096};
  Random random(plan.seed ^ kMtuStream);
  if (random.chance(0.7)) return;
  const std::uint32_t before = std::exchange(plan.transport.path_mtu, kMtus.front());
  plan.topology.mtu = kMtus.back();
  const auto draw = [&] { return random.chance(0.6) ? kMtus.back() : random.one_of(kMtus); };
  for (rnic::NicConfig& nic : plan.nics) nic.max_mtu = draw();
  for (net::HostSpec& host : plan.topology.hosts) host.up.mtu = host.down.mtu = draw();
  for (net::TrunkSpec& trunk : plan.topology.trunks) trunk.ab.mtu = trunk.ba.mtu = draw();
  for (GroupPlan& group : plan.groups) {
    const std::uint32_t scale = least_mtu(plan, group).value_or(kMtus.front()) / before;
    for (MessagePlan& m : group.messages) m.bytes *= scale;
  }
}

void use_boxes(ScenarioPlan& plan) {
  Random random(plan.seed ^ kBoxStream);
  if (random.chance(0.8)) return;
  BoxManners& box = plan.box;
  box.receive_ring = random.between(64, 512);
  box.per_frame = random.between(50ns, 500ns);
  if (random.chance(0.7)) {
    box.transmit_ring = random.between(64, 512);
    box.per_copy = random.between(50ns, 500ns);
    box.waits_for_space = random.chance(0.7);
  }
  box.swaps_copies = random.chance(0.3);
}

void use_host_sync(ScenarioPlan& plan) {
  Random random(plan.seed ^ kHostSyncStream);
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.rules.source_change = net::SourceChange::kHostSync;
  }
  for (GroupPlan& group : plan.groups) group.in_turns = true;
  // A newcomer that must wait for a last source is silent for at most 82 ms: senders outlast that,
  // and it does not count as dead.
  plan.transport.least_silence = 300ms;
  plan.transport.timeout_code = std::max<std::uint8_t>(plan.transport.timeout_code, 10);
  plan.recovery = 4s;
  // A stopped queue pair is silent for the duration of a driver's call. A program that computes
  // before it stops its own queue pair is late, but does not count as dead.
  const wire::Duration longest = plan.transport.silence() / 3;
  plan.transport.sync_pause = random.between(5us, random.chance(0.7) ? 100us : 5ms);
  plan.transport.late_sync =
      random.chance(0.6) ? random.between(0us, 100us) : random.between(500us, longest);
}

void use_writes(ScenarioPlan& plan, bool silent_ends) {
  Random random(plan.seed ^ kWriteStream);
  for (GroupPlan& group : plan.groups) {
    group.in_turns = true;
    make_writes(random, group, plan.transport.path_mtu, silent_ends);
  }
}

void use_announcements(ScenarioPlan& plan) {
  const std::size_t most = wire::Announcement::most_members(plan.transport.path_mtu);
  for (net::SwitchSpec& spec : plan.topology.switches) {
    spec.config.rules.write_mode = net::WriteMode::kPerRequest;
  }
  for (GroupPlan& group : plan.groups) {
    group.is_announced = group.members.size() <= most;
    if (group.is_announced) continue;
    group.region_bytes = 0;
    for (MessagePlan& m : group.messages) m = {m.source, m.bytes};
  }
}

void use_long_turns(ScenarioPlan& plan, bool host_sync) {
  Random random(plan.seed ^ kLongTurnsStream);
  for (GroupPlan& group : plan.groups) {
    if (group.has_one_sender) continue;
    group.in_turns = true;
    if (random.chance(0.5)) group.epoch = late_epoch(random, group.id);
    group.first_publication = random.chance(0.5) ? 0x7FFE : 0xFFFE;
    // Behind any message but the last, and behind at least one.
    const std::size_t places = group.messages.size() - 1;
    const auto certain = static_cast<std::size_t>(random.below(places));
    for (std::size_t m = 0; m < places; ++m) {
      if (m != certain && !random.chance(0.3)) continue;
      group.messages[m].jump = length_of_jump(random, host_sync);
      plan.faults.end += 1ms;  // the fabric still fails when the next source begins
    }
  }
}

void use_congestion(ScenarioPlan& plan) {
  Random random(plan.seed ^ kCongestionStream);
  add_marks(random, plan.topology);
  choose_policies(random, plan.topology);
  if (random.chance(0.75)) make_lossless(random, plan);
  pace(random, plan);
}

}  // namespace cepheus::sim
