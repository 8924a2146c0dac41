// Congestion control as text: "off", or a parameter set and the changes to it.
//
//     orig                      DCQCN's parameters as published
//     hpcc,ce-echo              those of HPCC's simulator; marks echoed in acknowledgements
//     orig,g=0.01,min_mbps=50   single parameters
//     orig,ce-echo              cuts are then 50 us apart, as notifications would be
#pragma once

#include <optional>
#include <string_view>

#include "nic-emulator/engine/congestion.h"

namespace cepheus::rnic {

// Empty for "off" and "". `link`: the port's rate, unless the text has link_mbps. An unlimited link
// counts as 100 Gb/s. kInvalid: the error names the wrong word and the possible ones.
wire::Result<std::optional<CongestionConfig>> parse_congestion(std::string_view text,
                                                               wire::BitRate link);

}  // namespace cepheus::rnic
