// The listening end of a fabric's control socket (live/control_protocol.h): lines in, lines out,
// never blocking.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "switch-emulator/live/access.h"
#include "switch-emulator/live/listening_socket.h"
#include "switch-emulator/live/poller.h"

namespace cepheus::live {

class ControlServer {
 public:
  // Answers one request; never throws.
  using Answer = std::function<nlohmann::json(const nlohmann::json& request)>;

  // Poller, socket and access outlive the server. Users who may not command are answered nothing
  // but {"ask": "status"}.
  ControlServer(Poller& poller, const ListeningSocket& socket, const Access& access, Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  bool start();
  // True while answers wait to be read.
  bool has_unsent() const;
  std::uint64_t refused_users() const { return refused_users_; }

 private:
  struct Connection {
    fabric::UniqueFd socket;
    std::string in, out;
    bool may_command = false;
    bool ended = false;  // the peer will not ask more
  };

  void accept_all();
  void serve(int fd);
  bool read_requests(Connection& connection);
  void answer_lines(Connection& connection);
  bool write_answers(Connection& connection);
  void drop(int fd);

  Poller& poller_;
  const ListeningSocket& socket_;
  const Access& access_;
  std::uint64_t refused_users_ = 0;
  Answer answer_;
  std::map<int, Connection> connections_;
};

}  // namespace cepheus::live
