// Bytes of one group in a switch, in its table and outside of it, by field and by number of paths, and
// of a region that a member has published for WRITEs, and of the frames that wait at all gates, as JSON. Also of groups with all members
// behind trunks: while they are registered, and after that. And of reduction groups, by window.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "switch-emulator/engine/group/held_frames.h"
#include "switch-emulator/engine/group/regions.h"
#include "switch-emulator/engine/switch.h"
#include "switch-emulator/engine/views.h"

namespace {

using cepheus::fabric::HeldFrames;
using cepheus::fabric::TableBytes;
using cepheus::fabric::TableShape;

nlohmann::json to_json(const TableBytes::Rows& rows) {
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [field, bytes] : rows) fields[field] = bytes;
  return {{"total", TableBytes::sum(rows)}, {"fields", fields}};
}

nlohmann::json to_json(const TableShape& shape) {
  const TableBytes bytes = cepheus::fabric::Switch::table_bytes(shape);
  return {{"ports", shape.ports},          {"paths", shape.paths},
          {"members", shape.members},      {"active", shape.active},
          {"table", to_json(bytes.table)}, {"beside", to_json(bytes.beside)}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t ports = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;
  nlohmann::json hosts = nlohmann::json::array(), trunks = nlohmann::json::array();
  for (const std::size_t paths : std::initializer_list<std::size_t>{2, 4, 8, 16, ports}) {
    if (paths <= ports) hosts.push_back(to_json(TableShape{.ports = ports, .paths = paths}));
  }
  for (const bool active : {false, true}) {
    for (std::size_t members : {64, 65535}) {
      trunks.push_back(to_json(
          TableShape{.ports = ports, .paths = ports, .members = members, .active = active}));
    }
  }
  using cepheus::wire::MrpReduction;
  nlohmann::json reductions = nlohmann::json::array();
  for (const std::uint8_t kind : {MrpReduction::kValues, MrpReduction::kOrdered}) {
    for (const std::uint16_t window : {16, 64, 256}) {
      const MrpReduction reduction{kind, MrpReduction::kMostUnit, window};
      reductions.push_back(
          to_json(TableShape{.ports = ports, .paths = ports, .reduction = reduction}));
      reductions.back()["window"] = window;
      reductions.back()["adds_floats"] = kind == MrpReduction::kOrdered;
    }
  }
  const nlohmann::json out = {{"hosts", hosts},
                              {"trunks", trunks},
                              {"reductions", reductions},
                              {"region", sizeof(cepheus::fabric::Region)},
                              {"held", HeldFrames::kMost * sizeof(HeldFrames::Held)}};
  std::printf("%s\n", out.dump().c_str());
}
