// Test support: the packets of a capture in testdata/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cepheus::wire {

using Packet = std::vector<std::uint8_t>;

inline constexpr const char* kCaptures[] = {"rxe-unicast-host0.pcap", "rxe-group-sender.pcap",
                                            "rxe-group-receiver.pcap"};

// Throws if the capture can't be read, is truncated or holds no packet: a test without packets
// proves nothing.
std::vector<Packet> read_capture(const std::string& name);

}  // namespace cepheus::wire
