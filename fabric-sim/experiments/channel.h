// An RC connection between two simulated hosts over which one sends messages.
#pragma once

#include "fabric-sim/experiments/message_ends.h"

namespace cepheus::sim {

class Channel {
 public:
  // Hosts are the network's indices. Ready at once, and sends nothing yet.
  Channel(Testbed& testbed, std::size_t from, std::size_t to);

  void send(std::uint32_t bytes) { source_.send(bytes); }
  void on_acknowledged(std::function<void(Instant)> acknowledged) {
    source_.on_acknowledged(std::move(acknowledged));
  }
  void on_received(std::function<void(Instant)> received) {
    sink_.on_received(std::move(received));
  }

 private:
  MessageSource source_;
  MessageSink sink_;
};

}  // namespace cepheus::sim
