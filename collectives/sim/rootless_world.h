// What the ranks of a simulated job of reductions share: messages, groups, set-ups, and the host's
// own collective. The job decides when anything moves in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "collectives/fakes/fake_mpi.h"
#include "collectives/fakes/reducing_group.h"
#include "collectives/sim/rootless_plan.h"

namespace cepheus::coll::sim {

using Bytes = std::vector<std::byte>;

// An input, as the program fills it.
inline std::byte input_byte(std::size_t call, int rank, std::size_t at) {
  return static_cast<std::byte>(call * 131 + static_cast<std::size_t>(rank) * 37 + at * 7 + 1);
}

// The program's operation: neither associative nor commutative.
inline std::byte reduce(std::byte left, std::byte right) {
  return static_cast<std::byte>(31 * std::to_integer<unsigned>(left) +
                                17 * std::to_integer<unsigned>(right) + 7);
}

// The host's own MPI_Allgather, to which a call falls back. It ends once all ranks are in it.
class HostAllgather {
 public:
  explicit HostAllgather(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  void enter(std::uint64_t call, int rank, const Bytes& input) { calls_[call][rank] = input; }
  // The inputs by rank. Null: some rank is missing.
  const std::map<int, Bytes>* outcome(std::uint64_t call) const {
    const auto found = calls_.find(call);
    return found != calls_.end() && found->second.size() == ranks_ ? &found->second : nullptr;
  }

 private:
  const std::size_t ranks_;
  std::map<std::uint64_t, std::map<int, Bytes>> calls_;
};

// A set-up of a group, to which all ranks come at the same call.
struct SetUp {
  struct Outcome {
    bool is_ready;
    std::uint64_t retry_at;  // call, if it is not
  };
  std::set<int> here, informed;
  std::optional<Outcome> outcome;
};

struct RootlessWorld {
  explicit RootlessWorld(const RootlessPlan& its_plan)
      : plan(its_plan), random(~its_plan.seed), mpi(its_plan.ranks), host(its_plan.ranks) {}

  int pick(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }

  template <typename... Text>
  void trace(const Text&... text) const {
    if (traces) ((std::cout << event << ": ") << ... << text) << '\n';
  }

  const RootlessPlan plan;
  bool traces = false;
  std::uint64_t event = 0;
  std::mt19937_64 random;
  fake::Mpi mpi;
  std::deque<fake::ReducingGroup> groups;  // by generation, from 1 on
  std::map<std::uint64_t, SetUp> set_ups;  // by call
  HostAllgather host;
  std::optional<int> dead;
  bool is_death_reported = false;  // operations with it fail
};

}  // namespace cepheus::coll::sim
