// A schedule lists each rank's sends in order, with the slice that must have arrived first. It is
// computed for all ranks at once, without time. The pipeline's and the graph's rounds are played
// through, so that a rank sends what it has by then.
//
// The best_ functions run every setting and keep the shortest time, the first one of equal ones.
// Sources: Ganesan and Seshadri (RDMC), HPL's long, MPICH and Open MPI.
#include "fabric-sim/experiments/rivals.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <optional>

#include "fabric-sim/experiments/circulant_graph.h"

namespace cepheus::sim {
namespace {

Schedule empty(std::size_t ranks, std::uint64_t bytes, std::size_t slices) {
  assert(ranks >= 2 && slices >= 1);
  Schedule s;
  s.sends.resize(ranks);
  for (std::size_t i = 0; i < slices; ++i) {
    s.slices.push_back(bytes * (i + 1) / slices - bytes * i / slices);
  }
  return s;
}

std::size_t dimensions(std::size_t ranks) {
  return static_cast<std::size_t>(std::bit_width(ranks - 1));
}

// Rank r serves the ranks of [r, r + reach) down a binomial tree.
std::size_t reach(Rank r, std::size_t ranks) {
  return r == 0 ? std::bit_ceil(ranks) : r & (~r + 1);
}

// Each rank's part, a slice for each rank, down a binomial tree. A range is sent on when all of it
// has arrived.
void scatter(Schedule& s) {
  const std::size_t n = s.ranks();
  for (Rank r = 0; r < n; ++r) {
    const std::size_t end = std::min(r + reach(r, n), n);
    for (std::size_t half = reach(r, n) / 2; half >= 1; half /= 2) {
      const Rank child = r + half;
      for (std::size_t part = child; part < std::min(child + half, n); ++part) {
        s.sends[r].push_back({child, part, r == 0 ? part : end - 1});
      }
    }
  }
}

void keep_shorter(BestSetting& best, double us, const std::string& setting) {
  if (best.setting.empty() || us < best.us) best = {us, setting};
}

}  // namespace

std::uint64_t Schedule::bytes() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t slice : slices) sum += slice;
  return sum;
}

Schedule fan_out(std::size_t ranks, std::uint64_t bytes) {
  Schedule s = empty(ranks, bytes, 1);
  for (Rank r = 1; r < ranks; ++r) s.sends[0].push_back({r, 0, 0});
  s.at_once = ranks;
  return s;
}

Schedule chain(std::size_t ranks, std::uint64_t bytes, std::size_t slices) {
  Schedule s = empty(ranks, bytes, slices);
  for (Rank r = 0; r + 1 < ranks; ++r) {
    for (std::size_t i = 0; i < slices; ++i) s.sends[r].push_back({r + 1, i, i});
  }
  return s;
}

Schedule binomial_tree(std::size_t ranks, std::uint64_t bytes, Tree tree) {
  Schedule s = empty(ranks, bytes, 1);
  for (Rank r = 0; r < ranks; ++r) {
    std::vector<Rank> children;
    if (tree == Tree::kFarFirst) {
      for (std::size_t half = reach(r, ranks) / 2; half >= 1; half /= 2) {
        if (r + half < ranks) children.push_back(r + half);
      }
    } else {
      for (std::size_t bit = std::bit_ceil(r + 1); r + bit < ranks; bit *= 2) {
        children.push_back(r + bit);
      }
    }
    for (const Rank child : children) s.sends[r].push_back({child, 0, 0});
  }
  return s;
}

Schedule spread_and_roll(std::size_t ranks, std::uint64_t bytes) {
  Schedule s = empty(ranks, bytes, ranks);
  scatter(s);
  for (Rank r = 0; r < ranks; ++r) {
    for (std::size_t step = 0; step + 1 < ranks; ++step) {
      const std::size_t part = (r + ranks - step) % ranks;
      s.sends[r].push_back({(r + 1) % ranks, part, part});
    }
  }
  return s;
}

