// Which NAKs the source of a turn hears: the smallest, not before all have what it acknowledges,
// and each packet's once (docs/protocol.md, "Feedback").
//
// All PSNs are the group's. `min`: what all have acknowledged. Bound of all comparisons: NAKs are of
// packets in (min, sent], which lie within 2^22 (Turn::kMostUnderWay), and a NAK is forgotten when
// `min` passes it, or the turn ends.
#pragma once

#include <array>
#include <optional>

#include "wire/types.h"

namespace cepheus::fabric {

// A sequence or RNR NAK: all before `psn` has arrived.
struct Nak {
  wire::Psn psn;
  bool rnr = false;
  std::uint8_t timer = 0;
};

class NakFilter {
 public:
  // Another turn.
  void reset() { *this = NakFilter(); }

  // Does the source know already that `psn` is missing, or has it been told before? `once`: rule
  // nak_once.
  //
  // After RNR(e) the same receiver also asks for e, which would cut the wait short; after NAK(e)
  // others do, who missed it, too. What they sent before the repeat reached them arrives as long
  // after it as their delays differ, and each would spend one of the source's retries. A receiver
  // says NAK(e) once a gap, so a second one hardly ever says that the repeat was lost: that shows
  // when the source times out.
  bool knows(wire::Psn psn, bool once) const { return asked_ == psn || (once && said_ == psn); }

  // Keeps the smallest few: while one waits, another receiver may lose a later packet, and says so
  // once. Of two for one packet an RNR NAK wins, with the longest timer asked for. `several`: rule
  // several_naks; else the smallest alone.
  void hold(const Nak& nak, bool several = true);
  void drop_overtaken(wire::Psn min) {
    while (held_ > 0 && !before(min, waiting_[0].psn)) drop(0);
  }
  // The smallest, if the source may hear it now; it is told then, and the others are forgotten, as
  // it sends what they ask for again, too.
  std::optional<Nak> take_due(wire::Psn min);
  // The source is told `nak`, past all order.
  void tell(const Nak& nak);

  // The source sends up to `psn` (again).
  void on_data(wire::Psn psn) {
    if (asked_ && !after(psn, *asked_)) asked_.reset();
    if (held_ > 0) forget(psn);
  }
  // All have everything up to `psn`.
  void on_acknowledged(wire::Psn psn) {
    if (said_ && !after(*said_, psn)) said_.reset();
  }

  bool holds() const { return held_ > 0; }
  bool is_waiting_for(wire::Psn psn) const { return asked_ == psn; }

 private:
  static constexpr std::size_t kMostHeld = 4;

  void drop(std::size_t at);
  // The receiver that lacks this packet gets it now, and answers it anew, also if it sent an RNR
  // NAK: passed on later, that would bring the packet twice.
  void forget(wire::Psn psn);

  std::array<Nak, kMostHeld> waiting_;  // by PSN
  std::uint8_t held_ = 0;               // of them
  std::optional<wire::Psn> asked_;  // by the NAK that went out last, until its packet passes again
  std::optional<wire::Psn> said_;   // by the sequence NAK that went out last, until all have it
};

}  // namespace cepheus::fabric
