// The tests of every campaign: its seeds hold, and some seed needs each rule.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

#include "fabric-sim/checked/first_seed.h"
#include "fabric-sim/checked/seeds.h"

namespace cepheus::coll::sim {

// Runs run(seed) for that many of today's seeds. CEPHEUS_FIRST_SEED names another day's first.
template <typename Run>
auto expect_seeds_hold(std::uint64_t seeds, Run run) {
  const std::uint64_t first = cepheus::sim::first_seed();
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first));
  return cepheus::sim::run_seeds(first, seeds, 1, 10, run, [](const auto& failure) {
    ADD_FAILURE() << "seed " << failure.seed << ": " << failure.failure;
  });
}

// One of the seeds [first, first + seeds) fails by unsafe(seed), and holds by sound(seed).
template <typename Unsafe, typename Sound>
void expect_a_seed_fails(std::uint64_t first, std::uint64_t seeds, Unsafe unsafe, Sound sound) {
  const auto found = cepheus::sim::first_failure(first, seeds, unsafe, sound);
  ASSERT_TRUE(found) << "no seed needs it";
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(found->seed),
              found->failure.c_str());
}

}  // namespace cepheus::coll::sim
