// A program's end of its host's connection daemon: messages out, events in, never blocking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/connections/engine/message.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::connections {

class Client {
 public:
  // Bytes that the daemon has not read yet.
  static constexpr std::size_t kMostUnsent = 256 << 10;

  // $CEPHEUS_CMD_SOCKET, else /run/cepheus-cmd/cmd.sock.
  static std::string default_socket();
  // kUnavailable: no daemon is there. kInvalid: no such path can be.
  static wire::Result<Client> open(const std::string& socket);

  int fd() const { return fd_.get(); }
  // The events for poll(). After one, call next().
  short events() const;
  // kAgain: the daemon has not read earlier messages yet. kFailed: the daemon has ended.
  wire::Result<bool> send(const Message& message);
  // The next event; none: poll. kFailed: the daemon is gone, and all connections with it.
  wire::Result<std::optional<Message>> next();

 private:
  explicit Client(wire::UniqueFd fd) : fd_(std::move(fd)) {}
  wire::Result<bool> flush();
  wire::Result<std::optional<Message>> take();

  wire::UniqueFd fd_;
  std::vector<std::uint8_t> in_, out_;
  std::size_t taken_ = 0;  // bytes of in_ that are done with
};

}  // namespace cepheus::connections
