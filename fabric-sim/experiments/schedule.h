// A collective as unicasts: the slice, sender, receiver, order and condition of each send.
// Algorithms (rivals.h) make schedules; UnicastRun carries them out over RC connections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cepheus::sim {

using Rank = std::size_t;

struct Send {
  Rank to = 0;
  std::size_t slice = 0;
  std::size_t after = 0;  // begins when the sender has this slice and `slice`: usually the same
  // ... and the receiver has this one, which it tells in no time: so that two ranks don't share its
  // link.
  std::optional<std::size_t> receiver_has = {};
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

  bool is_in_rounds = false;  // some sends wait for their receiver

  std::size_t ranks() const { return sends.size(); }
  std::uint64_t bytes() const;
};

}  // namespace cepheus::sim
