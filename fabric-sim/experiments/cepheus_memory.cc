// Bytes of groups' tables in one switch, by the number of ports that a group uses. They come from
// Switch::table_bytes(), so nothing is run. The sum beside them is that of the fields that the
// paper names, in a layout of ours. Further rows add the state for members behind trunks.
#include "fabric-sim/experiments/all.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/engine/views.h"

namespace cepheus::sim {
namespace cepheus_memory {

constexpr std::size_t kPorts = 64;
constexpr std::size_t kMostMembers = 65535;
constexpr double kGroups = 1024;
constexpr double kMiB = 1048576;

void run(const ExperimentOptions&, Report& report) {
  using fabric::TableBytes;
  for (const std::size_t paths : {2, 4, 8, 16, 32, 64}) {
    const TableBytes bytes = fabric::Switch::table_bytes({.ports = kPorts, .paths = paths});
    const auto table = static_cast<double>(TableBytes::sum(bytes.table));
    const auto beside = static_cast<double>(TableBytes::sum(bytes.beside));
    const auto x = static_cast<double>(paths);
    // Our layout: an index of 64 bytes, and address, QPN and PSN for each path.
    const double fields = 64 + 10 * x;
    report.add("tables of 1024 groups", x, kGroups * table / kMiB, "MiB",
               {.paper = paths == kPorts ? std::optional(0.69) : std::nullopt});
    report.add("fields that the paper names, our sum", x, kGroups * fields / kMiB, "MiB");
    report.add("one group's table", x, table, "B");
    report.add("beside it", x, beside, "B");
    for (const std::size_t members : {std::size_t{64}, kMostMembers}) {
      const TableBytes core =
          fabric::Switch::table_bytes({.ports = kPorts, .paths = paths, .members = members});
      const auto all = static_cast<double>(TableBytes::sum(core.table) + core.sum(core.beside));
      report.add("all, " + std::to_string(members) + " members behind trunks", x, all, "B");
    }
  }
}

}  // namespace cepheus_memory

const Experiment kCepheusMemory = {"cepheus-memory",
                                   "memory of 1024 groups in a 64-port switch",
                                   "Cepheus III-D",
                                   "nothing",
                                   "paths of a group",
                                   "tables of 1024 groups",
                                   "2.4 times; 13 times with the state beside them",
                                   cepheus_memory::run};

}  // namespace cepheus::sim
