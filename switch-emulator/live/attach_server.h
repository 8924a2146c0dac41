// Gives hosts' ports to clients, and takes them back when a client closes its socket or its process
// ends.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "switch-emulator/live/access.h"
#include "switch-emulator/live/datapath.h"
#include "switch-emulator/live/listening_socket.h"
#include "switch-emulator/live/poller.h"
#include "switch-emulator/ports/handshake.h"

namespace cepheus::live {

class AttachServer {
 public:
  // All four outlive the server.
  AttachServer(Poller& poller, Datapath& datapath, const ListeningSocket& socket,
               const Access& access);
  ~AttachServer();  // detaches everybody
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // False if the kernel refuses to watch the socket.
  bool start();
  void detach(std::size_t host);
  std::uint64_t refused_users() const { return refused_users_; }

 private:
  struct Client {
    fabric::UniqueFd socket;
    // Readable once the client's process has ended; forked children may keep the socket open.
    fabric::UniqueFd process;
  };

  void accept_all();
  void hear(int socket);
  void serve(fabric::UniqueFd socket, const fabric::Hello& hello);
  void grant(fabric::UniqueFd socket, std::size_t host, const fabric::PeerCredentials& peer);
  // The host that the client shall be, or why not.
  struct Choice {
    std::size_t host = 0;
    fabric::WelcomeStatus status = fabric::WelcomeStatus::kGranted;
    std::string text;
  };
  Choice choose(const std::string& wanted);
  Choice take_named(std::size_t host);
  bool is_free(std::size_t host);
  std::string describe_hosts() const;

  Poller& poller_;
  Datapath& datapath_;
  const ListeningSocket& socket_;
  const Access& access_;
  std::uint64_t refused_users_ = 0;
  std::map<int, fabric::UniqueFd> unheard_;  // connections that have not said hello, by descriptor
  std::vector<Client> clients_;              // by host
};

}  // namespace cepheus::live
