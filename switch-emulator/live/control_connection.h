// One connection to the control socket: lines in, answers out, both bounded, never blocking.
//
// Answers are shared: a status of a large fabric takes megabytes, and whoever asks for it a hundred
// times in one breath is told the same.
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
  // Longest request, and most that is taken in before it was answered.
  static constexpr std::size_t kMaxRequests = 64 << 10;
  // Who has not read anything of his answers for so long will not.
  static constexpr wire::Duration kTimeLimit = std::chrono::seconds(5);

  ControlConnection(fabric::UniqueFd socket, uid_t user, wire::Instant now)
      : socket_(std::move(socket)), user_(user), active_(now) {}

  int fd() const { return socket_.get(); }
  uid_t user() const { return user_; }
  wire::Instant last_active() const { return active_; }
  // When to give it up; never, as long as it is not its turn to read.
  wire::Instant deadline() const { return has_unsent() ? active_ + kTimeLimit : wire::kNever; }

  // Takes in what has come. False: there is no use in this connection any more.
  bool read(wire::Instant now);
  // The next request with the end of its line, or empty; valid until drop_request().
  std::string_view request() const;
  void drop_request() { taken_ += request().size(); }
  void answer(Answer text) { out_.push_back(std::move(text)); }
  bool has_unsent() const { return !out_.empty(); }
  // Of all answers that are not sent; null if there are none. Answers in one queue are mostly one.
  const Answer& newest_unsent() const { return out_.back(); }
  // Whether to wait for more requests now, and not for room: who does not read his answers is not
  // asked for more.
  bool wants_requests() const { return !ended_ && out_.empty(); }
  // Sends what the peer has room for. False: there is no use in this connection any more.
  bool write(wire::Instant now);
  // Nobody asks any more, and everything is answered.
  bool is_done() const { return ended_ && out_.empty() && request().empty(); }

 private:
  fabric::UniqueFd socket_;
  uid_t user_;
  wire::Instant active_;  // something was read, or written
  bool ended_ = false;    // the peer will not ask more
  std::string in_;
  std::size_t taken_ = 0;  // bytes of in_ that are done with
  std::deque<Answer> out_;
  std::size_t sent_ = 0;  // of the first answer, bytes
};

}  // namespace cepheus::live
