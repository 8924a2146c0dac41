// Members of a reduction group over a TestNetwork: NICs that go back N, and programs that keep their
// credit. The test decides which frames arrive.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "switch-emulator/engine/reduction/unit.h"
#include "switch-emulator/engine/test_network.h"

namespace cepheus::fabric {

using Bytes = std::vector<std::uint8_t>;

class TestMembers {
 public:
  // Registers a group of all hosts, led by host 0. `bytes`: of each contribution.
  TestMembers(TestNetwork& net, std::size_t members, std::uint16_t window, std::size_t bytes);

  // The member contributes to its next unit, if it has credit.
  bool contribute(std::size_t member);
  // Takes the frames that the member's NIC has received so far, in order.
  void receive(std::size_t member);
  void receive_all();
  // Its NIC's time-out: sends all again that is not acknowledged.
  void time_out(std::size_t member);
  // Frames of and to members for which this returns true are lost.
  std::function<bool()> lose = [] { return false; };
  // Frames of members for which this returns true arrive twice.
  std::function<bool()> repeat = [] { return false; };
  // A member for which this returns true is not ready for its next result: its NIC sends RNR NAK.
  std::function<bool()> is_busy = [] { return false; };
  // The order in which receive() takes frames.
  std::function<void(std::vector<std::vector<std::uint8_t>>&)> shuffle = [](auto&) {};

  Unit contributed(std::size_t member) const { return members_[member].contributed; }
  Unit results(std::size_t member) const { return members_[member].results; }
  bool is_done(std::size_t member, Unit units) const {
    const Member& m = members_[member];
    return m.results == units && m.acked == units;
  }
  // As if all members and switches had done this many units.
  void jump(Unit units);
  // One packet, without any rules. `unit` may be any.
  void send(std::size_t member, Unit unit, std::uint8_t what, const Bytes& data);
  Bytes contribution(std::size_t member, Unit unit) const;

 private:
  struct Member {
    Unit contributed = 0, acked = 0, results = 0;
    bool has_requested = false;  // by NAK, since the last result
  };
  void send_again(std::size_t member);
  void answer(std::size_t member, wire::AckKind kind, std::uint8_t value);
  void take(std::size_t member, const Frame& frame);
  void take_result(std::size_t member, const wire::RoceHeaders& headers, const Bytes& data);
  Bytes expected(Unit unit) const;

  TestNetwork& net_;
  const std::size_t bytes_;
  const std::uint16_t window_;
  std::vector<Member> members_;
};

inline constexpr std::uint8_t kBarrier = 0, kOr = 0x10;  // as wire::ReductionImm::what

// One switch with three members and windows of 8 units.
class Reduction : public testing::Test {
 protected:
  void all_contribute() {
    for (const std::size_t member : {0, 1, 2}) EXPECT_TRUE(members_.contribute(member));
  }

  std::unique_ptr<TestNetwork> net_ = make_star(3, false);
  TestMembers members_{*net_, 3, 8, 0};
  Unit unit_ = 0;  // of a test that sends them itself
};

}  // namespace cepheus::fabric
