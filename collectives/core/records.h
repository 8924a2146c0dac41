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
// Of all ranks of a communicator, the one that prints how they differ: the first that runs Cepheus in
// `mode` and serves communicators of this size. Their number, if none does.
std::size_t reporting_rank(const std::vector<RankRecord>& ranks, Mode mode);
// What differs between that rank and the others, and on which hosts; empty: nothing. `parameter` makes
// a setting's name as its user knows it.
std::string difference_between(const std::vector<RankRecord>& ranks, Mode mode,
                               std::string (*parameter)(const char* name));

}  // namespace cepheus::coll
