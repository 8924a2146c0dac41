// Transport checksums that a sender left to hardware which a packet between two processes of one
// machine never meets (RFC 768, RFC 9293 3.1).
#pragma once

#include <cstdint>
#include <span>

namespace cepheus::fabric {

// Makes the UDP or TCP checksum of an unfragmented IPv4 packet behind an Ethernet header; anything
// else, and packets shorter than they say, stay as they are.
void complete_checksum(std::span<std::uint8_t> frame);

}  // namespace cepheus::fabric
