// A collective as unicasts: the slice, sender, receiver, order and condition of each send.
// Algorithms (rivals.h) make schedules; UnicastRun carries them out over RC connections.
#pragma once

#include <cstdint>
#include <vector>

namespace cepheus::sim {

using Rank = std::size_t;

struct Send {
  Rank to = 0;
  std::size_t slice = 0;
  std::size_t after = 0;  // begins when the sender has this slice: usually the same one
};

struct Schedule {
  std::vector<std::uint64_t> slices;     // bytes of each
  std::vector<std::vector<Send>> sends;  // of each rank, in order: none overtakes the one before it
  // Rank 0 has all slices at the beginning, the others none.
  //
  // Sends of a rank that may be under way at once, if they go to different ranks. 1: the program
  // waits for a large message's acknowledgement before it begins the next one. Sends to the same
  // rank, and small ones, follow each other at once.
  std::size_t at_once = 1;

  std::size_t ranks() const { return sends.size(); }
  std::uint64_t bytes() const;
};

}  // namespace cepheus::sim
