// The listening end of a fabric's control socket (live/status/control_protocol.h).
//
// Works in passes: it first reads requests, then answers them. Equal requests within one pass get
// the same answer, since all arrived before it was made. All is bounded: connections by user,
// requests read, and answers kept for peers that do not read. Runs on the control thread.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "switch-emulator/live/control/access.h"
#include "switch-emulator/live/control/control_connection.h"
#include "switch-emulator/live/control/control_request.h"
#include "switch-emulator/live/control/listening_socket.h"
#include "switch-emulator/live/control/poller.h"

namespace cepheus::live {

class ControlServer {
 public:
  // Answers one parsed request; never throws.
  using Answer = std::function<nlohmann::json(const ControlRequest& request)>;

  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxOfOneUser = 16;
  // Bytes of unread answers, where the newest of each connection counts.
  static constexpr std::size_t kMaxUnsent = 64 << 20;

  // Poller, socket and access outlive the server. Users without permission to command get only
  // answers to StatusRequest.
  ControlServer(Poller& poller, ListeningSocket& socket, const Access& access, Answer answer);
  ~ControlServer() { close(); }
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool start();
  // Stops listening, and disconnects all peers.
  void close();
  // Answers the requests, and disconnects peers that do not read.
  void serve(wire::Instant now);
  // When serve() has to run even without new requests.
  wire::Instant deadline() const;
  // Whether unread answers are waiting.
  bool has_unsent() const;
  std::uint64_t refused_users() const { return refused_users_; }

 private:
  using Connections = std::map<int, ControlConnection>;  // by descriptor

  void accept_some();
  void on_readable(int fd);
  void limit_connections(uid_t user);
  void drop_stalest(const std::function<bool(const ControlConnection&)>& which);
  void answer_requests(ControlConnection& connection);
  ControlConnection::Answer answer_line(const ControlConnection& connection,
                                        std::string_view request);
  std::size_t unsent_bytes() const;
  void drop_slow_readers();
  void watch(ControlConnection& connection);
  void drop(int fd);

  Poller& poller_;
  ListeningSocket& socket_;
  const Access& access_;
  Answer answer_;
  std::uint64_t refused_users_ = 0;
  Connections connections_;
  // The last request of this pass, and its answer.
  std::string last_request_;
  ControlConnection::Answer answered_;
};

}  // namespace cepheus::live
