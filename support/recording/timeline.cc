// A slice is written when the next one of its track begins, since its length depends on that; it
// lasts kShownNs at most.
//
// Counters begin and end spans: "turns", "gate_held" and its two ends, RNR NAKs to a host until its
// next data. At most kMostUnderWay packets are remembered; sightings of unknown nodes are ignored.
#include "support/recording/timeline.h"

#include <algorithm>

#include "wire/types.h"

namespace cepheus::recording {
namespace {

constexpr std::int64_t kShownNs = 300;   // the longest slice of a packet
constexpr std::uint32_t kIncidents = 1;  // thread
constexpr std::uint32_t kPrograms = 2;   // thread
constexpr std::uint32_t kNoPort = 0xFFFF'FFFF;

Track track_of(const Sighting& seen) {
  const bool leaves = seen.event == Event::kLeaves;
  return {Timeline::process_of(seen.node), 10u + 2u * seen.port + (leaves ? 1u : 0u)};
}

// As PacketKind.
constexpr const char* kWords[] = {"packet",   "data ", "ACK ",        "NAK ",
                                  "RNR NAK ", "CNP",   "registration"};

bool has_psn(PacketKind kind) { return kind == PacketKind::kData || is_feedback(kind); }

std::string name_of_packet(const Sighting& seen) {
  std::string name = kWords[static_cast<std::size_t>(seen.kind)];
  if (has_psn(seen.kind)) name += std::to_string(seen.number);
  return seen.is_repeat ? name + " again" : name;
}

std::string in_words(std::string counter) {
  std::replace(counter.begin(), counter.end(), '_', ' ');
  return counter;
}

}  // namespace

Timeline::Timeline(TraceFile& file, std::vector<Node> nodes)
    : file_(file), nodes_(std::move(nodes)), causes_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].address != 0) by_address_[nodes_[i].address] = static_cast<std::uint16_t>(i);
  }
  name_tracks();
}

void Timeline::name_tracks() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const std::uint32_t process = process_of(static_cast<std::uint16_t>(i));
    file_.name_process(process, (node.is_switch ? "switch " : "host ") + node.name, process);
    file_.name_thread({process, kIncidents}, "incidents");
    if (!node.is_switch) file_.name_thread({process, kPrograms}, "messages");
    for (std::size_t p = 0; p < node.ports.size(); ++p) {
      const auto& peer = node.ports[p];
      const std::string far =
          peer && peer->node < nodes_.size() ? nodes_[peer->node].name : std::to_string(p);
      const auto thread = 10 + 2 * static_cast<std::uint32_t>(p);
      file_.name_thread({process, thread}, "from " + far);
      file_.name_thread({process, thread + 1}, "to " + far);
    }
  }
}

std::uint32_t Timeline::group_of(const Sighting& seen) const {
  if (seen.destination != 0 && !by_address_.contains(seen.destination)) return seen.destination;
  if (seen.source != 0 && !by_address_.contains(seen.source)) return seen.source;
  return 0;
}

std::string Timeline::name_of(std::uint32_t address) const {
  const auto at = by_address_.find(address);
  return at != by_address_.end() ? nodes_[at->second].name : wire::Ipv4(address).to_string();
}

std::uint32_t Timeline::process_of_group(std::uint32_t group) {
  const auto [at, is_new] =
      groups_.try_emplace(group, kFirstGroup + static_cast<std::uint32_t>(groups_.size()));
  if (is_new) {
    file_.name_process(at->second, "group " + wire::Ipv4(group).to_string(), at->second);
    file_.name_thread({at->second, kIncidents}, "turns");
  }
  return at->second;
}

void Timeline::see(const Sighting& seen) {
  if (node_of(seen) == nullptr) return;
  switch (seen.event) {
    case Event::kArrives:
      return arrived(seen, put(seen));
    case Event::kLeaves:
      return left(seen, put(seen));
    case Event::kCounts:
      return counted(seen);
    case Event::kPosted:
    case Event::kCompleted:
    case Event::kReceived:
      return message(seen);
  }
}

// --- Packets.

