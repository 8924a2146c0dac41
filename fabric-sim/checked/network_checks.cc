#include "fabric-sim/checked/network_checks.h"

#include <algorithm>

#include "switch-emulator/engine/views.h"
#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/sender_group.h"

namespace cepheus::sim {

// Useless requests that a switch may send: this number, and one for this number of data packets.
constexpr std::uint64_t kMostInVain = 8, kDataPerVain = 8;

IsolationWatch::IsolationWatch(const ScenarioPlan& plan, Findings& findings)
    : pool_(plan.topology.mcst_pool), findings_(findings) {
  for (const IncidentPlan& incident : plan.incidents) {
    if (incident.kind != IncidentKind::kForgery) continue;
    forger_ = plan.topology.hosts[incident.host].address;
  }
  for (const GroupPlan& group : plan.groups) {
    for (const MemberPlan& member : group.members) {
      members_[group.id].insert(plan.topology.hosts[member.host].address);
    }
    if (!group.has_one_sender) continue;
    const wire::Ipv4 sender = plan.topology.hosts[group.members[group.leader].host].address;
    for (const MemberPlan& member : group.members) {
      const wire::Ipv4 other = plan.topology.hosts[member.host].address;
      pairs_.insert({sender, other});
      pairs_.insert({other, sender});
    }
  }
}

void IsolationWatch::on_arrival(Instant, wire::Ipv4 host, const wire::Frame& frame) {
  // Registration addresses members by their own addresses; only RoCE packets come from a group. A
  // frame with a wrong ICRC does not count: a cable has damaged it.
  const auto headers = wire::RoceHeaders::parse(frame);
  if (!headers || !wire::check_icrc(frame)) return;
  if (pool_.contains(headers->ip.destination)) {
    findings_.report(Invariant::kIsolation, "a packet addressed to group " +
                                                headers->ip.destination.to_string() +
                                                " reached host " + host.to_string());
  }
  if (wire::is_sender_group(headers->bth.destination_qp)) {
    findings_.report(Invariant::kIsolation,
                     "a packet for a virtual queue pair reached host " + host.to_string());
  }
  // A forger may send to any host under its own name.
  if (!pairs_.empty() && headers->ip.source != forger_ && !pool_.contains(headers->ip.source) &&
      !pairs_.contains({headers->ip.source, host})) {
    findings_.report(Invariant::kIsolation, "a packet of " + headers->ip.source.to_string() +
                                                " reached host " + host.to_string() +
                                                ", which it has no group with");
  }
  if (!pool_.contains(headers->ip.source)) return;
  const auto group = members_.find(headers->ip.source);
  if (group != members_.end() && group->second.contains(host)) return;
  findings_.report(Invariant::kIsolation, "a packet of group " + headers->ip.source.to_string() +
                                              " reached host " + host.to_string() +
                                              ", which is no member");
}

void check_balance(const Network& network, Findings& findings) {
  for (const auto& cable : network.cables()) {
    if (!cable->is_balanced()) {
      findings.report(Invariant::kBalance, "cable " + cable->name() + " has lost count of a frame");
    }
  }
  for (const auto& node : network.switches()) {
    const fabric::Counters& c = node->engine().counters();
    if (c[fabric::Counter::kRxPackets] != node->frames_in() ||
        c[fabric::Counter::kTxPackets] != node->frames_out()) {
      findings.report(
          Invariant::kBalance,
          "switch " + node->name() + " counted " + std::to_string(c[fabric::Counter::kRxPackets]) +
              " in and " + std::to_string(c[fabric::Counter::kTxPackets]) + " out, but saw " +
              std::to_string(node->frames_in()) + " and " + std::to_string(node->frames_out()));
    }
    if (const std::string why = node->engine().imbalance(); !why.empty()) {
      findings.report(Invariant::kBalance, "switch " + node->name() + " has lost count of " + why);
    }
  }
}

void check_lossless(const Network& network, const ScenarioPlan& plan, Findings& findings) {
  if (!plan.cut.trunks.empty()) return;
  for (const auto& node : network.switches()) {
    const std::uint64_t dropped = node->pause_totals().dropped_headroom;
    if (dropped == 0) continue;
    findings.report(Invariant::kLossless, "switch " + node->name() + " had no headroom for " +
                                              std::to_string(dropped) + " frames");
  }
}

namespace {

// The switches on the side of `begin` if the trunk is taken away. Precondition: the trunks are a
// tree.
std::set<std::size_t> side_of(const net::Topology& topology, std::size_t begin,
                              const net::TrunkSpec& without) {
  std::set<std::size_t> side{begin};
  for (bool grows = true; grows;) {
    const std::size_t before = side.size();
    for (const net::TrunkSpec& trunk : topology.trunks) {
      if (&trunk != &without && side.contains(trunk.a)) side.insert(trunk.b);
      if (&trunk != &without && side.contains(trunk.b)) side.insert(trunk.a);
    }
    grows = side.size() != before;
  }
  return side;
}

}  // namespace

std::optional<std::uint32_t> least_mtu(const ScenarioPlan& plan, const GroupPlan& group) {
  // Links carry registration, and so packets of this length.
  constexpr std::uint32_t kCarried = 1024;
  const net::Topology& topology = plan.topology;
  if (topology.trunks.size() + 1 != topology.switches.size()) return std::nullopt;
  std::uint32_t least = 4096;
  const auto narrow = [&](const net::LinkConfig& link) {
    least = std::min(least, std::max(kCarried, net::mtu_of(link, topology.mtu)));
  };
  for (const MemberPlan& member : group.members) {
    least = std::min(least, plan.nics[member.host].max_mtu);
    narrow(topology.hosts[member.host].down);
  }
  for (const net::TrunkSpec& trunk : topology.trunks) {
    const auto side = side_of(topology, trunk.a, trunk);
    const auto here = std::ranges::count_if(group.members, [&](const MemberPlan& member) {
      return side.contains(topology.hosts[member.host].switch_index);
    });
    if (here > 0 && here < std::ssize(group.members)) narrow(trunk.ab);
  }
  return least;
}

void check_lengths(const Network& network, Findings& findings) {
  for (const auto& node : network.switches()) {
    const std::uint64_t dropped = node->engine().counters()[fabric::Counter::kDropTooLong];
    if (dropped == 0) continue;
    findings.report(Invariant::kLength, "switch " + node->name() + " dropped " +
                                            std::to_string(dropped) + " copies as too long");
  }
}

void check_requests(const Network& network, Findings& findings) {
  for (const auto& node : network.switches()) {
    const fabric::Counters& c = node->engine().counters();
    const std::uint64_t unready = c[fabric::Counter::kRequestedUnready];
    const std::uint64_t in_vain = c[fabric::Counter::kRequestedInVain];
    if (unready > 0) {
      findings.report(Invariant::kTimeLimit, "switch " + node->name() + " asked again " +
                                                 std::to_string(unready) +
                                                 " times though a receiver had answered RNR");
    }
    // A path is sent one or two requests before its slower feedback has been measured.
    if (in_vain > kMostInVain + c[fabric::Counter::kDataTaken] / kDataPerVain) {
      findings.report(Invariant::kTimeLimit, "switch " + node->name() + " asked again " +
                                                 std::to_string(in_vain) + " times in vain");
    }
  }
}

void check_tables_are_empty(const Network& network, Findings& findings) {
  for (const auto& node : network.switches()) {
    const std::size_t groups = node->engine().group_count();
    const std::size_t tombstones = node->engine().tombstone_count();
    if (const std::size_t senders = node->engine().sender_groups().size(); senders > 0) {
      findings.report(Invariant::kResidue, "switch " + node->name() + " still holds " +
                                               std::to_string(senders) + " sender groups");
    }
    if (groups + tombstones == 0) continue;
    findings.report(Invariant::kResidue, "switch " + node->name() + " still holds " +
                                             std::to_string(groups) + " groups and " +
                                             std::to_string(tombstones) + " tombstones");
  }
}

void check_path_mtu(std::optional<std::uint32_t>& least, wire::Ipv4 member, std::uint32_t path_mtu,
                    Findings& findings) {
  if (!least) least = path_mtu;
  if (path_mtu == *least) return;
  findings.report(Invariant::kLength, "member " + member.to_string() + " has a path MTU of " +
                                          std::to_string(path_mtu) + ", not " +
                                          std::to_string(*least));
}

void check_nothing_is_left(const Network& network, Findings& findings) {
  check_tables_are_empty(network, findings);
  for (const auto& node : network.switches()) {
    if (node->books() == nullptr || node->books()->is_empty()) continue;
    findings.report(Invariant::kResidue, "switch " + node->name() + "'s buffer still counts " +
                                             std::to_string(node->books()->buffer().used()) +
                                             " bytes");
  }
  if (network.frames_in_flight() != 0 || network.buffers().in_use() != 0) {
    findings.report(Invariant::kResidue,
                    std::to_string(network.frames_in_flight()) + " frames in flight, " +
                        std::to_string(network.buffers().in_use()) + " buffers in use at the end");
  }
}

}  // namespace cepheus::sim
