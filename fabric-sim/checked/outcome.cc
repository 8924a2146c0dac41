#include "fabric-sim/checked/outcome.h"

namespace cepheus::sim {

Outcome& Outcome::operator+=(const Outcome& other) {
  events += other.events;
  turns += other.turns;
  gated += other.gated;
  time_outs += other.time_outs;
  naks += other.naks;
  rnr_naks += other.rnr_naks;
  evicted += other.evicted;
  spoofed += other.spoofed;
  writes += other.writes;
  writes_refused += other.writes_refused;
  marked += other.marked;
  pauses += other.pauses;
  jumped += other.jumped;
  gave_up += other.gave_up;
  reduced += other.reduced;
  return *this;
}

void Outcome::add(Network& network) {
  for (const auto& node : network.switches()) {
    const fabric::Counters& c = node->engine().counters();
    turns += c[fabric::Counter::kTurns];
    evicted += c[fabric::Counter::kPathsEvicted];
    spoofed += c[fabric::Counter::kDropSpoofedSource];
    writes_refused += c[fabric::Counter::kDropWriteRefused];
    gated += c[fabric::Counter::kGateHeld] + c[fabric::Counter::kGateRnr];
    reduced += c[fabric::Counter::kReductionUnits];
    pauses += node->pause_totals().pauses_sent;
  }
  for (const auto& cable : network.cables()) marked += cable->queue_counters().marked;
  for (std::size_t i = 0; i < network.host_count(); ++i) {
    const rnic::Counters& c = network.host(i).nic().counters();
    time_outs += c[rnic::Counter::kAckTimeouts];
    naks += c[rnic::Counter::kRxNakSequence];
    rnr_naks += c[rnic::Counter::kRxRnrNak];
  }
}

}  // namespace cepheus::sim
