// For tests: the leader of a group of four in operation, and the switches' messages about its
// members.
#pragma once

#include <gtest/gtest.h>

#include "controller/test_network.h"

namespace cepheus::mrp::test {

inline constexpr std::uint8_t kOwes = wire::kMemberOwes;
inline constexpr std::uint8_t kDown = wire::kMemberDown;
inline constexpr std::uint8_t kSource = wire::kMemberSource;
inline constexpr std::uint8_t kLate = wire::kMemberLate;

class LeaderTest : public testing::Test {
 protected:
  explicit LeaderTest(const RegistrationConfig& config = leader_config()) : net_(4, config) {
    EXPECT_TRUE(net_.start());
    net_.run_until_idle();
    EXPECT_EQ(leader().state(), Registration::State::kActive);
  }

  Registration& leader() { return net_.leader; }
  void report(std::uint32_t i, std::uint8_t flags, std::uint32_t received = 0) {
    leader().on_message(now_, kSwitch,
                        of_group(wire::MrpType::kReport, {{host(i), wire::Qpn(received), flags}}),
                        out_);
  }
  // Serves every deadline up to then.
  void pass(Duration d) {
    const Instant end = now_ + d;
    while (leader().deadline() <= end) {
      now_ = leader().deadline();
      leader().on_timer(now_, out_);
    }
    now_ = end;
  }
  void complain(std::uint32_t i) {
    Outbox complaint;
    net_.hosts.at(host(i)).complain(complaint);
    leader().on_message(now_, host(i), complaint.messages.at(0), out_);
  }
  std::vector<MrpMessage> reassured() {
    std::vector<MrpMessage> list;
    for (const MrpMessage& m : out_.messages) {
      if (m.header.type == wire::MrpType::kAlive) list.push_back(m);
    }
    out_.clear();
    return list;
  }
  std::vector<MrpMember> evict_sent_for() {
    std::vector<MrpMember> members;
    for (const MrpMessage& m : out_.messages) {
      if (m.header.type == wire::MrpType::kEvict) members.assign(m.list().begin(), m.list().end());
    }
    out_.clear();
    return members;
  }
  int sent(wire::MrpType type) {
    int n = 0;
    for (const MrpMessage& m : out_.messages) n += m.header.type == type ? 1 : 0;
    out_.clear();
    return n;
  }

  Network net_;
  Instant now_ = net_.now;
  Outbox out_;
};

}  // namespace cepheus::mrp::test
