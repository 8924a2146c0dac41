// Gives hosts' ports to clients, and takes them back when a client closes its socket or its process
// ends. Reserves hosts for the jobs of launchers while these keep their sockets open.
//
// A user without permission is refused when it connects. A peer that then sends nothing is
// disconnected after a while, or when others need the place; it may connect again. Runs on the
// control thread; ports are opened and closed on the datapath's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "switch-emulator/live/control/access.h"
#include "switch-emulator/live/control/host_assignment.h"
#include "switch-emulator/live/control/listening_socket.h"
#include "switch-emulator/live/control/poller.h"
#include "switch-emulator/live/control/task_queue.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/ports/handshake.h"

namespace cepheus::live {

class AttachServer final : private HostAssignment::Ports {
 public:
  static constexpr std::size_t kMaxPending = 256;

  // All outlive the server. `doorbells` is the poller of the datapath's thread; `tasks` run
  // there. `time_limit` is from connecting to the AttachRequest.
  AttachServer(Poller& poller, Datapath& datapath, Poller& doorbells, TaskQueue& tasks,
               ListeningSocket& socket, const Access& access, wire::Duration time_limit);
  ~AttachServer() { close(); }
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // False if the kernel refuses to watch the socket.
  bool start();
  // Disconnects peers that have sent nothing for too long.
  void expire(wire::Instant now);
  // When expire() has to run next.
  wire::Instant deadline() const;
  // The datapath has closed the port of this `attachment` (SwitchPort::attachment).
  void on_closed(std::size_t host, std::uint64_t attachment);
  void detach_all();
  // Stops listening, and disconnects all peers that are not clients.
  void close();
  // Kills the host's client with the fabric's own rights. Errors: `pid` is not its client, or the
  // kernel refuses.
  wire::Result<void> kill(const std::string& host, pid_t pid) const;
  std::uint64_t refused_users() const { return refused_users_; }
  // Stores the reservations at the hosts' ports.
  void show_reservations(std::vector<SwitchStatus>& switches) const;

 private:
  struct PendingPeer {  // has not sent its AttachRequest
    fabric::UniqueFd socket;
    fabric::PeerCredentials peer;
    wire::Instant leaves;
  };
  struct Client {
    fabric::UniqueFd socket;
    fabric::UniqueFd
        // Readable once the client's process has ended; forked children may keep the socket open.
        process;
    pid_t pid = 0;
    std::uint64_t attachment = 0;
  };

  void accept_some();
  // Refuses and counts a peer that may not attach.
  bool lets_in(int socket, const fabric::PeerCredentials& peer);
  void admit(fabric::UniqueFd socket, const fabric::PeerCredentials& peer);
  void dismiss_longest_silent();
  void dismiss(int fd, const char* why);
  void on_readable(int fd);
  void serve(fabric::UniqueFd socket, const fabric::PeerCredentials& peer,
             const fabric::AttachRequest& hello);
  void grant(fabric::UniqueFd socket, std::size_t host, const fabric::PeerCredentials& peer);
  wire::Result<fabric::GrantedFds> open_port(std::size_t host, const fabric::PeerCredentials& peer);
  bool is_still(std::size_t host) const;
  void watch_doorbell(std::size_t host);
  void detach(std::size_t host);
  void reserve(fabric::UniqueFd socket, const fabric::PeerCredentials& peer,
               const fabric::HostsWanted& wanted);
  void end_reservation(int socket);
  // Ignores reservations of a launcher that has just ended, even if its event is still in the
  // queue, and of a user that a reload has revoked.
  void forget_ended_launchers();
  bool is_free(std::size_t host) override;
  std::string why_not_free(std::size_t host) const override;

  Poller& poller_;
  Datapath& datapath_;
  Poller& doorbells_;
  TaskQueue& tasks_;
  ListeningSocket& socket_;
  const Access& access_;
  const wire::Duration time_limit_;
  std::uint64_t refused_users_ = 0;
  std::map<int, PendingPeer> pending_;  // by descriptor
  std::vector<Client> clients_;         // by host
  struct Launcher {
    fabric::UniqueFd socket;
    fabric::ReservationId reservation = 0;
    uid_t user = 0;
  };
  std::map<int, Launcher> launchers_;  // by descriptor
  HostAssignment assignment_;
};

}  // namespace cepheus::live
