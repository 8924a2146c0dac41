// States: reading a length, reading its body; finishing, until the last bytes are out; ended. The
// last two hold no handlers, because these may hold their owner. A frame without bytes or beyond
// the limit ends the stream. So do more than kMostUnsent unread bytes, in a later turn and never
// within send(). A write to a closed end is ignored: its reason may still be there to read.
#include "controller/connections/daemon/frame_stream.h"

#include <cerrno>

#include "controller/connections/engine/message.h"
#include "wire/byte_order.h"

namespace cepheus::connections {

FrameStream::FrameStream(Socket socket, std::size_t most_frame)
    : socket_(std::move(socket)), last_words_(socket_.get_executor()), most_(most_frame) {}

void FrameStream::start(OnFrame on_frame, OnEnd on_end) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  read_length();
}

void FrameStream::read_length() {
  asio::async_read(socket_, asio::buffer(length_),
                   [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                     if (self->is_ended_ || self->is_finishing_) return;
                     if (error) return self->end(End::kGone, error.message());
                     const std::size_t length = wire::load_be32(self->length_.data());
                     if (length == 0 || length > self->most_) {
                       return self->end(End::kTooLong, "a frame of " + std::to_string(length) +
                                                           " bytes: at most " +
                                                           std::to_string(self->most_) +
                                                           " are taken");
                     }
                     self->read_body(length);
                   });
}

void FrameStream::read_body(std::size_t length) {
  body_.resize(length);
  asio::async_read(socket_, asio::buffer(body_),
                   [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                     if (self->is_ended_ || self->is_finishing_) return;
                     if (error) return self->end(End::kGone, error.message());
                     // It may end this stream, which forgets its handlers.
                     OnFrame on_frame = std::exchange(self->on_frame_, nullptr);
                     on_frame(self->body_);
                     if (self->is_ended_ || self->is_finishing_) return;
                     self->on_frame_ = std::move(on_frame);
                     self->read_length();
                   });
}

void FrameStream::send(std::vector<std::uint8_t> frame) {
  if (is_ended_ || is_finishing_) return;
  unsent_ += frame.size();
  if (unsent_ > kMostUnsent) {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->end(End::kNotReading, "it does not read its messages");
    });
    return;
  }
  out_.push_back(std::move(frame));
  if (out_.size() == 1) write();
}

void FrameStream::write() {
  asio::async_write(socket_, asio::buffer(out_.front()),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                      if (self->is_ended_) return;
                      // The other end may have sent the reason before it closed: that is still to be read.
                      const bool is_closed = error.value() == EPIPE || error.value() == ECONNRESET;
                      if (is_closed && !self->is_finishing_) return;
                      if (error) return self->end(End::kGone, error.message());
                      self->unsent_ -= self->out_.front().size();
                      self->out_.pop_front();
                      if (!self->out_.empty()) return self->write();
                      if (self->is_finishing_) self->close();
                    });
}

void FrameStream::end(End how, const std::string& why) {
  if (is_ended_) return;
  const OnEnd on_end = std::exchange(on_end_, nullptr);  // null once it finishes
  close();
  if (on_end) on_end(how, why);
}

void FrameStream::finish() {
  if (is_ended_ || is_finishing_) return;
  is_finishing_ = true;
  forget_handlers();
  if (out_.empty()) return close();
  last_words_.expires_after(kLastWords);
  last_words_.async_wait([self = shared_from_this()](const asio::error_code&) { self->close(); });
}

void FrameStream::close() {
  if (is_ended_) return;
  is_ended_ = true;
  forget_handlers();
  asio::error_code ignored;
  socket_.close(ignored);
  last_words_.cancel();
}

// They hold their owner, which holds the stream: neither would ever be freed.
void FrameStream::forget_handlers() {
  on_frame_ = nullptr;
  on_end_ = nullptr;
}

}  // namespace cepheus::connections
