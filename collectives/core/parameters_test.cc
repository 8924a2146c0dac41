#include "collectives/core/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace cepheus::coll {
namespace {

TEST(Parameters, HaveTheDefaultsOfTheirPage) {
  const Parameters p;
  EXPECT_EQ(p.priority, 95);
  EXPECT_EQ(p.verbose, 0);
  EXPECT_EQ(p.chosen_mode(), Mode::kTry);
  EXPECT_EQ(p.min_members, 2);
  EXPECT_EQ(p.eager_limit, 65536);
  EXPECT_EQ(p.eager_message, 8192);
  EXPECT_EQ(p.attach_timeout_ms, 0);
  EXPECT_EQ(p.register_timeout_ms, 0);
  EXPECT_EQ(p.watchdog_ms, 0);
  EXPECT_EQ(p.safeguard_threshold, 50);
  EXPECT_EQ(p.safeguard_samples, 10);
  EXPECT_EQ(p.ranks_per_host, 0);
  EXPECT_EQ(p.chosen_carrier(), Carrier::kAuto);
  EXPECT_EQ(p.set_up_after, 32);
  EXPECT_EQ(p.set_up_bytes, 1u << 20);
  EXPECT_EQ(p.ordered_starts, 0);
  EXPECT_EQ(p.mrp_port, 0);
  EXPECT_EQ(p.max_eager_memory, 0u);
}

TEST(Parameters, OfTransfersAreThese) {
  const Parameters p;
  EXPECT_EQ(p.bulk_unit, std::size_t{64} << 20);
  EXPECT_EQ(p.bulk_piece, std::size_t{4} << 20);
  EXPECT_EQ(p.tree_segment, std::size_t{1} << 20);
  EXPECT_EQ(p.copied_bytes, 4096u);
  EXPECT_EQ(p.safeguard_run, 16u);
}

TEST(Parameters, OfTheEagerLaneMayBeSmallAndAreNeverNegative) {
  Parameters p;
  for (const int limit : {-1, 0, 1, 2}) {
    p.eager_limit = limit;
    EXPECT_EQ(p.eager_bytes(), static_cast<std::size_t>(std::max(limit, 0)));
    p.eager_message = limit;
    EXPECT_EQ(p.eager_unit(), static_cast<std::size_t>(std::max(limit, 1)));
  }
}

TEST(Parameters, OfOneSampleAndMoreAreASafeguardInModeTry) {
  Parameters p;
  p.safeguard_samples = 0;
  EXPECT_FALSE(p.is_safeguarded());
  p.safeguard_samples = 1;
  EXPECT_TRUE(p.is_safeguarded());
  p.mode = static_cast<int>(Mode::kRequire);
  EXPECT_FALSE(p.is_safeguarded());
}

TEST(ComponentDirectory, IsThatOfTheProgramOrLibrary) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(component_directory(), program.parent_path().string());
}

}  // namespace
}  // namespace cepheus::coll
