#include "fabric-sim/checked/incidents.h"

#include <algorithm>
#include <array>

#include "fabric-sim/checked/fabric_plan.h"
#include "fabric-sim/checked/reductions/hostile_member.h"
#include "switch-emulator/engine/views.h"
#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/udp.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kIncidentsStream =
    0xD1CE'0F'FA7E;  // so that other parts of the seed's plan stay the same
constexpr std::uint64_t kHostileStream = 0x4'057'11E;
constexpr std::uint32_t kForgedFrames = 120;
constexpr std::uint32_t kMostIncidents = 5;
// While a program stands still, a sender repeats its packets to all receivers after each RNR NAK.
constexpr std::uint64_t kEventsPerStalledMillisecond = 60'000;

bool is_member(const GroupPlan& group, std::size_t host) {
  return std::ranges::any_of(group.members, [&](const MemberPlan& m) { return m.host == host; });
}

std::optional<std::size_t> outsider(const ScenarioPlan& plan) {
  for (std::size_t host = 0; host < plan.topology.hosts.size(); ++host) {
    const auto holds = [&](const GroupPlan& group) { return is_member(group, host); };
    if (std::ranges::none_of(plan.groups, holds)) return host;
  }
  return std::nullopt;
}

bool is_death(const IncidentPlan& incident) {
  return incident.kind == IncidentKind::kDeath || incident.kind == IncidentKind::kHostRestart;
}

// Whether the host, its programs or its NIC stand still. Programs may compute for long, but not
// longer than a source retries before its leader evicts a silent member (docs/protocol.md,
// "Limits"). All stalls of a seed begin within a few milliseconds.
void choose_stall(Random& random, const ScenarioPlan& plan, IncidentPlan& incident) {
  constexpr std::array kKinds{IncidentKind::kPause, IncidentKind::kProgramStall,
                              IncidentKind::kNicStall};
  incident.kind = random.one_of(kKinds);
  if (incident.kind == IncidentKind::kProgramStall && random.chance(0.3)) {
    incident.lasts = random.between(wire::Duration{8ms}, plan.transport.silence() / 3);
  }
}

IncidentPlan draw(Random& random, const ScenarioPlan& plan) {
  IncidentPlan incident;
  constexpr std::array kKinds{IncidentKind::kDeath,         IncidentKind::kDeath,
                              IncidentKind::kHostRestart,   IncidentKind::kPause,
                              IncidentKind::kSwitchRestart, IncidentKind::kForgery};
  incident.kind = random.one_of(kKinds);
  incident.at = random.between(wire::Duration{50us}, wire::Duration{6ms});
  incident.host = static_cast<std::size_t>(random.below(plan.topology.hosts.size()));
  incident.at_switch = static_cast<std::size_t>(random.below(plan.topology.switches.size()));
  incident.noticed = random.chance(0.7);
  incident.lasts = random.between(wire::Duration{500us}, wire::Duration{8ms});
  if (incident.kind == IncidentKind::kForgery) {
    const auto host = outsider(plan);
    if (host) {
      incident.host = *host;
      incident.at = random.between(wire::Duration{0}, wire::Duration{1ms});
    } else {
      incident.kind = IncidentKind::kPause;
    }
  }
  // A host dies once.
  const bool dies_already = std::ranges::any_of(plan.incidents, [&](const IncidentPlan& other) {
    return is_death(other) && other.host == incident.host;
  });
  if (is_death(incident) && dies_already) incident.kind = IncidentKind::kPause;
  if (incident.kind == IncidentKind::kPause) choose_stall(random, plan, incident);
  // An unplugged cable has no frames on its way when it is plugged in again: old frames of its host
  // must not count as new ones.
  if (incident.kind == IncidentKind::kHostRestart && incident.noticed) {
    incident.lasts = std::max(incident.lasts, plan.faults.reorder_by);
  }
  return incident;
}

}  // namespace

