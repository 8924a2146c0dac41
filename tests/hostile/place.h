// Where a hostile host stands, what it has to attach with, and what it does there.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "switch-emulator/live/test_fabric.h"

namespace cepheus::hostile {

struct Place {
  std::string socket;   // the fabric's
  std::string host;     // to attach as
  wire::Ipv4 victim;    // a host of somebody else's group
  wire::Ipv4 friendly;  // a host of an accomplice
};

// One way to misbehave, for as long as it lives. A step takes a moment.
class Attack {
 public:
  virtual ~Attack() = default;
  virtual void step() = 0;
};

// Until `attempt` gives a port: one that the fabric has taken away is attached again, which is
// misbehaviour, too. An error if there is none for kTimeLimit: the fabric is gone, or refuses.
template <typename Attempt>
auto attach_again(const Place& place, Attempt attempt) {
  constexpr auto kTimeLimit = std::chrono::seconds(10);
  const auto limit = std::chrono::steady_clock::now() + kTimeLimit;
  for (;;) {
    if (auto port = attempt()) return port;
    if (std::chrono::steady_clock::now() > limit) {
      throw std::runtime_error("can't attach as " + place.host + " at " + place.socket +
                               ": see whether cepheus-switch runs there");
    }
    std::this_thread::yield();
  }
}

inline std::unique_ptr<fabric::HostPort> attach(const Place& place) {
  return attach_again(place, [&]() -> std::unique_ptr<fabric::HostPort> {
    auto port = fabric::HostPort::attach({place.socket, place.host});
    return port ? std::move(*port) : nullptr;
  });
}

// A port without manners.
inline std::unique_ptr<live::RawClient> attach_raw(const Place& place) {
  return attach_again(place, [&]() -> std::unique_ptr<live::RawClient> {
    try {
      return std::make_unique<live::RawClient>(place.socket, place.host);
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  });
}

}  // namespace cepheus::hostile
