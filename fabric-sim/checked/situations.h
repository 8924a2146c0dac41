// Which situations (wire/situation.h) this process has met.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cepheus::sim {

// Those of files in these folders that no seed met; rare ones do not count.
std::vector<std::string> unmet_situations(const std::vector<std::string_view>& folders);

// Prints how many of their common situations the seeds have met, and those that they met fewer than
// 60 times: another day's seeds may miss one, so it should be a rare one.
void print_seldom_situations(const std::vector<std::string_view>& folders);

// Adds a line for each situation to the file: times met, "common" or "rare", file, name, with tabs
// between them. False: the file can't be written; errno says why.
bool add_situations_to(const std::string& file);

}  // namespace cepheus::sim
