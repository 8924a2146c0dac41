// Gives hosts' ports to clients, and takes them back when a client closes its socket or its process
// ends; keeps hosts for the jobs of launchers as long as those keep their sockets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "switch-emulator/live/access.h"
#include "switch-emulator/live/datapath.h"
#include "switch-emulator/live/host_assignment.h"
#include "switch-emulator/live/listening_socket.h"
#include "switch-emulator/live/poller.h"
#include "switch-emulator/ports/handshake.h"

namespace cepheus::live {

class AttachServer final : private HostAssignment::Ports {
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
  // Says at the hosts' ports who has reserved them.
  void tell_reservations(std::vector<SwitchStatus>& switches) const;

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
  void reserve(fabric::UniqueFd socket, const fabric::HostsWanted& wanted);
  void end_reservation(int socket);
  // A launcher that has just ended keeps no host, even if the news are still in the queue.
  void forget_ended_launchers();
  // Who is behind the socket; nothing if he may not attach, and he has been told.
  std::optional<fabric::PeerCredentials> admit(int socket);
  bool is_free(std::size_t host) override;
  std::string why_not_free(std::size_t host) const override;

  Poller& poller_;
  Datapath& datapath_;
  const ListeningSocket& socket_;
  const Access& access_;
  std::uint64_t refused_users_ = 0;
  std::map<int, fabric::UniqueFd> unheard_;  // connections that have not said hello, by descriptor
  std::vector<Client> clients_;              // by host
  struct Launcher {
    fabric::UniqueFd socket;
    fabric::ReservationId reservation = 0;
  };
  std::map<int, Launcher> launchers_;  // by descriptor
  HostAssignment assignment_;
};

}  // namespace cepheus::live
