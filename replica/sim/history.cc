#include "replica/sim/history.h"

#include <algorithm>

namespace cepheus::replica::sim {

std::optional<std::string> History::read(Instant begin, Instant now, std::size_t block,
                                         std::uint64_t value) {
  auto& written = blocks_[block];
  const std::string what = "block " + std::to_string(block) + " holds ";
  const auto found = std::find_if(written.begin(), written.end(),
                                  [value](const Written& w) { return w.write == value; });
  if (found == written.end()) {
    return what + "value " + std::to_string(value) + ", which was never written there";
  }
  const Instant end = writes_[value].end;
  for (const Written& other : written) {
    const Write& write = writes_[other.write];
    if (write.begin > end && std::min(write.known, other.found) < begin) {
      return what + "write " + std::to_string(value) + " of writer " +
             std::to_string(writes_[value].writer) + ", though write " +
             std::to_string(other.write) + " of writer " + std::to_string(write.writer) +
             " came after it and was " + (write.known < begin ? "acknowledged" : "read already");
    }
  }
  if (!writes_[value].is_lost) found->found = std::min(found->found, now);
  return std::nullopt;
}

}  // namespace cepheus::replica::sim
