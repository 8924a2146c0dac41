// A connection between two simulated hosts over which one sends messages without end.
#pragma once

#include "fabric-sim/experiments/channel.h"

namespace cepheus::sim {

class UnicastStream {
 public:
  // Hosts are the network's indices; messages of `bytes` each. Ready at once, and sends nothing yet.
  UnicastStream(Testbed& testbed, std::size_t from, std::size_t to, std::uint32_t bytes);

  void start();
  void stop() { is_running_ = false; }  // what is posted still goes out
  // That the receiver has, and the sender knows of.
  std::uint64_t messages() const { return messages_; }

 private:
  const std::uint32_t bytes_;
  Channel channel_;
  bool is_running_ = false;
  std::uint64_t messages_ = 0;
};

}  // namespace cepheus::sim
