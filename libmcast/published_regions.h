// Memory of this member that others of its group may write to (mcast_region_publish): registered
// with the device, made known to the switch, and given back once the switch has forgotten it. Under
// the context's state lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "controller/publisher.h"
#include "libmcast/device.h"

namespace cepheus::mcast {

class PublishedRegions {
 public:
  explicit PublishedRegions(const Device& device) : device_(device) {}

  // `address` to `address + length` is the region of that number from now on. NO_MEMORY: the device
  // does not register it; INVALID: the number is taken, or there are too many.
  Expected<void> publish(wire::Instant now, std::uint16_t number, void* address,
                         std::size_t length);
  Expected<void> revoke(wire::Instant now, std::uint16_t number);

  // The group is known: `header` of any datagram of it.
  void begin(wire::Instant now, const wire::MrpHeader& header, const wire::MrpMember& self) {
    publisher_.begin(now, header, self);
  }
  // True if with it all is in force that was published and revoked so far.
  bool on_confirm(const wire::MrpHeader& header);
  bool is_in_force() const { return publisher_.is_in_force(); }
  void end() { publisher_.end(); }
  wire::Instant deadline() const { return publisher_.deadline(); }
  std::optional<wire::Publication> take_due(wire::Instant now) { return publisher_.take_due(now); }

 private:
  const Device& device_;
  mrp::Publisher publisher_;
  std::map<std::uint16_t, MrHandle> memory_;
  std::vector<MrHandle> revoked_;  // a switch may still let WRITEs pass that end there
};

}  // namespace cepheus::mcast
