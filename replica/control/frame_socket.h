// One end of a control connection: frames in, frames out, both bounded, never blocking.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replica/control/messages.h"
#include "wire/result.h"
#include "wire/unique_fd.h"

namespace cepheus::replica {

class FrameSocket {
 public:
  // Limit of unsent bytes. A peer that leaves more than that unread is disconnected.
  static constexpr std::size_t kMostUnsent = 4 * kMostFrame;

  // Takes frames of up to `most` bytes.
  FrameSocket(wire::UniqueFd fd, std::size_t most);

  struct Frame {
    MessageType type{};
    std::span<const std::uint8_t> body;
  };

  int fd() const { return fd_.get(); }
  // Events for poll().
  short events() const;
  void expect(std::size_t most) { most_ = most; }

  // Takes in what has come. False: the other end has closed, or sends invalid frames.
  bool receive();
  // The next whole frame; valid until the next call of receive(). `ok` is false: it is too large.
  std::optional<Frame> next(bool& ok);

  // Buffer for encoded frames; then flush().
  std::vector<std::uint8_t>& out() { return out_; }
  // Sends as much as the other end takes. False: it has closed, or does not read.
  bool flush();

 private:
  wire::UniqueFd fd_;
  std::size_t most_;
  std::vector<std::uint8_t> in_, out_;
  std::size_t taken_ = 0;  // bytes of in_ that are done with
};

// "host:port", "[address]:port". kInvalid: another form, or a host without an address.
struct Endpoint {
  std::string name;
  std::vector<std::uint8_t> address;  // a sockaddr
  bool is_looked_up = false;          // the host is a name, and not localhost
  static wire::Result<Endpoint> parse(const std::string& text);
};

// A connection in progress: writable once it is established or has failed.
wire::Result<wire::UniqueFd> dial(const Endpoint& to);
// The errno of a dialled connection; 0: it is established.
int outcome(int fd);
// kInvalid: a name has a loopback address, so no other host could connect.
wire::Result<wire::UniqueFd> listen_at(const Endpoint& at);
// Without blocking; closed if no connection waits.
wire::UniqueFd accept_from(int listener);

}  // namespace cepheus::replica
