// A multicast WRITE that a member's regions did not allow: kept by its group, and shown to
// administrators.
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace cepheus::fabric {

struct WriteRefusal {
  wire::Ipv4 host;           // the member's
  std::uint32_t region = 0;  // as the source named it: number, offset, bytes
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  // The member's NIC refused a WRITE that the switch had let through; the other fields are 0.
  bool by_nic = false;
  std::uint64_t count = 0;  // so far
};

}  // namespace cepheus::fabric
