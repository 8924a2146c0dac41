// A connection between two simulated hosts over which one sends messages without end.
#pragma once

#include <memory>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

class UnicastStream {
 public:
  // Hosts are the network's indices; messages of `bytes` each. Ready at once, and sends nothing yet.
  UnicastStream(Testbed& testbed, std::size_t from, std::size_t to, std::uint32_t bytes);
  ~UnicastStream();
  UnicastStream(const UnicastStream&) = delete;
  UnicastStream& operator=(const UnicastStream&) = delete;

  void start();
  void stop();  // what is posted still goes out
  // That the receiver has, and the sender knows of.
  std::uint64_t messages() const;

 private:
  class End;
  std::unique_ptr<End> source_, sink_;
};

}  // namespace cepheus::sim
