// Memory of one reduction group's units in a switch, by the hosts and trunks that the group uses
// there. It does not depend on the number of the group's hosts elsewhere. Nothing is run.
#include <cmath>
#include <string>

#include "fabric-sim/experiments/all.h"
#include "switch-emulator/engine/reduction/unit_slots.h"
#include "switch-emulator/engine/switch.h"

namespace cepheus::sim {
namespace allreduce_memory {

constexpr double kMiB = 1048576;

void run(const ExperimentOptions&, Report& report) {
  using wire::MrpReduction;
  const auto pool = static_cast<double>(fabric::SwitchConfig().reduction_memory);
  for (const std::uint16_t window : {16, 64, 256}) {
    for (const std::size_t paths : {2, 4, 8, 16, 32, 64}) {
      const auto bytes_of = [&](std::uint8_t kind) {
        const MrpReduction group{kind, MrpReduction::kMostUnit, window};
        return static_cast<double>(fabric::UnitSlots::bytes_for(group, paths));
      };
      const std::string of = "window " + std::to_string(window) + ", ";
      const auto x = static_cast<double>(paths);
      const double values = bytes_of(MrpReduction::kValues),
                   sums = bytes_of(MrpReduction::kOrdered);
      report.add(of + "integers", x, values / kMiB, "MiB");
      report.add(of + "floating-point sums", x, sums / kMiB, "MiB");
      report.add(of + "groups with floating-point sums", x, std::floor(pool / sums), "groups",
                 {.note = "of the default reduction_memory"});
    }
  }
}

}  // namespace allreduce_memory

const Experiment kAllreduceMemory = {
    "allreduce-memory",
    "memory of one reduction group in a switch, by its paths there and its window",
    "our own",
    "nothing",
    "paths of a group",
    "window 64, floating-point sums",
    "floating-point sums need 16 times the memory of integers with 64 paths",
    allreduce_memory::run,
};

}  // namespace cepheus::sim
