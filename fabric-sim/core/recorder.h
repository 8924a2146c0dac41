// A run as a recording for ui.perfetto.dev: the packets of hosts and switches on virtual time, and
// the counters that their engines changed meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "net/topology.h"
#include "nic-emulator/engine/counters.h"
#include "support/recording/counter_watch.h"
#include "support/recording/timeline.h"
#include "switch-emulator/engine/incidents.h"
#include "wire/frame.h"

namespace cepheus::sim {

// Nodes are the topology's hosts, then its switches.
class Recorder {
 public:
  // `out` outlives it.
  Recorder(std::ostream& out, const net::Topology& topology);

  void arrives(wire::Instant at, std::uint16_t node, wire::PortId port, const wire::Frame& frame);
  // The counters that an engine changed since the last call, while it handled an arrived frame:
  // call before its frames leave.
  void counted(wire::Instant at, std::uint16_t node, const fabric::Counters& counters);
  void counted(wire::Instant at, std::uint16_t node, const rnic::Counters& counters);
  void leaves(wire::Instant at, std::uint16_t node, wire::PortId port, const wire::Frame& frame);
  void lost(wire::Instant at, const std::string& cable, const char* how, const wire::Frame& frame);
  // Frames that leave from now on are not caused by the last arrival.
  void handled() { in_hand_.reset(); }

  struct Message {
    std::uint16_t host = 0;  // place of the event
    std::uint16_t source = 0;
    wire::McstId group;
    std::uint32_t number = 0;
    std::uint32_t bytes = 0;
  };
  void message(wire::Instant at, recording::Event event, const Message& message);

  void finish(wire::Instant at);

 private:
  static constexpr std::array kNicIncidents = {
      rnic::Counter::kTxRetransmitted,   rnic::Counter::kAckTimeouts,
      rnic::Counter::kRxNakSequence,     rnic::Counter::kRxNakFatal,
      rnic::Counter::kRxRnrNak,          rnic::Counter::kRetriesExceeded,
      rnic::Counter::kRnrRetriesExceeded};

  template <typename Watch, typename Counters>
  void record_growth(Watch& watch, wire::Instant at, std::uint16_t node, const Counters& counters);

  recording::TraceFile file_;
  recording::Timeline timeline_;
  std::vector<recording::CounterWatch<rnic::Counter, kNicIncidents.size()>> nics_;
  std::vector<recording::CounterWatch<fabric::Counter, fabric::kIncidents.size()>> switches_;
  std::vector<std::uint32_t> addresses_;  // of hosts
  std::optional<recording::Sighting> in_hand_;
  bool is_repeat_ = false;  // its NIC counted a retransmission just before the frame left

  static std::vector<recording::Node> nodes_of(const net::Topology& topology);
};

}  // namespace cepheus::sim
