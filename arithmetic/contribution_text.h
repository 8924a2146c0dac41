// A contribution to a reduction, for people.
#pragma once

#include <cstdint>
#include <string>

namespace cepheus::arithmetic {

// By the codes of a packet: "nothing, as to a barrier"; "64 bytes", which are plain ones as of a gather;
// "8 bytes to a sum of int64"; "4 bytes to operation 11 of type 15".
std::string contribution_text(std::uint8_t operation, std::uint8_t type, std::uint32_t bytes);

}  // namespace cepheus::arithmetic
