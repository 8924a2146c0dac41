// cepheus-cmd --status: what a running daemon says of itself.
#pragma once

#include <string>

namespace cepheus::connections {

// An exit code; 1: no daemon answers.
int show_status(const std::string& socket, bool as_json);

}  // namespace cepheus::connections
