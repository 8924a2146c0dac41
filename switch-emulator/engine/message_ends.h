// Which of the PSNs on their way end a message: the aggregate's MSN counts the ends that it has
// passed.
//
// A ring of bits, one a PSN. Bound of its comparisons: the aggregate and the turn's packets lie within
// 2^22 of each other (Turn::kMostUnderWay). Ends further than kWindow beyond the aggregate are not noted; the MSN
// then lags, which a requester may ignore (IBTA 9.7.7: it serves credits, and the aggregate
// claims none).
#pragma once

#include <bitset>

#include "wire/types.h"

namespace cepheus::fabric {

class MessageEnds {
 public:
  static constexpr std::uint32_t kWindow = 1024;
  static_assert((kWindow & (kWindow - 1)) == 0);

  // A packet that ends a message has passed; `acknowledged` is the aggregate's PSN. Repeats do not
  // count twice.
  void note(wire::Psn psn, wire::Psn acknowledged) {
    const std::int32_t ahead = distance(acknowledged, psn);
    if (ahead > 0 && ahead <= static_cast<std::int32_t>(kWindow)) ends_.set(slot(psn));
  }
  // Counts and forgets the ends in (from, to].
  std::uint32_t take(wire::Psn from, wire::Psn to) {
    std::uint32_t count = 0;
    const std::int32_t n = distance(from, to);
    if (n >= static_cast<std::int32_t>(kWindow)) {
      count = static_cast<std::uint32_t>(ends_.count());
      ends_.reset();
      return count;
    }
    for (std::int32_t i = 1; i <= n; ++i) {
      const std::size_t at = slot(from + i);
      count += ends_[at] ? 1 : 0;
      ends_.reset(at);
    }
    return count;
  }

 private:
  static std::size_t slot(wire::Psn psn) { return psn.value() & (kWindow - 1); }
  std::bitset<kWindow> ends_;
};

}  // namespace cepheus::fabric