Schedule binomial_pipeline(std::size_t ranks, std::uint64_t bytes, std::size_t slices) {
  assert(std::has_single_bit(ranks));
  Schedule s = empty(ranks, bytes, slices);
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::vector<bool>> has(ranks, std::vector<bool>(slices, false));
  std::vector<std::size_t> newest(ranks, kNone);
  const std::size_t rounds = slices + dimensions(ranks) - 1;
  for (std::size_t round = 0; round < rounds; ++round) {
    newest[0] = std::min(round, slices - 1);
    const std::vector<std::size_t> before = newest;
    for (Rank r = 0; r < ranks; ++r) {
      const Rank partner = r ^ std::size_t{1} << round % dimensions(ranks);
      const std::size_t block = before[r];
      if (partner == 0 || block == kNone || has[partner][block]) continue;
      s.sends[r].push_back({partner, block, block});
      has[partner][block] = true;
      if (newest[partner] == kNone || block > newest[partner]) newest[partner] = block;
    }
  }
  return s;
}

Schedule circulant(std::size_t ranks, std::uint64_t bytes, std::size_t blocks) {
  Schedule s = empty(ranks, bytes, blocks);
  const int p = static_cast<int>(ranks), n = static_cast<int>(blocks);
  const circulant_graph graph = circulant_graph_of(p);
  std::vector<circulant_blocks> blocks_of(ranks);
  for (int r = 1; r < p; ++r) blocks_of[static_cast<Rank>(r)] = circulant_blocks_of(&graph, r);
  s.is_in_rounds = true;
  std::vector<std::optional<std::size_t>> newest(ranks);  // of the rounds before; none at the root
  for (int round = 0; round < circulant_total_rounds(&graph, n); ++round) {
    const int skip = graph.skips[circulant_phase_round(&graph, n, round)];
    auto next = newest;
    for (int from = 0; from < p; ++from) {
      const auto to = static_cast<Rank>((from + skip) % p);
      if (to == 0) continue;  // the root has all
      const int block = circulant_block(&graph, &blocks_of[to], n, round);
      if (block < 0) continue;
      const auto slice = static_cast<std::size_t>(block);
      // Not before the round before has ended at both ranks.
      const Rank sender = static_cast<Rank>(from);
      s.sends[sender].push_back({to, slice, newest[sender].value_or(slice), newest[to]});
      next[to] = slice;
    }
    newest = std::move(next);
  }
  return s;
}

// n + d - 1 rounds of whole / n + round_trip are shortest if n^2 * round_trip = (d - 1) * whole.
std::size_t best_blocks(std::size_t ranks, std::uint64_t bytes, wire::BitRate rate,
                        wire::Duration round_trip) {
  assert(ranks >= 2 && round_trip.count() > 0);
  const auto whole = static_cast<double>(rate.time_for(bytes).count());
  const auto more_rounds = static_cast<double>(dimensions(ranks) - 1);
  const double n = std::sqrt(more_rounds * whole / static_cast<double>(round_trip.count()));
  const std::size_t packets = std::max<std::size_t>(bytes / 4096, 1);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(n)), 1, packets);
}

Schedule circulant_in_fat_tree(std::size_t ranks, std::uint64_t bytes, wire::BitRate rate) {
  return circulant(ranks, bytes, best_blocks(ranks, bytes, rate, kFatTreeRoundTrip));
}

std::string setting_of(const Schedule& circulant) {
  return std::to_string(circulant.slices.size()) + " blocks, " + std::to_string(circulant.at_once) +
         " at once";
}

BestSetting best_at_once(Schedule schedule, const TimeOfSchedule& time_of) {
  BestSetting best;
  for (const std::size_t at_once : {1, 2, 4, 8}) {
    schedule.at_once = at_once;
    keep_shorter(best, time_of(schedule), std::to_string(at_once) + " at once");
  }
  return best;
}

BestSetting best_chain(std::size_t ranks, std::uint64_t bytes,
                       const std::vector<std::size_t>& slices, const TimeOfSchedule& time_of) {
  assert(!slices.empty());
  BestSetting best;
  for (const std::size_t n : slices) {
    keep_shorter(best, time_of(chain(ranks, bytes, n)), std::to_string(n) + " slices");
  }
  return best;
}

BestSetting best_circulant(std::size_t ranks, std::uint64_t bytes,
                           const std::vector<std::size_t>& blocks, const TimeOfSchedule& time_of) {
  assert(!blocks.empty());
  BestSetting best;
  for (const std::size_t n : blocks) {
    const BestSetting one = best_at_once(circulant(ranks, bytes, n), time_of);
    keep_shorter(best, one.us, std::to_string(n) + " blocks, " + one.setting);
  }
  return best;
}

}  // namespace cepheus::sim
