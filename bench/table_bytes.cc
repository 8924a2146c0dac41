// Bytes of one group's table in a switch, and beside it, by field and by number of paths, and of a
// region that a member has published for WRITEs, as JSON.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "switch-emulator/engine/regions.h"
#include "switch-emulator/engine/switch.h"

namespace {

using cepheus::fabric::TableBytes;

nlohmann::json to_json(const TableBytes::Rows& rows) {
  nlohmann::json fields = nlohmann::json::object();
  for (const auto& [field, bytes] : rows) fields[field] = bytes;
  return {{"total", TableBytes::sum(rows)}, {"fields", fields}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t ports = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;
  nlohmann::json out = nlohmann::json::array();
  for (const std::size_t paths : std::initializer_list<std::size_t>{2, 4, 8, 16, ports}) {
    if (paths > ports) continue;
    const TableBytes bytes = cepheus::fabric::Switch::table_bytes(ports, paths);
    out.push_back({{"ports", ports},
                   {"paths", paths},
                   {"region", sizeof(cepheus::fabric::Region)},
                   {"table", to_json(bytes.table)},
                   {"beside", to_json(bytes.beside)}});
  }
  std::printf("%s\n", out.dump().c_str());
}
