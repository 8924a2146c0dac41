// One connection to the control socket: lines in, answers out, both bounded, without blocking.
//
// Answers are shared: a status of a large fabric takes megabytes, and a peer that requests it a
// hundred times at once gets one answer a hundred times.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/types.h"

namespace cepheus::live {

class ControlConnection {
 public:
  using Answer = std::shared_ptr<const std::string>;
  // Longest request, and limit of the bytes read before an answer.
  static constexpr std::size_t kMaxRequests = 64 << 10;
  // A peer that has read none of its answers for this time gets disconnected.
  static constexpr wire::Duration kTimeLimit = std::chrono::seconds(5);

  ControlConnection(fabric::UniqueFd socket, uid_t user, wire::Instant now)
      : socket_(std::move(socket)), user_(user), active_(now) {}

  int fd() const { return socket_.get(); }
  uid_t user() const { return user_; }
  wire::Instant last_active() const { return active_; }
  // When to disconnect it; never, while it is not its turn to read.
  wire::Instant deadline() const { return has_unsent() ? active_ + kTimeLimit : wire::kNever; }

  // Reads what has arrived. False: the connection is useless.
  bool read(wire::Instant now);
  // The next request with the end of its line, or empty; valid until drop_request().
  std::string_view request() const;
  void drop_request() { taken_ += request().size(); }
  void answer(Answer text) { out_.push_back(std::move(text)); }
  bool has_unsent() const { return !out_.empty(); }
  // Bytes of all unsent answers; null if there are none. The answers in one queue are mostly the
  // same.
  const Answer& newest_unsent() const { return out_.back(); }
  // Whether to wait for more requests, rather than for buffer space. Requests are not read from a
  // peer that does not read its answers.
  bool wants_requests() const { return !ended_ && out_.empty(); }
  // Sends as much as the socket accepts. False: the connection is useless.
  bool write(wire::Instant now);
  // The peer will send no more, and everything is answered.
  bool is_done() const { return ended_ && out_.empty() && request().empty(); }

 private:
  fabric::UniqueFd socket_;
  uid_t user_;
  wire::Instant active_;  // time of the last read or write
  bool ended_ = false;    // the peer will send no more
  std::string in_;
  std::size_t taken_ = 0;  // processed bytes of in_
  std::deque<Answer> out_;
  std::size_t sent_ = 0;  // sent bytes of the first answer
};

}  // namespace cepheus::live
