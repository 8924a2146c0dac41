// The listening end of a fabric's control socket (live/control_protocol.h).
//
// Requests are read first and answered then, in passes: whoever asks the same within one pass gets
// the same answer, since all had asked before it was made. Everything is bounded: connections by
// user, requests taken in, answers kept for those who do not read. Runs on the control thread.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "switch-emulator/live/access.h"
#include "switch-emulator/live/control_connection.h"
#include "switch-emulator/live/control_request.h"
#include "switch-emulator/live/listening_socket.h"
#include "switch-emulator/live/poller.h"

namespace cepheus::live {

class ControlServer {
 public:
  // Answers one request that is understood; never throws.
  using Answer = std::function<nlohmann::json(const ControlRequest& request)>;

  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxOfOneUser = 16;
  // Bytes of different answers that wait to be read, the newest of each connection counted.
  static constexpr std::size_t kMaxUnsent = 64 << 20;

  // Poller, socket and access outlive the server. Users who may not command are answered nothing
  // but a StatusRequest.
  ControlServer(Poller& poller, ListeningSocket& socket, const Access& access, Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool start();
  // Answers what has been asked, and gives up on whoever does not read.
  void serve(wire::Instant now);
  // When serve() has something to do though nothing was heard.
  wire::Instant deadline() const;
  // True while answers wait to be read.
  bool has_unsent() const;
  std::uint64_t refused_users() const { return refused_users_; }

 private:
  using Connections = std::map<int, ControlConnection>;  // by descriptor

  void accept_some();
  void hear(int fd);
  void make_room(uid_t user);
  void drop_stalest(uid_t user);
  void answer_requests(ControlConnection& connection);
  ControlConnection::Answer answer_line(const ControlConnection& connection,
                                        std::string_view request);
  std::size_t unsent_bytes() const;
  void drop_who_does_not_read();
  void watch(ControlConnection& connection);
  void drop(int fd);

  Poller& poller_;
  ListeningSocket& socket_;
  const Access& access_;
  Answer answer_;
  std::uint64_t refused_users_ = 0;
  Connections connections_;
  // The last question of this pass, and what was answered.
  std::string asked_;
  ControlConnection::Answer answered_;
};

}  // namespace cepheus::live
