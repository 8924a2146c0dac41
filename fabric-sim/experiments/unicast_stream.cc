#include "fabric-sim/experiments/unicast_stream.h"

namespace cepheus::sim {

UnicastStream::UnicastStream(Testbed& testbed, std::size_t from, std::size_t to,
                             std::uint32_t bytes)
    : bytes_(bytes), channel_(testbed, from, to) {
  channel_.on_acknowledged([this](Instant) {
    ++messages_;
    if (is_running_) channel_.send(bytes_);
  });
}

void UnicastStream::start() {
  is_running_ = true;
  for (std::uint32_t i = 0; i < kPostedMessages; ++i) channel_.send(bytes_);
}

}  // namespace cepheus::sim
