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
  // What is not read by the other end; who has more than that waiting is hung up on.
  static constexpr std::size_t kMostUnsent = 4 * kMostFrame;

  // Takes frames of up to `most` bytes.
  FrameSocket(wire::UniqueFd fd, std::size_t most);

  struct Frame {
    MessageType type{};
    std::span<const std::uint8_t> body;
  };

  int fd() const { return fd_.get(); }
  // What to poll() for.
  short events() const;
  void expect(std::size_t most) { most_ = most; }

  // Takes in what has come. False: the other end has gone, or sends what is no frame.
  bool receive();
  // The next frame, whole; valid until the next call of receive(). False in `ok`: too large a one.
  std::optional<Frame> next(bool& ok);

  // Where to encode to; then flush().
  std::vector<std::uint8_t>& out() { return out_; }
  // Sends what the other end has room for. False: it is gone, or does not read.
  bool flush();

 private:
  wire::UniqueFd fd_;
  std::size_t most_;
  std::vector<std::uint8_t> in_, out_;
  std::size_t taken_ = 0;  // bytes of in_ that are done with
};

// "host:port", "[address]:port". kInvalid: it is none, or has no address.
struct Endpoint {
  std::string name;
  std::vector<std::uint8_t> address;  // a sockaddr
  static wire::Result<Endpoint> parse(const std::string& text);
};

// A connection that is being made: writable once it is, or has failed.
wire::Result<wire::UniqueFd> dial(const Endpoint& to);
// The errno of a dialled connection, 0: it stands.
int outcome(int fd);
wire::Result<wire::UniqueFd> listen_at(const Endpoint& at);
// Without blocking; closed if there is none.
wire::UniqueFd accept_from(int listener);

}  // namespace cepheus::replica
