// What the medium of a port towards a host shows, for the answers to PROBEs (probes.h): the engine
// itself sees neither rings nor interfaces.
#pragma once

#include <cstdint>
#include <vector>

namespace cepheus::fabric {

class PortSight {
 public:
  virtual ~PortSight() = default;
  virtual std::uint8_t doubts() const = 0;  // bits of wire::ProbeSight::doubts
  virtual std::uint8_t cores() const = 0;   // as in wire::ProbeSight
  virtual std::uint32_t lost() const = 0;   // frames that full rings and queues have cost
  virtual std::uint8_t fill() const = 0;    // of the ring towards the host now, percent
};

// By port; null: it is a trunk's, or nothing is known of it.
using PortSights = std::vector<const PortSight*>;

}  // namespace cepheus::fabric
