// Frames in and out of a stream socket, both bounded. One frame is taken in at a time, so each socket has its turn.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controller/connections/daemon/address.h"

namespace cepheus::connections {

class FrameStream : public std::enable_shared_from_this<FrameStream> {
 public:
  // The most bytes that the other end has not read. Beyond it the connection is closed.
  static constexpr std::size_t kMostUnsent = 1 << 20;
  // The time for the last bytes of an ended stream.
  static constexpr std::chrono::seconds kLastWords{1};

  using OnFrame = std::function<void(std::span<const std::uint8_t>)>;  // without its length
  enum class End { kGone, kTooLong, kNotReading };
  using OnEnd = std::function<void(End, const std::string&)>;

  FrameStream(Socket socket, std::size_t most_frame);
  // `on_end` is called once, never from within send(), and not after close() or finish(). Once the stream has
  // ended it holds neither of them any more, so they may hold its owner.
  void start(OnFrame on_frame, OnEnd on_end);
  // A frame with its length.
  void send(std::vector<std::uint8_t> frame);
  // Closes once all bytes are out, or after kLastWords. Reads nothing more.
  void finish();
  void close();

 private:
  void read_length();
  void read_body(std::size_t length);
  void write();
  void end(End how, const std::string& why);
  void forget_handlers();

  Socket socket_;
  asio::steady_timer last_words_;
  std::size_t most_;
  OnFrame on_frame_;
  OnEnd on_end_;
  std::array<std::uint8_t, 4> length_{};
  std::vector<std::uint8_t> body_;
  std::deque<std::vector<std::uint8_t>> out_;
  std::size_t unsent_ = 0;
  bool is_ended_ = false, is_finishing_ = false;
};

}  // namespace cepheus::connections
