// Names of files of which every process has its own.
#pragma once

#include <string>
#include <string_view>

namespace cepheus::reports {

// "<pid>-<64 random bits><suffix>": process numbers repeat, and containers with one /dev/shm have
// numbers of their own.
std::string new_name(std::string_view suffix);

}  // namespace cepheus::reports
