// A collective as unicasts: who sends which slice of the data to whom, in what order, after having what. Algorithms
// (rivals.h) make schedules, UnicastRun carries them out over RC connections.
#pragma once

#include <cstdint>
#include <vector>

namespace cepheus::sim {

using Rank = std::size_t;

struct Send {
  Rank to = 0;
  std::size_t slice = 0;
  std::size_t after = 0;  // begins when the sender has this slice: mostly the same one
};

struct Schedule {
  std::vector<std::uint64_t> slices;     // bytes of each
  std::vector<std::vector<Send>> sends;  // of each rank, in order: none overtakes the one before it
  // Rank 0 has all slices at the beginning, the others none.
  //
  // Sends of a rank that may be under way at once, if they go to different ranks: a program that
  // waits for a large message to be acknowledged before it begins the next one has 1. Sends to the
  // same rank follow each other at once, and so do small ones.
  std::size_t at_once = 1;

  std::size_t ranks() const { return sends.size(); }
  std::uint64_t bytes() const;
};

}  // namespace cepheus::sim
