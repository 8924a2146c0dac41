// What the preload library is told: environment variables, read when a device is first needed.
//
//   CEPHEUS_FABRIC   path of the fabric's socket; unset: the library only passes calls through
//   CEPHEUS_HOST     which host of the topology this process is: name, address or "#index";
//                    unset: "#rank" if a launcher says which rank this is, else the first free one
//   CEPHEUS_RANKS_PER_HOST
//                    K: ranks 0 to K-1 share host #0, and so on; the first of each has its port,
//                    the others are refused
//   CEPHEUS_VERBOSE  1: say on stderr what happens, and print the NIC's counters at exit
#pragma once

#include <string>

namespace cepheus::rnic {

struct Environment {
  std::string fabric;        // empty: none configured
  std::string host;          // as HostPort::Options::host
  bool host_chosen = false;  // CEPHEUS_HOST or a rank; false: any free host will do
  std::string refusal;       // why this process may not attach; mostly empty
  bool verbose = false;

  static Environment read();
};

// Whether something listens on the Unix socket `path`. The listener does not notice: a datagram
// socket is refused differently by a living stream listener and by a dead one. Sets `reason` if
// not.
bool fabric_listens(const std::string& path, std::string& reason);

}  // namespace cepheus::rnic
