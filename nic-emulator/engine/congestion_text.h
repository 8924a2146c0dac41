// Congestion control as people ask for it: "off", or a parameter set, then what differs from it.
//
//     orig                      DCQCN's parameters as published
//     hpcc,ce-echo              those of HPCC's simulator; marks echoed in acknowledgements
//     orig,g=0.01,min_mbps=50   one parameter or another
//     orig,ce-echo              cuts are then 50 us apart, as notifications would be
#pragma once

#include <optional>
#include <string_view>

#include "nic-emulator/engine/congestion.h"

namespace cepheus::rnic {

// Empty for "off" and "". `link`: the port's rate, unless the text has link_mbps; unlimited counts as
// 100 Gb/s. kInvalid: the error names the word that can't be, and what could.
wire::Result<std::optional<CongestionConfig>> parse_congestion(std::string_view text,
                                                               wire::BitRate link);

}  // namespace cepheus::rnic
