// Bytes of one group's table in a switch, by field and by number of paths, as JSON.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "switch-emulator/engine/switch.h"

int main(int argc, char** argv) {
  const std::size_t ports = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t paths : {2, 4, 8, 16, 64}) {
    if (paths > ports) break;
    nlohmann::json fields = nlohmann::json::object();
    std::size_t total = 0;
    for (const auto& [field, bytes] : cepheus::fabric::Switch::table_bytes(ports, paths)) {
      fields[field] = bytes;
      total += bytes;
    }
    out.push_back({{"ports", ports}, {"paths", paths}, {"total", total}, {"fields", fields}});
  }
  std::printf("%s\n", out.dump().c_str());
}
