#include "fabric-sim/checked/region_books.h"

#include <algorithm>

namespace cepheus::sim {

void RegionBooks::attach(std::size_t member, std::span<const std::uint8_t> memory,
                         std::size_t guard) {
  if (memory_.size() <= member) memory_.resize(member + 1);
  memory_[member] = memory;
  guard_ = guard;
}

bool RegionBooks::shows(std::size_t member, std::size_t message,
                        const std::vector<bool>& posted) const {
  const MessagePlan& m = plan_.messages[message];
  std::vector<bool> is_there(m.bytes);
  for (std::size_t of = message; of < plan_.messages.size(); ++of) {
    if (of != message && !is_write_to(of, member, posted)) continue;
    const MessagePlan& written = plan_.messages[of];
    std::vector<std::uint8_t> content(written.bytes);
    fill_(of, content);
    const std::uint32_t end = std::min(m.offset + m.bytes, written.offset + written.bytes);
    for (std::uint32_t at = std::max(m.offset, written.offset); at < end; ++at) {
      if (memory_[member][guard_ + at] == content[at - written.offset])
        is_there[at - m.offset] = true;
    }
  }
  return std::ranges::all_of(is_there, [](bool there) { return there; });
}

std::string RegionBooks::check(std::size_t member, const std::vector<bool>& posted,
                               bool is_whole) const {
  const auto memory = memory_[member];
  std::vector<std::uint8_t> last(memory.size(), kUntouched);
  std::vector<bool> may_be(memory.size());  // as it is now
  for (std::size_t at = 0; at < memory.size(); ++at) may_be[at] = memory[at] == kUntouched;
  for (std::size_t message = 0; message < plan_.messages.size(); ++message) {
    if (!is_write_to(message, member, posted)) continue;
    const MessagePlan& m = plan_.messages[message];
    const auto place = std::span(last).subspan(guard_ + m.offset, m.bytes);
    fill_(message, place);
    for (std::size_t i = 0; i < place.size(); ++i) {
      const std::size_t at = guard_ + m.offset + i;
      if (memory[at] == place[i]) may_be[at] = true;
    }
  }
  for (std::size_t at = 0; at < memory.size(); ++at) {
    if (is_whole ? memory[at] == last[at] : may_be[at]) continue;
    const auto offset = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(guard_);
    return "byte " + std::to_string(offset) + " of the region of member " + std::to_string(member) +
           " (" + std::to_string(plan_.region_bytes) + " bytes) is not the last WRITE's data";
  }
  return "";
}

}  // namespace cepheus::sim
