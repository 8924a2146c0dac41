// The two ends of a simulated connection over which one host sends messages to others, a connection
// of two such ends, and the parts of a sender group (sender_group.h).
#pragma once

#include <deque>
#include <functional>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

// Messages of a queue pair that may be posted at once, each way: if they are large, more bytes than
// a round trip over full queues carries.
inline constexpr std::uint32_t kPostedMessages = 16;

// Sends messages in order. The queue pair's limit are posted at once, more wait.
class MessageSource final : public CompletionClient {
 public:
  // Its messages are in the testbed's memory. The queue pair is in INIT.
  MessageSource(Testbed& testbed, Host& host);
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;

  rnic::Qpn qpn() const { return qpn_; }
  Host& host() const { return host_; }
  // `acknowledged` is called for each message, in order, when its acknowledgement has arrived.
  void on_acknowledged(std::function<void(Instant)> acknowledged) {
    acknowledged_ = std::move(acknowledged);
  }
  void send(std::uint32_t bytes);
  void on_completion(Instant now, const rnic::Completion& completion) override;

 private:
  void post(std::uint32_t bytes);

  Host& host_;
  std::uint32_t lkey_ = 0;
  rnic::Qpn qpn_;
  std::uint32_t posted_ = 0;
  std::deque<std::uint32_t> waiting_;  // bytes of each
  std::function<void(Instant)> acknowledged_;
};

// Receives messages; a receive is always posted.
class MessageSink final : public CompletionClient {
 public:
  MessageSink(Testbed& testbed, Host& host);
  MessageSink(const MessageSink&) = delete;
  MessageSink& operator=(const MessageSink&) = delete;

  rnic::Qpn qpn() const { return qpn_; }
  Host& host() const { return host_; }
  // `received` is called for each message, in order, when its last byte has arrived.
  void on_received(std::function<void(Instant)> received) { received_ = std::move(received); }
  // Precondition: the queue pair is connected.
  void begin();
  void on_completion(Instant now, const rnic::Completion& completion) override;

 private:
  void post();

  Host& host_;
  const std::uint32_t receive_bytes_;
  std::uint32_t lkey_ = 0;
  rnic::Qpn qpn_;
  std::function<void(Instant)> received_;
};

// An RC connection between two hosts of the network. It is ready at once, and has sent nothing yet.
struct Channel {
  Channel(Testbed& testbed, std::size_t from, std::size_t to);

  MessageSource source;
  MessageSink sink;
};

}  // namespace cepheus::sim
