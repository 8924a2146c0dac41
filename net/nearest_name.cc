#include "net/nearest_name.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace cepheus::net {
namespace {

// Levenshtein's distance, one row at a time.
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_edits = SIZE_MAX;
  for (const std::string_view candidate : known) {
    const std::size_t n = edits(name, candidate);
    if (n < best_edits && n * 2 <= std::max(name.size(), candidate.size())) {
      best = candidate;
      best_edits = n;
    }
  }
  return best.empty() ? "" : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace cepheus::net
