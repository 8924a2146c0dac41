// A test program of seeds must meet the common situations of some folders, if all its tests run.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <initializer_list>
#include <iostream>

#include "fabric-sim/checked/situations.h"
#include "wire/situation.h"

namespace cepheus::sim {

class SituationsAreMet : public testing::Environment {
 public:
  explicit SituationsAreMet(std::initializer_list<std::string_view> folders)
      : folders_(folders.begin(), folders.end()) {}

  void TearDown() override {
    const bool are_all = testing::GTEST_FLAG(filter) == "*" && !std::getenv("GTEST_TOTAL_SHARDS");
    if (!are_all || wire::situations().empty()) {
      std::cout << "situations are checked only if all tests run, built with assertions\n";
      return;
    }
    print_seldom_situations(folders_);
    EXPECT_THAT(unmet_situations(folders_), testing::IsEmpty());
  }

 private:
  const std::vector<std::string_view> folders_;
};

}  // namespace cepheus::sim
