// `cepheusctl top`: a fabric in a terminal, every second, until q or its end.
#pragma once

#include <string>

#include "wire/result.h"

namespace cepheus::tools {

// Precondition: standard input and output are a terminal; its state is restored at the end.
// kUnavailable: there is no fabric, or it has ended.
wire::Result<void> show_top(const std::string& fabric_socket, bool colour);
// One screen of 80 columns with all rows, as text; or the whole view as JSON. Takes two snapshots
// half a second apart, for rates.
wire::Result<std::string> top_once(const std::string& fabric_socket, bool as_json);

}  // namespace cepheus::tools
