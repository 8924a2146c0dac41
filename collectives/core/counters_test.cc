#include "collectives/core/counters.h"

#include <gtest/gtest.h>

namespace cepheus::coll {
namespace {

using Which = Counters::Which;

TEST(Counters, CountABroadcastByItsRouteAndByWhetherItsCallWaits) {
  const std::pair<Route, std::pair<Which, Which>> kinds[] = {
      {Route::kEager, {Which::kEager, Which::kIbcastEager}},
      {Route::kBulk, {Which::kBulk, Which::kIbcastBulk}},
      {Route::kHosts, {Which::kHosts, Which::kIbcastHosts}},
      {Route::kTree, {Which::kSaved, Which::kIbcastTree}},
      {Route::kSaved, {Which::kSaved, Which::kIbcastSaved}}};
  for (const auto& [route, which] : kinds) {
    for (const bool blocking : {true, false}) {
      Counters counters;
      counters.add_broadcast(route, blocking);
      std::array<unsigned long long, Counters::kKinds> expected{};
      expected[static_cast<std::size_t>(blocking ? which.first : which.second)] = 1;
      EXPECT_EQ(counters.values(), expected);
    }
  }
}

}  // namespace
}  // namespace cepheus::coll
