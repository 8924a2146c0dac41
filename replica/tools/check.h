// cepheus-replica check: whether replicas hold the same, while a writer may be writing.
#pragma once

#include <string>
#include <vector>

namespace cepheus::replica {

// Exit codes: alike, not alike, not to be told (a replica is missing, or not of that volume; usage).
int check_volume(const std::string& volume, const std::vector<std::string>& addresses);

}  // namespace cepheus::replica
