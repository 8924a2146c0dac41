#include "switch-emulator/engine/group/mft.h"

#include <cassert>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {

PathNo Mft::add_path(PortId port, bool is_host) {
  assert(find(port) == kNoPath && paths.size() < kMaxPaths);
  const auto number = static_cast<PathNo>(paths.size());
  if (path_index.size() <= port.value()) path_index.resize(port.value() + std::size_t{1});
  path_index[port.value()] = number;
  Path path;
  path.port = port;
  path.is_host = is_host;
  paths.push_back(path);
  behaviour->on_path_added();
  return number;
}

void Mft::remove_path(Call& call, const Leader& registrant, PathNo path) {
  assert(path < paths.size() && path != leader);
  const PortId port = paths[path].port;
  const auto last = static_cast<PathNo>(paths.size() - 1);
  if (leader == last) leader = path;
  paths[path] = paths[last];
  path_index[paths[path].port.value()] = path;
  paths.pop_back();
  behaviour->on_path_removed(call, {path, last, port, registrant});
}

void Mft::check_consistent(std::size_t max_held) const {
  must(paths.size() <= kMaxPaths, "more paths than the path index can name");
  for (PathNo i = 0; i < paths.size(); ++i) {
    must(find(paths[i].port) == i, "the path index names another path");
  }
  behaviour->check_consistent(max_held);
}

}  // namespace cepheus::fabric
