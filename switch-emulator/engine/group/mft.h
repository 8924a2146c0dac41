// Multicast forwarding table of one group (paper III-B, figure 3): its identity, its tree, and its
// behaviour.
//
// A path is known by its number in `paths`.
#pragma once

#include <memory>
#include <vector>

#include "switch-emulator/engine/group/behaviour.h"
#include "switch-emulator/engine/group/path.h"

namespace cepheus::fabric {

struct Mft {
  static constexpr std::size_t kMaxPaths = kNoPath;  // largest number in the path index

  Mft(McstId mcst_id, std::uint16_t registration_epoch) : id(mcst_id), epoch(registration_epoch) {}

  const McstId id;
  const std::uint16_t epoch;

  // Tree. `path_index[port]`, up to the group's highest port, is valid only if that path's port is
  // `port`.
  std::vector<PathNo> path_index;
  std::vector<Path> paths;
  PathNo leader = kNoPath;  // path towards the leader: ingress of the registration

  // Set once, before the first path.
  std::unique_ptr<Behaviour> behaviour;

  PathNo find(PortId port) const {
    if (port.value() >= path_index.size()) return kNoPath;
    const PathNo at = path_index[port.value()];
    return at < paths.size() && paths[at].port == port ? at : kNoPath;
  }
  // The trunk towards the leader; kNoPath: the leader is a host here, or has gone.
  PathNo leader_trunk() const {
    return leader == kNoPath || paths[leader].is_host ? kNoPath : leader;
  }
  // Precondition: no path there yet, fewer than kMaxPaths.
  PathNo add_path(PortId port, bool is_host);
  // Removes a path; the last one gets its number. Precondition: it is not the leader's.
  void remove_path(Call& call, const Leader& registrant, PathNo path);
  void check_consistent(std::size_t max_held) const;
};

}  // namespace cepheus::fabric
