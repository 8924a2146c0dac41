// cepheus-replica status: what replicas say of themselves.
#pragma once

#include <string>
#include <vector>

namespace cepheus::replica {

// Prints each one's, as JSON lines or for people; an exit code: 0, 1: one did not answer, 2: usage.
int show_status(const std::vector<std::string>& addresses, bool as_json);

}  // namespace cepheus::replica
