// Runs a topology: all its switches in one process and one thread, with hosts attached over shared
// memory.
//
//     auto fabric = LiveFabric::start(Topology::star(4), {.socket = "/tmp/cepheus.sock"});
//     (*fabric)->run();                       // until stop()
//
// Clients attach at the socket (ports/host_port.h); administrators send requests to <socket>.ctl
// (live/status/control_protocol.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/topology.h"
#include "switch-emulator/live/status/status.h"
#include "wire/result.h"

namespace cepheus::live {

struct LiveOptions {
  std::string socket;      // where clients attach
  std::string pcap_dir{};  // captures of every port; empty: none
  // Reads the topology again, for "reload" (control_protocol.h), on a thread of the fabric's; null:
  // it is from no file.
  std::function<wire::Result<net::Topology>()> reread{};
  // Called on the serving thread, and by start(), with texts for operators.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  // Time limit for peers that connect to attach, and send nothing.
  wire::Duration time_limit = std::chrono::seconds(5);
};

class LiveFabric {
 public:
  // Listens from here on; clients that attach before run() wait. Errors: kRefused (another fabric
  // holds the socket), kInvalid (the topology, or a socket's path that is too long), kUnavailable
  // (a call failed, or an interface can't serve).
  static wire::Result<std::unique_ptr<LiveFabric>> start(const net::Topology& topology,
                                                         const LiveOptions& options);
  // Detaches every client, closes the captures and removes the sockets.
  ~LiveFabric();

  // Serves on the calling thread until stop().
  void run();
  // From any thread or a signal handler.
  void stop();

  // From any other thread than the serving one; waits until that serves.
  FabricStatus status() const;

 private:
  struct State;
  explicit LiveFabric(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cepheus::live
