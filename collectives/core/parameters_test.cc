#include "collectives/core/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

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
  EXPECT_EQ(p.register_timeout_ms, 0);
  EXPECT_EQ(p.watchdog_ms, 0);
  EXPECT_EQ(p.safeguard_threshold, 50);
  EXPECT_EQ(p.safeguard_samples, 10);
  EXPECT_EQ(p.ranks_per_host, 0);
  EXPECT_EQ(p.chosen_carrier(), Carrier::kDirect);
  EXPECT_EQ(p.set_up_after, 32);
  EXPECT_EQ(p.set_up_bytes, 1u << 20);
  EXPECT_STREQ(p.collectives, "bcast,barrier,allreduce,allgather");
  EXPECT_FALSE(p.serves(Collective::kReduce));
  EXPECT_EQ(names_of(p.served), p.collectives);
  EXPECT_EQ(p.reduction_limit, 8192u);
  EXPECT_EQ(p.chosen_reproducible(), Reproducible::kRank);
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

// The answer if the user gives `value`.
std::string given(const std::string& name, long long value) {
  const std::vector<Setting> all = settings();
  const Setting& setting = *std::ranges::find(all, name, &Setting::name);
  return take(setting, [&] {
    std::visit(
        [&](auto* storage) {
          if constexpr (!std::is_same_v<decltype(storage), const char**>)
            *storage = static_cast<std::remove_reference_t<decltype(*storage)>>(value);
        },
        setting.storage);
  });
}

struct Bounds {
  const char* name;
  std::vector<long long> good, bad;
};
class ParameterBounds : public testing::TestWithParam<Bounds> {
 protected:
  void TearDown() override { parameters() = {}; }
};

TEST_P(ParameterBounds, AreInForce) {
  for (const long long value : GetParam().good) EXPECT_EQ(given(GetParam().name, value), "");
  for (const long long value : GetParam().bad)
    EXPECT_NE(given(GetParam().name, value), "") << value;
}

constexpr long long kMostInt = std::numeric_limits<int>::max();
constexpr long long kMost = std::numeric_limits<long long>::max();

INSTANTIATE_TEST_SUITE_P(Each, ParameterBounds,
                         testing::Values(Bounds{"min_members", {0, kMostInt}, {-1}},
                                         Bounds{"eager_limit", {0, kMostInt}, {-1}},
                                         Bounds{"eager_message", {1, kMostInt}, {0, -1}},
                                         Bounds{"register_timeout_ms", {0, kMostInt}, {-1}},
                                         Bounds{"watchdog_ms", {0, kMostInt}, {-1}},
                                         Bounds{"safeguard_threshold", {0, kMostInt}, {-1}},
                                         Bounds{"safeguard_samples", {0, 1000}, {-1, 1001}},
                                         Bounds{"ranks_per_host", {-1, kMostInt}, {-2}},
                                         Bounds{"set_up_after", {-1, kMostInt}, {-2}},
                                         Bounds{"set_up_bytes", {0, kMost}, {-1}},
                                         Bounds{"reduction_limit", {0, kMost}, {-1}},
                                         Bounds{"ordered_starts", {0, 1}, {-1, 2}},
                                         Bounds{"mrp_port", {0, 65535}, {-1, 65536}},
                                         Bounds{"max_eager_memory", {0, kMost}, {-1}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Parameters, BeyondTheirRangeLeaveTheDefault) {
  EXPECT_EQ(given("register_timeout_ms", -1), "-1 is not 0 or more; the default, 0, holds");
  EXPECT_EQ(given("mrp_port", 70000), "70000 is not from 0 to 65535; the default, 0, holds");
  EXPECT_EQ(given("eager_message", 0), "0 is not 1 or more; the default, 8192, holds");
  EXPECT_EQ(given("max_eager_memory", -1),
            "18446744073709551615 is not from 0 to 9223372036854775807; the default, 0, holds");
  EXPECT_EQ(parameters().register_timeout_ms, 0);
  EXPECT_EQ(parameters().mrp_port, 0);
  EXPECT_EQ(parameters().eager_message, 8192);
}

TEST(Parameters, NameTheCollectives) {
  const std::vector<Setting> all = settings();
  const Setting& setting = *std::ranges::find(all, std::string("collectives"), &Setting::name);
  const auto give = [&](const char* list) {
    return take(setting, [&] { parameters().collectives = list; });
  };
  EXPECT_EQ(give(kAllCollectives), "");
  EXPECT_EQ(parameters().served, kAllServed);
  EXPECT_EQ(give("bcast"), "");
  EXPECT_TRUE(parameters().serves(Collective::kBcast));
  EXPECT_FALSE(parameters().serves_reductions());
  EXPECT_EQ(give("barrier,reduce"), "");
  EXPECT_FALSE(parameters().serves(Collective::kBcast));
  EXPECT_TRUE(parameters().serves(Collective::kReduce));
  EXPECT_EQ(give(""), "");
  EXPECT_FALSE(parameters().serves(Collective::kBarrier));
  parameters() = {};
  EXPECT_EQ(give("bcast,scan"),
            "\"scan\" is none of bcast,barrier,allreduce,reduce,allgather; the default, "
            "bcast,barrier,allreduce,allgather, holds");
  EXPECT_EQ(parameters().served, kUsuallyServed);
  parameters() = {};
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
