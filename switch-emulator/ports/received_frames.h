// Which frames from a packet socket belong to the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::fabric {

// Computes the UDP or TCP checksum of an unfragmented IPv4 packet behind an Ethernet header (RFC
// 768, RFC 9293 3.1). Senders leave it to hardware, which packets between two processes of one
// machine never reach. Other packets, and packets shorter than their headers' lengths, stay
// unchanged.
void complete_checksum(std::span<std::uint8_t> frame);

// The reason why it can't be used, or nothing. A tag is a flaw, except of a PROBE to a group: the
// answer shows its host the tag.
std::optional<PortCounter> flaw_of(const InterfaceDriver::Received& received,
                                   std::uint32_t largest_frame, const wire::Ipv4Prefix& groups);

// Makes a frame of it; copies its payload into the pool if the frame itself has no room. Returns
// the reason if it can't, or nothing; then the frame holds one reference. Precondition: it has no
// flaw.
std::optional<PortCounter> take_in(PayloadPools& pools, std::uint32_t pool,
                                   const InterfaceDriver::Received& received, wire::Frame& frame);

}  // namespace cepheus::fabric