// A slice lasts until the next one of its track, at most kShownNs.
void Timeline::flush(Track track, Slice& slice, std::int64_t next_ns) {
  file_.slice({track, slice.at_ns}, std::min(kShownNs, next_ns - slice.at_ns), slice.name,
              slice.args);
}

Place Timeline::put(const Sighting& seen) {
  const Track track = track_of(seen);
  Slice slice{seen.at_ns, name_of_packet(seen), {{"bytes", seen.bytes}}};
  slice.args["from"] = name_of(seen.source);
  slice.args["to"] = name_of(seen.destination);
  const auto at = last_.find(track);
  if (at != last_.end()) {
    slice.at_ns = std::max(slice.at_ns, at->second.at_ns + 1);
    flush(track, at->second, slice.at_ns);
  }
  last_.insert_or_assign(track, slice);
  return {track, slice.at_ns};
}

void Timeline::arrived(const Sighting& seen, Place place) {
  const std::uint32_t group = group_of(seen);
  const Wire wire{seen.node, seen.port, seen.source, seen.destination, seen.kind, seen.number};
  if (const auto at = under_way_.find(wire); at != under_way_.end()) {
    file_.arrow(at->second, place, "cable");
    under_way_.erase(at);
  }
  causes_[seen.node] = Cause{seen, place};
  if (nodes_[seen.node].is_switch) {
    if (seen.kind == PacketKind::kData) end(rnr_waits_, {seen.node, seen.port, group}, seen.at_ns);
    if (is_feedback(seen.kind)) merging_[{seen.node, group}][seen.port] = place;
  } else if (seen.kind == PacketKind::kData) {
    receiving_.try_emplace({seen.node, kNoPort, group}, place);
  }
}

void Timeline::left(const Sighting& seen, Place place) {
  const Node& node = nodes_[seen.node];
  put_under_way(seen, place);
  if (!node.is_switch) return;
  if (is_feedback(seen.kind)) {
    merge(seen, place);
  } else if (const auto& cause = causes_[seen.node];
             seen.is_caused && cause && cause->seen.kind == seen.kind) {
    file_.arrow(cause->place, place, "copy");
  }
  const auto& peer = seen.port < node.ports.size() ? node.ports[seen.port] : std::nullopt;
  const bool is_to_host = peer && peer->node < nodes_.size() && !nodes_[peer->node].is_switch;
  if (seen.kind == PacketKind::kRnrNak && is_to_host) {
    const std::uint32_t group = group_of(seen);
    begin(rnr_waits_, {seen.node, seen.port, group},
          {{{process_of(peer->node), kIncidents}, seen.at_ns},
           "waits: receiver not ready",
           {{"group", wire::Ipv4(group).to_string()}, {"PSN", seen.number}}});
  }
}

void Timeline::put_under_way(const Sighting& seen, Place place) {
  const Node& node = nodes_[seen.node];
  if (seen.port >= node.ports.size() || !node.ports[seen.port]) return;
  const Peer peer = *node.ports[seen.port];
  const Wire wire{peer.node, peer.port, seen.source, seen.destination, seen.kind, seen.number};
  if (under_way_.insert_or_assign(wire, place).second) under_way_order_.push_back(wire);
  while (under_way_order_.size() > kMostUnderWay) {
    under_way_.erase(under_way_order_.front());
    under_way_order_.pop_front();
  }
}

void Timeline::merge(const Sighting& seen, Place into) {
  const auto at = merging_.find({seen.node, group_of(seen)});
  if (at == merging_.end()) return;
  for (const auto& [port, from] : at->second) file_.arrow(from, into, "merged");
  merging_.erase(at);
}

void Timeline::lost(const Sighting& seen, const std::string& cable, const std::string& how) {
  const auto [at, is_new] =
      cables_.try_emplace(cable, 10 + static_cast<std::uint32_t>(cables_.size()));
  if (cables_.size() == 1 && is_new) file_.name_process(kCables, "cables", kCables);
  if (is_new) file_.name_thread({kCables, at->second}, cable);
  file_.instant({{kCables, at->second}, seen.at_ns}, how + ": " + name_of_packet(seen),
                {{"from", name_of(seen.source)}, {"to", name_of(seen.destination)}});
}

