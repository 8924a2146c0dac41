// Where a hostile host stands, what it has to attach with, and what it does there.
#pragma once

#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "switch-emulator/live/test_fabric.h"

namespace cepheus::hostile {

struct Place {
  std::string socket;   // the fabric's
  std::string host;     // to attach as
  wire::Ipv4 victim;    // a host of somebody else's group
  wire::Ipv4 friendly;  // a host of an accomplice
};

// One way to misbehave, for as long as it lives. A step takes a moment.
class Conduct {
 public:
  virtual ~Conduct() = default;
  virtual void step() = 0;
};

// A port that the fabric has taken away is attached again: that, too, is misbehaviour.
inline std::unique_ptr<fabric::HostPort> attach(const Place& place) {
  for (;;) {
    if (auto port = fabric::HostPort::attach({place.socket, place.host})) return std::move(*port);
    usleep(1000);
  }
}

// A port without manners.
inline std::unique_ptr<live::RawClient> attach_raw(const Place& place) {
  for (;;) {
    try {
      return std::make_unique<live::RawClient>(place.socket, place.host);
    } catch (const std::runtime_error&) {
      usleep(1000);
    }
  }
}

}  // namespace cepheus::hostile
