// The ranks' records: their versions of Cepheus and shared settings, compared before a communicator
// multicasts.
#pragma once

#include <string>
#include <vector>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

// A rank's record: `version`, and the values of shared_settings(). One of mode off ends behind the
// mode, which is the first of them.
std::string record_of(const std::string& version, const Parameters& parameters);

struct RankRecord {
  std::string record;  // empty: the rank has none
  std::string host;
};
struct Difference {
  std::string text;              // what differs, on which hosts; empty: nothing
  std::size_t reporting_rank{};  // the first one that runs Cepheus in `mode`
};
// Of all ranks of a communicator. `parameter` makes a setting's name as its user knows it.
Difference difference_between(const std::vector<RankRecord>& ranks, Mode mode,
                              std::string (*parameter)(const char* name));

}  // namespace cepheus::coll
