// A reduction lane over the fake device. The test delivers its results.
#pragma once

#include <gtest/gtest.h>
#include <mcast/reduce.h>

#include <string>

#include "libmcast/fake_group.h"
#include "wire/reduction.h"

namespace cepheus::mcast {

inline constexpr unsigned kWindow = 8;
inline constexpr std::size_t kMtu = 1024;  // the fake device's

class ReductionLaneOverFake : public FakeGroup {
 protected:
  ReductionLaneOverFake() {
    reduction_ = {wire::MrpReduction::kValues, kMtu, kWindow};
    make(params());
  }
  ~ReductionLaneOverFake() override { drop(); }
  static mcast_group_params_t params() {
    mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
    params.lane = MCAST_LANE_REDUCTION;
    params.reduction_window = kWindow;
    return params;
  }
  static std::uint32_t imm(std::uint16_t unit, ReductionUnits::Kind kind = ReductionUnits::kOr) {
    return wire::ReductionImm{static_cast<std::uint8_t>(kind.operation),
                              static_cast<std::uint8_t>(kind.type), kEpoch, unit}
        .value();
  }
  std::string sent(std::size_t index) {
    const fake::Posted& posted = pair().sends.at(index);
    return {static_cast<const char*>(posted.address), posted.length};
  }
  void deliver(std::uint16_t unit, const std::string& data) { FakeGroup::deliver(data, imm(unit)); }

  // As long as the group.
  Op op_, ops_[kWindow + 1];
  char results_[kWindow + 1] = {};
  std::string data_;
};

}  // namespace cepheus::mcast
