// A hostile host's surroundings, its attachment, and its attacks.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "switch-emulator/live/test_fabric.h"

namespace cepheus::hostile {

struct Scenario {
  std::string socket;   // the fabric's
  std::string host;     // to attach as
  wire::Ipv4 victim;    // a host of another user's group
  wire::Ipv4 friendly;  // a host of an accomplice
};

// One attack, for as long as the object lives. A step takes a moment.
class Attack {
 public:
  virtual ~Attack() = default;
  virtual void step() = 0;
};

// Repeats `attempt` until it gives a port: a host that the fabric has detached attaches again,
// which is part of the attack. An error after kTimeLimit: the fabric is gone, or refuses.
template <typename Attempt>
auto attach_again(const Scenario& scenario, Attempt attempt) {
  constexpr auto kTimeLimit = std::chrono::seconds(10);
  const auto limit = std::chrono::steady_clock::now() + kTimeLimit;
  for (;;) {
    if (auto port = attempt()) return port;
    if (std::chrono::steady_clock::now() > limit) {
      throw std::runtime_error("can't attach as " + scenario.host + " at " + scenario.socket +
                               ": see whether cepheus-switch runs there");
    }
    std::this_thread::yield();
  }
}

inline std::unique_ptr<fabric::HostPort> attach(const Scenario& scenario) {
  return attach_again(scenario, [&]() -> std::unique_ptr<fabric::HostPort> {
    auto port = fabric::HostPort::attach({scenario.socket, scenario.host});
    return port ? std::move(*port) : nullptr;
  });
}

// A port without checks.
inline std::unique_ptr<live::RawClient> attach_raw(const Scenario& scenario) {
  return attach_again(scenario, [&]() -> std::unique_ptr<live::RawClient> {
    try {
      return std::make_unique<live::RawClient>(scenario.socket, scenario.host);
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  });
}

}  // namespace cepheus::hostile
