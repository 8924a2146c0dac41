// Draws packets, turns, waits and messages as tracks of a recording.
//
// A host or switch is a process; its threads are its ports' two directions. A group is a process
// with its turns as spans. Arrows lead from a packet's departure at a port to its arrival at the
// next, from a data packet to its copies, and from acknowledgements to the merged one. Of a group's
// acknowledgements the last by each port since the previous merged one counts.
//
// Memory is bounded: the oldest packets under way are forgotten.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "support/recording/sighting.h"
#include "support/recording/trace_file.h"

namespace cepheus::recording {

// The far end of a port's cable.
struct Peer {
  std::uint16_t node = 0;
  std::uint16_t port = 0;
};
struct Node {
  std::string name;
  std::uint32_t address = 0;  // IPv4; 0: unknown
  bool is_switch = false;
  std::vector<std::optional<Peer>> ports;
  std::vector<std::string> counters;  // kCounts names them by their index
};

class Timeline {
 public:
  // A node's track, by its number: threads from kFirstOwnThread on are the caller's.
  static constexpr std::uint32_t kFirstOwnThread = 100'000;
  static constexpr std::uint32_t process_of(std::uint16_t node) { return node + 1u; }

  // `file` outlives the timeline.
  Timeline(TraceFile& file, std::vector<Node> nodes);
  // Events of a node come in order.
  void see(const Sighting& seen);
  // A frame that a cable lost or damaged: the cable's name, and the fault in one word.
  void lost(const Sighting& seen, const std::string& cable, const std::string& how);
  // Closes open spans at this time and marks them as unfinished. Call it before the file's finish().
  void close(std::int64_t at_ns);

 private:
  static constexpr std::uint32_t kFirstGroup = 1'000'000;  // process
  static constexpr std::uint32_t kCables = 999'999;        // process
  static constexpr std::size_t kMostUnderWay = 1 << 16;

  struct Slice {  // of a port's track; its end is open until the next one
    std::int64_t at_ns = 0;
    std::string name;
    TraceFile::Json args;
  };
  struct Span {
    Place begin;
    std::string name;
    TraceFile::Json args;
  };
  struct Cause {
    Sighting seen;
    Place place;
  };
  // (node, port, source, destination, kind, PSN) of a packet on its way to that port.
  using Wire = std::tuple<std::uint16_t, std::uint16_t, std::uint32_t, std::uint32_t, PacketKind,
                          std::uint32_t>;
  // (node, port or none, group or host) of a wait there.
  using Waiting = std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>;
  using Spans = std::map<Waiting, Span>;

  void name_tracks();
  void arrived(const Sighting& seen, Place place);
  void left(const Sighting& seen, Place place);
  void put_under_way(const Sighting& seen, Place place);
  void merge(const Sighting& seen, Place into);
  void counted(const Sighting& seen);
  void message(const Sighting& seen);
  Place put(const Sighting& seen);
  void flush(Track track, Slice& slice, std::int64_t next_ns);
  void begin(Spans& spans, const Waiting& key, Span span);
  void end(Spans& spans, const Waiting& key, std::int64_t at_ns);
  void end_gates(const Sighting& seen);
  // The group's address: the one of the two that belongs to no node; 0 if both belong to nodes.
  std::uint32_t group_of(const Sighting& seen) const;
  std::uint32_t process_of_group(std::uint32_t group);
  std::string name_of(std::uint32_t address) const;
  const Node* node_of(const Sighting& seen) const {
    return seen.node < nodes_.size() ? &nodes_[seen.node] : nullptr;
  }

  TraceFile& file_;
  const std::vector<Node> nodes_;
  std::map<std::uint32_t, std::uint16_t> by_address_;
  std::map<std::uint32_t, std::uint32_t> groups_;  // processes
  std::map<std::string, std::uint32_t> cables_;    // threads
  std::map<Track, Slice> last_;
  std::vector<std::optional<Cause>> causes_;  // by node: the last arrival
  std::map<Wire, Place> under_way_;
  std::deque<Wire> under_way_order_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::map<std::uint16_t, Place>> merging_;
  Spans turns_, gates_, rnr_waits_, messages_;
  std::map<Waiting, Place> receiving_;  // a message's first packet
};

}  // namespace cepheus::recording
