// The NAKs that reach the source of a turn: the smallest, not before all have the packets that it
// acknowledges, and one for each packet (docs/protocol.md, "Feedback").
//
// All PSNs are the group's. `min`: all have acknowledged up to it. Bound of all comparisons: NAKs
// are for packets in (min, sent], which are within 2^22 (Turn::kMostUnderWay), and a NAK is deleted
// when `min` passes it, or the turn ends.
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

  // Whether the source knows already that `psn` is missing, or got a NAK for it before. `once`:
  // rule nak_once.
  //
  // After RNR(e) the same receiver also sends NAK(e), which would cut the wait short; after NAK(e)
  // other receivers send it, which lost it too. NAKs from before the repeat arrive up to the
  // difference of their delays after it, and each would spend one of the source's retries. A
  // receiver sends one NAK(e) for a gap, so a second one hardly ever means that the repeat was
  // lost: then the source times out.
  bool knows(wire::Psn psn, bool once) const {
    return pending_ == psn || (once && last_sequence_ == psn);
  }

  // Keeps the smallest few: while one waits, another receiver may lose a later packet, and sends
  // one NAK for it. Of two for one packet an RNR NAK wins, with the longest timer. `several`: rule
  // several_naks; else only the smallest is kept.
  void hold(const Nak& nak, bool several = true);
  void drop_overtaken(wire::Psn min) {
    while (held_ > 0 && !before(min, waiting_[0].psn)) drop(0);
  }
  // The smallest, if it may go to the source now. The others are deleted then, because the source's
  // repeat includes their packets.
  std::optional<Nak> take_due(wire::Psn min);
  // The source is sent `nak`, out of order.
  void on_sent(const Nak& nak);

  // The source sends up to `psn` (again).
  void on_data(wire::Psn psn) {
    if (pending_ && !after(psn, *pending_)) pending_.reset();
    if (held_ > 0) forget(psn);
  }
  // All have everything up to `psn`.
  void on_acknowledged(wire::Psn psn) {
    if (last_sequence_ && !after(*last_sequence_, psn)) last_sequence_.reset();
  }

  bool holds() const { return held_ > 0; }
  bool is_waiting_for(wire::Psn psn) const { return pending_ == psn; }

 private:
  static constexpr std::size_t kMostHeld = 4;

  void drop(std::size_t at);
  // The receiver that lacks this packet gets it now, and answers it anew. If its RNR NAK were
  // passed on later, the packet would come twice.
  void forget(wire::Psn psn);

  std::array<Nak, kMostHeld> waiting_;  // by PSN
  std::uint8_t held_ = 0;               // number of waiting NAKs
  // PSN of the last NAK to the source, until its packet passes again.
  std::optional<wire::Psn> pending_;
  // PSN of the last sequence NAK to the source, until all have it.
  std::optional<wire::Psn> last_sequence_;
};

}  // namespace cepheus::fabric
