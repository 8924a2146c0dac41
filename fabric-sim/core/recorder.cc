// Frames become sightings at once. What a node counts or sends between arrives() and handled() is
// caused by that arrival. A data packet that leaves just after its NIC has counted a retransmission
// is marked as a repeat.
#include "fabric-sim/core/recorder.h"

#include <utility>

namespace cepheus::sim {
namespace {

using recording::Sighting;

std::int64_t ns(wire::Instant at) { return at.time_since_epoch().count(); }

}  // namespace

std::vector<recording::Node> Recorder::nodes_of(const net::Topology& topology) {
  const auto plan = topology.plan().value();
  const auto hosts = static_cast<std::uint16_t>(topology.hosts.size());
  std::vector<recording::Node> nodes;
  for (const net::HostSpec& host : topology.hosts) {
    nodes.push_back({host.name, host.address.value(), false, {std::nullopt}, {}});
    for (const rnic::Counter c : kNicIncidents) nodes.back().counters.emplace_back(rnic::name(c));
  }
  for (std::size_t s = 0; s < plan.configs.size(); ++s) {
    const net::SwitchConfig& config = plan.configs[s];
    const auto number = static_cast<std::uint16_t>(hosts + s);
    recording::Node node{config.name, config.address.value(), true, {}, fabric::incident_names()};
    for (std::size_t p = 0; p < plan.ends[s].size(); ++p) {
      const net::PortEnd& end = plan.ends[s][p];
      if (end.kind == net::PortKind::kHost) {
        const auto host = static_cast<std::uint16_t>(end.host);
        node.ports.push_back(recording::Peer{host, 0});
        nodes[host].ports[0] = recording::Peer{number, static_cast<std::uint16_t>(p)};
      } else {
        node.ports.push_back(recording::Peer{static_cast<std::uint16_t>(hosts + end.peer_switch),
                                             end.peer_port.value()});
      }
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Recorder::Recorder(std::ostream& out, const net::Topology& topology)
    : file_(out),
      timeline_(file_, nodes_of(topology)),
      nics_(topology.hosts.size(), recording::CounterWatch(kNicIncidents)),
      switches_(topology.switches.size(), recording::CounterWatch(fabric::kIncidents)) {
  for (const net::HostSpec& host : topology.hosts) addresses_.push_back(host.address.value());
}

void Recorder::arrives(wire::Instant at, std::uint16_t node, wire::PortId port,
                       const wire::Frame& frame) {
  Sighting seen = recording::describe(frame);
  seen.at_ns = ns(at);
  seen.node = node;
  seen.port = port.value();
  timeline_.see(seen);
  in_hand_ = seen;
}

template <typename Watch, typename Counters>
void Recorder::record_growth(Watch& watch, wire::Instant at, std::uint16_t node,
                             const Counters& counters) {
  watch.look(counters, [&](std::size_t which, std::uint64_t more) {
    Sighting seen = in_hand_.value_or(Sighting());
    seen.at_ns = ns(at);
    seen.node = node;
    seen.event = recording::Event::kCounts;
    seen.number = static_cast<std::uint32_t>(which);
    seen.bytes = static_cast<std::uint32_t>(more);
    timeline_.see(seen);
    is_repeat_ = is_repeat_ || (seen.number == 0 && node < nics_.size());
  });
}

void Recorder::counted(wire::Instant at, std::uint16_t node, const fabric::Counters& counters) {
  record_growth(switches_[node - nics_.size()], at, node, counters);
}

void Recorder::counted(wire::Instant at, std::uint16_t node, const rnic::Counters& counters) {
  record_growth(nics_[node], at, node, counters);
}

void Recorder::leaves(wire::Instant at, std::uint16_t node, wire::PortId port,
                      const wire::Frame& frame) {
  Sighting seen = recording::describe(frame);
  seen.at_ns = ns(at);
  seen.node = node;
  seen.port = port.value();
  seen.event = recording::Event::kLeaves;
  seen.is_caused = in_hand_.has_value();
  seen.is_repeat = std::exchange(is_repeat_, false) && seen.kind == recording::PacketKind::kData;
  timeline_.see(seen);
}

void Recorder::lost(wire::Instant at, const std::string& cable, const char* how,
                    const wire::Frame& frame) {
  Sighting seen = recording::describe(frame);
  seen.at_ns = ns(at);
  timeline_.lost(seen, cable, how);
}

void Recorder::message(wire::Instant at, recording::Event event, const Message& message) {
  Sighting seen;
  seen.at_ns = ns(at);
  seen.event = event;
  seen.node = message.host;
  seen.source = addresses_[message.source];
  seen.destination = message.group.value();
  seen.number = message.number;
  seen.bytes = message.bytes;
  timeline_.see(seen);
}

void Recorder::finish(wire::Instant at) {
  timeline_.close(ns(at));
  file_.finish({{"clock", "virtual time of the simulation"}, {"packets", "all"}});
}

}  // namespace cepheus::sim
