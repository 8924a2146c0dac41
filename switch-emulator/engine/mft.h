// Multicast forwarding table of one group (paper III-B, figure 3): path index, path table, state of
// the turn; and beside it what no hardware table would hold, the evidence of its paths.
//
// All PSNs here are group PSNs unless a name says "host". A path is known by its number in `paths`.
#pragma once

#include "switch-emulator/engine/cnp_policy.h"
#include "switch-emulator/engine/evidence.h"
#include "switch-emulator/engine/regions.h"
#include "switch-emulator/engine/strategies.h"
#include "switch-emulator/engine/turn.h"

namespace cepheus::fabric {

struct GroupStats {
  std::uint64_t data_packets = 0, data_bytes = 0, copies = 0;
};

struct Group {
  static constexpr std::size_t kMaxPaths = kNoPath;  // what the path index can name

  Group(McstId mcst_id, std::uint16_t registration_epoch, const Strategies& how);

  const Strategies strategies;
  const McstId id;
  const std::uint16_t epoch;
  const Psn start;  // S

  // Tree. `path_index[port]`, up to the group's highest port, means something only if that path's
  // port is `port`.
  std::vector<PathNo> path_index;
  std::vector<Path> paths;
  PathNo leader = kNoPath;  // path towards the leader: where registration came from

  Turn turn;
  std::unique_ptr<CnpPolicy> cnps;
  GroupStats stats;
  std::unique_ptr<Regions> regions;  // null: nobody here has published any

  std::vector<Evidence> evidence;  // by path

  PathNo find(PortId port) const {
    if (port.value() >= path_index.size()) return kNoPath;
    const PathNo at = path_index[port.value()];
    return at < paths.size() && paths[at].port == port ? at : kNoPath;
  }
  PathNo add_path(PortId port,
                  bool is_host);  // precondition: no path there yet, fewer than kMaxPaths
  // Takes a path out; the last one gets its number. Precondition: it is not the leader's.
  void remove_path(PathNo path);
  Regions& own_regions();  // made, if there are none
  // Ends the turn, whose packets end before `first`, and begins that of `newcomer`; `port_first`:
  // `first` as its port counts.
  void begin_turn(PathNo newcomer, Ipv4 source_ip, Psn first, Psn port_first);
  void check_consistent(std::size_t max_held) const;
};

}  // namespace cepheus::fabric
