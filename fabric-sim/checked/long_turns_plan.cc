#include "fabric-sim/checked/long_turns_plan.h"

#include <array>

#include "fabric-sim/core/random.h"
#include "wire/mrp.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLongTurnsStream =
    0x10'6E52'7425;  // the rest of the seed's plan stays as it is
constexpr std::uint64_t kHalf = 1 << 23, kCircle = 1 << 24;
constexpr std::array<std::uint64_t, 5> kLengths{kHalf / 2, kHalf, kCircle - kHalf / 2, kCircle,
                                                kCircle + kHalf};
constexpr std::array<std::uint64_t, 3> kLongest{std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                                (std::uint64_t{1} << 32) + kHalf};
constexpr std::uint32_t kNear = 24;  // packets: about as many as the messages around a jump have

std::uint64_t length_of_jump(Random& random, bool host_sync) {
  const bool is_longest = !host_sync && random.chance(0.3);
  const std::uint64_t edge = is_longest ? kLongest[random.below(kLongest.size())]
                                        : kLengths[random.below(kLengths.size())];
  return edge + kNear - random.below(2 * kNear);
}

// An epoch of the group's whose first PSN is among the highest that groups begin with; the last of
// a circle if there is a choice.
std::uint16_t late_epoch(Random& random, wire::McstId id) {
  const auto first = static_cast<std::uint16_t>(random.next());
  std::uint16_t latest = first;
  for (std::uint16_t n = 0; n < 512; ++n) {
    const auto epoch = static_cast<std::uint16_t>(first + n);
    const auto psn = wire::group_start_psn(id, epoch).value();
    if (psn > wire::group_start_psn(id, latest).value()) latest = epoch;
  }
  return latest;
}

}  // namespace

void use_long_turns(ScenarioPlan& plan, bool host_sync) {
  Random random(plan.seed ^ kLongTurnsStream);
  for (GroupPlan& group : plan.groups) {
    if (group.has_one_sender) continue;
    group.in_turns = true;
    if (random.chance(0.5)) group.epoch = late_epoch(random, group.id);
    group.first_publication = random.chance(0.5) ? 0x7FFE : 0xFFFE;
    // Behind any message but the last, and at least one of them.
    const std::size_t places = group.messages.size() - 1;
    const auto certain = static_cast<std::size_t>(random.below(places));
    for (std::size_t m = 0; m < places; ++m) {
      if (m != certain && !random.chance(0.3)) continue;
      group.messages[m].jump = length_of_jump(random, host_sync);
      plan.faults.end += 1ms;  // the fabric is still failing when the next source comes
    }
  }
}

}  // namespace cepheus::sim
