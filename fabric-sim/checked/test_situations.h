// The seeds of a test program must meet the common situations of some folders, if all its tests run.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>

#include "fabric-sim/checked/situations.h"

namespace cepheus::sim {

class SituationsAreMet : public testing::Environment {
 public:
  explicit SituationsAreMet(std::initializer_list<std::string_view> folders)
      : folders_(folders.begin(), folders.end()) {}

  void TearDown() override {
    const bool are_all = testing::GTEST_FLAG(filter) == "*" && !std::getenv("GTEST_TOTAL_SHARDS");
    if (!are_all) return;
    EXPECT_THAT(unmet_situations(folders_), testing::IsEmpty());
  }

 private:
  const std::vector<std::string_view> folders_;
};

inline void must_meet_situations_of(std::initializer_list<std::string_view> folders) {
  testing::AddGlobalTestEnvironment(new SituationsAreMet(folders));
}

}  // namespace cepheus::sim