void add_incidents(ScenarioPlan& plan) {
  Random random(plan.seed ^ kIncidentsStream);
  plan.incidents.push_back(draw(random, plan));
  const std::uint32_t more = random.chance(0.5) ? random.between(1, kMostIncidents - 1) : 0;
  for (std::uint32_t i = 0; i < more; ++i) {
    const wire::Duration before = plan.incidents.back().at;
    plan.incidents.push_back(draw(random, plan));
    // Some follow so closely that the reaction to the last one is still under way.
    if (random.chance(0.5)) {
      plan.incidents.back().at = before + random.between(wire::Duration{0}, wire::Duration{1ms});
    }
  }
  for (IncidentPlan& incident : plan.incidents) {
    // Some come after the last message.
    const bool is_loss = is_death(incident) || incident.kind == IncidentKind::kSwitchRestart;
    if (is_loss && plan.lasts.count() > 0 && random.chance(0.7)) {
      incident.at = random.between(incident.at, plan.lasts);
    }
    // Senders must outlast the time after which a silent member is evicted.
    // No switch reports a sender group's receiver to the sender: its switch may have no part in the
    // group.
    const bool is_reported = incident.noticed && !plan.has_sender_groups();
    if (is_death(incident) && !is_reported) {
      plan.transport.timeout_code = std::max<std::uint8_t>(plan.transport.timeout_code, 8);
    }
    if (incident.kind == IncidentKind::kProgramStall && plan.has_sender_groups()) {
      plan.event_budget +=
          kEventsPerStalledMillisecond * static_cast<std::uint64_t>(incident.lasts / 1ms);
    }
  }
  for (net::SwitchSpec& spec : plan.topology.switches) spec.config.orphan_age = kOrphanAge;
}

void add_hostile_member(ScenarioPlan& plan) {
  Random random(plan.seed ^ kHostileStream);
  if (random.chance(0.7)) return;
  const GroupPlan& group = plan.groups[random.below(plan.groups.size())];
  IncidentPlan incident;
  incident.kind = IncidentKind::kHostileMember;
  incident.host = group.members[random.below(group.members.size())].host;
  incident.group = group.id;
  incident.at = random.between(wire::Duration{0}, wire::Duration{random.chance(0.6) ? 1ms : 4ms});
  incident.lasts = random.between(wire::Duration{200us}, wire::Duration{8ms});
  do {
    incident.attacks |= 1u << random.below(kAttacks);
  } while (random.chance(0.5));
  plan.incidents.push_back(incident);
  if (plan.groups.size() > 1 || random.chance(0.3)) return;
  GroupPlan honest = plan.groups.front();
  honest.id = wire::McstId(honest.id.value() + 1);
  honest.epoch = static_cast<std::uint16_t>(random.next());
  honest.leader = random.below(honest.members.size());
  plan.groups.push_back(std::move(honest));
}

wire::Duration last_restart(const ScenarioPlan& plan) {
  wire::Duration last{0};
  for (const IncidentPlan& incident : plan.incidents) {
    if (incident.kind == IncidentKind::kSwitchRestart) last = std::max(last, incident.at);
  }
  return last;
}

wire::Duration end_of_stalls(const ScenarioPlan& plan) {
  wire::Duration end{0};
  for (const IncidentPlan& incident : plan.incidents) {
    end = std::max(end, incident.at + incident.lasts);
  }
  return end;
}

Incidents::Incidents(Simulator& simulator, Network& network, const ScenarioPlan& plan)
    : simulator_(simulator),
      network_(network),
      plan_(plan),
      random_(plan.seed * 3 + kIncidentsStream),
      forgery_(plan) {}

void Incidents::start() {
  for (std::size_t i = 0; i < plan_.incidents.size(); ++i) {
    if (plan_.incidents[i].kind == IncidentKind::kHostileMember) continue;
    const bool forges = plan_.incidents[i].kind == IncidentKind::kForgery;
    schedule(Instant{plan_.incidents[i].at}, forges ? kForge : kStrike, i);
  }
}

