// Three receivers that answer host 0 after a millisecond: feedback is overdue after 2 ms and 4 ms.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "switch-emulator/engine/group/feedback_timer.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {

class OverdueFeedback : public testing::Test {
 protected:
  static constexpr Duration kWait = std::chrono::milliseconds(6);
  static constexpr Duration kPause = std::chrono::microseconds(10'240);     // of RNR timer code 20
  static constexpr Duration kUnknownTrip = FeedbackTimer::kLongestSilence;  // of the source

  void SetUp() override {
    net->data(0, 0);
    net->advance(std::chrono::milliseconds(1));
    for (const std::size_t receiver : {1, 2, 3}) net->ack(receiver, 0);
    net->clear();
  }
  std::unique_ptr<TestNetwork> net = make_star(4);
};

}  // namespace cepheus::fabric