// --- Turns and waits.

void Timeline::begin(Spans& spans, const Waiting& key, Span span) {
  spans.try_emplace(key, std::move(span));
}

void Timeline::end(Spans& spans, const Waiting& key, std::int64_t at_ns) {
  const auto at = spans.find(key);
  if (at == spans.end()) return;
  file_.span(at->second.begin, at_ns, at->second.name, at->second.args);
  spans.erase(at);
}

// A timer handles no packet, so any group of the switch may be meant.
void Timeline::end_gates(const Sighting& seen) {
  const std::uint32_t group = group_of(seen);
  while (true) {
    const auto at = std::find_if(gates_.begin(), gates_.end(), [&](const auto& each) {
      const auto& [node, source, waits_in] = each.first;
      return node == seen.node && (group == 0 || group == waits_in);
    });
    if (at == gates_.end()) return;
    end(gates_, at->first, seen.at_ns);
  }
}

void Timeline::counted(const Sighting& seen) {
  const Node& node = nodes_[seen.node];
  if (seen.number >= node.counters.size()) return;
  const std::string& name = node.counters[seen.number];
  const std::uint32_t group = group_of(seen);
  TraceFile::Json args = {{"times", seen.bytes}};
  if (group != 0) args["group"] = wire::Ipv4(group).to_string();
  if (seen.source != 0) args["from"] = name_of(seen.source);
  file_.instant({{process_of(seen.node), kIncidents}, seen.at_ns}, in_words(name), args);
  if (name == "turns" && group != 0) {
    const Waiting key{seen.node, kNoPort, group};
    end(turns_, key, seen.at_ns);
    // A turn may begin with a packet that a gate held: then the packet in work is other feedback.
    const bool is_data = seen.kind == PacketKind::kData;
    begin(turns_, key,
          {{{process_of_group(group), kIncidents}, seen.at_ns},
           (is_data ? "turn of " + name_of(seen.source) : std::string("turn of a waiting source")) +
               " at " + node.name,
           args});
  } else if (name == "gate_held") {
    begin(gates_, {seen.node, seen.source, group},
          {{{process_of(seen.node), kIncidents}, seen.at_ns},
           "gate: " + name_of(seen.source) + " waits for the turn before",
           args});
  } else if (name == "gate_let_through" || name == "gate_emptied") {
    end_gates(seen);
  }
}

// --- Messages.

void Timeline::message(const Sighting& seen) {
  const Waiting key{seen.node, seen.number, seen.destination};
  const std::string number = std::to_string(seen.number);
  if (seen.event == Event::kPosted) {
    begin(messages_, key,
          {{{process_of(seen.node), kPrograms}, seen.at_ns},
           "sends message " + number,
           {{"source", nodes_[seen.node].name},
            {"bytes", seen.bytes},
            {"group", name_of(seen.destination)}}});
    return;
  }
  if (seen.event == Event::kCompleted) return end(messages_, key, seen.at_ns);
  // From its first packet, or if that is unknown, from the previous message's completion.
  const auto first = receiving_.find({seen.node, kNoPort, seen.destination});
  const std::int64_t since = first != receiving_.end() ? first->second.at_ns : seen.at_ns;
  if (first != receiving_.end()) receiving_.erase(first);
  file_.span({{process_of(seen.node), kPrograms}, since}, seen.at_ns, "receives message " + number,
             {{"source", name_of(seen.source)},
              {"bytes", seen.bytes},
              {"group", name_of(seen.destination)}});
}

void Timeline::close(std::int64_t at_ns) {
  for (Spans* const spans : {&turns_, &gates_, &rnr_waits_, &messages_}) {
    while (!spans->empty()) {
      spans->begin()->second.args["unfinished"] = true;
      end(*spans, spans->begin()->first, at_ns);
    }
  }
  for (auto& [track, slice] : last_) flush(track, slice, slice.at_ns + kShownNs);
  last_.clear();
}

}  // namespace cepheus::recording