void Incidents::on_event(Instant now, std::uint64_t what) {
  const std::size_t number = what / kWhats;
  const std::size_t host = plan_.incidents[number].host;
  switch (static_cast<What>(what % kWhats)) {
    case kStrike:
      return strike(now, number);
    case kNotice:
      return network_.set_host_port(now, host, false);
    case kReturn:
      network_.host(host).revive();
      return network_.set_host_port(now, host, true);
    case kForge:
      return forge(now, number);
    case kWhats:
      break;
  }
}

void Incidents::strike(Instant now, std::size_t number) {
  const IncidentPlan& incident = plan_.incidents[number];
  Host& host = network_.host(incident.host);
  SwitchNode& node = *network_.switches()[incident.at_switch];
  const auto note = [&](const std::string& of, const char* text) {
    simulator_.trace().note(now, of, text);
  };
  switch (incident.kind) {
    case IncidentKind::kDeath:
    case IncidentKind::kHostRestart:
      note(host.name(), "dies");
      kill_host(incident.host);
      if (incident.noticed) schedule(now + 20us, kNotice, number);
      if (incident.kind == IncidentKind::kHostRestart) {
        schedule(now + 20us + incident.lasts, kReturn, number);
      }
      break;
    case IncidentKind::kPause:
      note(host.name(), "is paused");
      host.pause(now + incident.lasts);
      break;
    case IncidentKind::kProgramStall:
      note(host.name(), "has its programs stopped");
      host.stall_programs(now + incident.lasts);
      break;
    case IncidentKind::kNicStall:
      note(host.name(), "has its NIC stopped");
      host.stall_nic(now + incident.lasts);
      break;
    case IncidentKind::kSwitchRestart:
      note(node.name(), "restarts");
      restart_switch(node);
      break;
    case IncidentKind::kForgery:
    case IncidentKind::kHostileMember:
      break;
  }
}

void Incidents::kill_host(std::size_t host) {
  for (Victim* const group : groups_) {
    const GroupPlan& plan = group->plan();
    for (std::size_t i = 0; i < plan.members.size(); ++i) {
      if (plan.members[i].host != host) continue;
      // All or nothing until all are active; and no other member becomes leader.
      if (!group->leader_is_active() || i == plan.leader) group->on_disaster();
      group->kill(i);
    }
  }
  network_.host(host).die();
}

// A group during its set-up may use any switch.
void Incidents::restart_switch(SwitchNode& node) {
  for (Victim* const group : groups_) {
    const GroupPlan& plan = group->plan();
    const bool has_begun = Instant{plan.starts} <= simulator_.now();
    const bool is_held = node.engine().group(plan.id).has_value();
    if (has_begun && (is_held || !group->leader_is_active())) group->on_disaster();
  }
  node.restart(simulator_.now());
}

void Incidents::forge(Instant now, std::size_t number) {
  Host& forger = network_.host(plan_.incidents[number].host);
  if (forger.is_dead()) return;
  const GroupPlan& target = plan_.groups[random_.below(plan_.groups.size())];
  forger.send_frame(random_.chance(0.5) ? forged_datagram(forger, target)
                                        : forged_roce(forger, target));
  if (const auto frame = forgery_.next(forger, target)) forger.send_frame(*frame);
  if (++forged_ % kForgedFrames == 0) return;
  schedule(now + random_.between(wire::Duration{10us}, wire::Duration{80us}), kForge, number);
}

