// What of that which comes from a packet socket is a frame of the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::fabric {

// Makes the UDP or TCP checksum of an unfragmented IPv4 packet behind an Ethernet header (RFC 768,
// RFC 9293 3.1): a sender leaves it to hardware, which a packet between two processes of one machine
// never meets. Anything else, and packets shorter than they say, stay as they are.
void complete_checksum(std::span<std::uint8_t> frame);

// Why nothing of it can be used, or nothing.
std::optional<PortCounter> flaw_of(const InterfaceDriver::Received& received,
                                   std::uint32_t largest_frame);

// Makes a frame of it, its payload copied into the pool if the frame itself has no room. Returns why
// not, or nothing; then the frame holds one reference. Precondition: it has no flaw.
std::optional<PortCounter> take_in(PayloadPools& pools, std::uint32_t pool,
                                   const InterfaceDriver::Received& received, wire::Frame& frame);

}  // namespace cepheus::fabric