// Registration in another host's name, or in the forger's own name about others.
wire::Frame Incidents::forged_datagram(const Host& forger, const GroupPlan& target) {
  const auto address = [&](std::size_t host) { return plan_.topology.hosts[host].address; };
  const MemberPlan& somebody = target.members[random_.below(target.members.size())];
  const wire::Ipv4 leader = address(target.members[target.leader].host);
  wire::MrpMessage message;
  message.header.type = random_.chance(0.1) ? wire::MrpType::kConnect
                                            : static_cast<wire::MrpType>(random_.between(1, 13));
  message.header.flags = static_cast<std::uint16_t>(random_.below(10));
  message.header.epoch = random_.chance(0.8) ? target.epoch : std::uint16_t(target.epoch + 1);
  message.header.mcst_id = target.id;
  message.header.instance = 1;
  message.add({address(somebody.host), rnic::Qpn(1 + random_.below(20)),
               static_cast<std::uint8_t>(random_.below(8))});
  constexpr std::array<std::uint16_t, 5> kMtus{0, 256, 700, 1024, 4096};
  const std::uint16_t odd = message.header.flags;
  if (odd % 2 == 1) message.path = wire::MrpPath{kMtus[odd / 2], odd};
  if (plan_.reduces && odd < 4) {
    message.header.flags = static_cast<std::uint16_t>(wire::MrpReject::kNoMemory) + odd;
  }
  wire::UdpDatagram datagram;
  datagram.ethernet.destination = forger.gateway();
  // The first leader of an identifier owns it: that needs a leader, not a forger.
  const bool in_leaders_name = message.header.type == wire::MrpType::kRegister;
  datagram.ip.source = in_leaders_name       ? leader
                       : random_.chance(0.3) ? forger.address()
                       : random_.chance(0.5) ? leader
                                             : address(somebody.host);
  datagram.ip.destination = target.id;
  datagram.udp.source_port = 50000;
  datagram.udp.destination_port = plan_.topology.mrp_port;
  if (random_.chance(0.2)) {  // to the process itself, nearly as its switch would
    const bool is_answer = wire::is_for_leader(message.header.type);
    datagram.ip.destination = is_answer ? leader : address(somebody.host);
    datagram.udp.destination_port = target.control_port();
    if (random_.chance(0.7)) datagram.udp.source_port = plan_.topology.mrp_port;
  }
  constexpr std::size_t kMost =
      wire::MrpHeader::kSize + wire::MrpMember::kSize + wire::MrpPath::kSize;
  std::array<std::uint8_t, kMost> bytes;
  wire::Frame frame;
  datagram.emit(frame, std::span(bytes).first(message.emit(bytes)));
  return frame;
}

// Data and feedback of a group that the forger does not belong to, near its window and far from it.
wire::Frame Incidents::forged_roce(const Host& forger, const GroupPlan& target) {
  const auto address = [&](std::size_t host) { return plan_.topology.hosts[host].address; };
  const MemberPlan& somebody = target.members[random_.below(target.members.size())];
  wire::RoceHeaders h;
  h.ethernet.destination = forger.gateway();
  h.ip.source = random_.chance(0.5) ? forger.address() : address(somebody.host);
  h.ip.destination = random_.chance(0.7) ? target.id : address(somebody.host);
  h.udp.source_port = 0xC000;
  constexpr std::array kOpcodes{wire::Opcode::kRcAcknowledge, wire::Opcode::kRcAcknowledge,
                                wire::Opcode::kRcSendOnly, wire::Opcode::kCnp};
  h.bth.opcode = random_.one_of(kOpcodes);
  h.bth.destination_qp = random_.chance(0.8) ? wire::kVirtualQpn : rnic::Qpn(random_.below(32));
  h.bth.psn = wire::group_start_psn(target.id, target.epoch) + random_.below(40) -
              (random_.chance(0.2) ? 0x400000 : 8);
  constexpr std::array kKinds{wire::AckKind::kAck, wire::AckKind::kNak, wire::AckKind::kRnrNak};
  h.aeth.kind = random_.one_of(kKinds);
  h.aeth.value = static_cast<std::uint8_t>(random_.below(5));
  wire::Frame frame;
  h.emit(frame, 0);
  wire::seal_icrc(frame);
  return frame;
}

}  // namespace cepheus::sim
