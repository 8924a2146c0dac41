// Limits of a host that sends too much in a reduction group, for the benefit of others.
#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <vector>

#include "switch-emulator/live/datapath/test_datapath.h"
#include "switch-emulator/live/test_fabric.h"
#include "switch-emulator/live/test_group.h"
#include "wire/reduction.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::PortCounter;
using wire::Aeth;
using wire::Frame;
using wire::Opcode;

// Host 0 is a member of a reduction group, perhaps with host 1. Host 2 sends to host 3 meanwhile.
class ReductionBudget : public DatapathTest {
 protected:
  static constexpr wire::Duration kRound = std::chrono::microseconds(5);
  static constexpr std::uint32_t kRounds = 2000, kWindow = 64;
  // Unanswered frames: the first of a stream, the burst, 10 ms of the rate, and the last turn.
  static constexpr std::uint64_t kAllowed = AnsweredFrames::kPerAnswer + UnansweredBudget::kBurst +
                                            UnansweredBudget::kPerSecond / 100 + 256;

  ReductionBudget() { start(net::Topology::star(4)); }
  void start(const net::Topology& topology) {
    clients.clear();
    build(topology);
    for (std::size_t host = 0; host < 4; ++host) clients.push_back(attach(host));
  }
  void set_up(std::size_t members, std::uint16_t unit = 256, std::uint16_t window = kWindow) {
    wire::MrpMessage message = message_of(MrpType::kRegister);
    message.header.flags = wire::MrpHeader::kLossEnds;
    message.reduction = wire::MrpReduction{wire::MrpReduction::kValues, unit, window};
    for (std::size_t host = 0; host < members; ++host) message.add({address(host), qpn_of(host)});
    send_mrp(clients[0], 0, message);
    message = message_of(MrpType::kActivate);
    message.header.flags = static_cast<std::uint16_t>(members - 1);
    send_mrp(clients[0], 0, message);
  }
  bool put(std::size_t host, Opcode opcode, std::uint32_t unit, Aeth aeth = {},
           std::size_t bytes = 0) {
    if (clients[host].tx.free_entries() == 0) return false;
    wire::RoceHeaders headers;
    headers.ip.source = address(host);
    headers.ip.destination = kGroup;
    headers.bth.opcode = opcode;
    headers.bth.destination_qp = wire::kVirtualQpn;
    headers.bth.psn = wire::group_start_psn(kGroup, kEpoch) + static_cast<std::int32_t>(unit);
    const std::uint8_t operation = bytes > 0 ? 1 : 0;  // bitwise OR, or a barrier
    headers.imm.value =
        wire::ReductionImm{operation, 0, kEpoch, static_cast<std::uint16_t>(unit)}.value();
    headers.aeth = aeth;
    Frame frame;
    headers.emit(frame, bytes);
    if (bytes > 0) frame.set_external_payload(std::span(payload_).first(bytes), 0);
    clients[host].put(frame, bytes > 0 ? clients[host].take_slot().value() : 0);
    return true;
  }
  bool contribute(std::size_t host, std::uint32_t unit, std::size_t bytes = 0) {
    return put(host, Opcode::kRcSendOnlyImm, unit, {}, bytes);
  }
  // Hosts 0 to 2 have their turns, and 5 us pass.
  void pass_round() {
    if (++rounds_ % 10 == 0) {
      const std::vector<std::uint8_t> payload(8);
      clients[2].put(plain_datagram(2, 3, payload), 0);
    }
    datapath->poll(now);
    for (BareClient& client : clients) take_all(client);
    now += kRound;
  }
  // Of host 0.
  std::uint64_t sum(std::initializer_list<const char*> names) {
    const auto status = datapath->reporting().status([](const auto& slice) { slice(); });
    std::uint64_t all = 0;
    for (const char* const name : names) all += counter(status[0].ports[0], name);
    return all;
  }

  std::vector<BareClient> clients;

 private:
  std::uint32_t rounds_ = 0;
  std::vector<std::uint8_t> payload_ = std::vector<std::uint8_t>(wire::MrpReduction::kMostUnit);
};

// Host 0 is always the last to contribute, and causes all results.
TEST_F(ReductionBudget, ResultsOfSeveralMembersPayForContributions) {
  set_up(2);
  for (std::uint32_t unit = 0; unit < 3 * kAllowed; ++unit) {
    for (const std::size_t host : {1, 0}) {
      contribute(host, unit);
      datapath->poll(now);
    }
    pass_round();
    for (const std::size_t host : {1, 0}) put(host, Opcode::kRcAcknowledge, unit);
  }
  EXPECT_EQ(sum({"reduction_units"}), 3 * kAllowed);
  EXPECT_EQ(counted(0, PortCounter::kHeldBack), 0u);
}

TEST_F(ReductionBudget, ResultsOfAMemberAlonePayForNothing) {
  set_up(1);
  std::uint32_t unit = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    while (contribute(0, unit)) ++unit;
    pass_round();
  }
  // Frames that are free have free answers.
  EXPECT_LE(sum({"reduction_taken", "reduction_sent"}), kAllowed + AnsweredFrames::kPerAnswer);
  EXPECT_GT(sum({"reduction_units"}), UnansweredBudget::kBurst / 2);
  EXPECT_GT(counted(0, PortCounter::kHeldBack), 0u);
}

TEST_F(ReductionBudget, RepeatsThatAHostRequestsCost) {
  set_up(1);
  std::uint32_t packet = 0;
  const auto next = [&] {
    const std::uint32_t window = packet / (2 * kWindow) * kWindow, at = packet % (2 * kWindow);
    const Aeth nak = Aeth::nak(wire::NakCode::kSequenceError);
    return at < kWindow ? contribute(0, window + at)
                        : put(0, Opcode::kRcAcknowledge, window + at - kWindow, nak);
  };
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    while (next()) ++packet;
    pass_round();
  }
  EXPECT_GT(sum({"reduction_repeated"}), kWindow);
  EXPECT_LE(sum({"reduction_taken", "reduction_sent", "feedback_taken"}), kAllowed);
}

// The link to the host takes one frame in 33 ms. All that the host sends is paid.
TEST_F(ReductionBudget, RepeatsThatAFullQueueRefusesCostNothing) {
  net::Topology topology = net::Topology::star(4);
  topology.hosts[0].down.rate = wire::BitRate{1'000'000};
  topology.hosts[0].down.queue_bytes = 5000;
  start(topology);
  constexpr std::uint16_t kLarge = wire::MrpReduction::kMostUnit, kUnits = 200;
  set_up(1, kLarge, wire::MrpReduction::kMostWindow);
  for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
    contribute(0, unit, kLarge);
    pass_round();
  }
  for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
    put(0, Opcode::kRcAcknowledge, unit, Aeth::nak(wire::NakCode::kSequenceError));
    pass_round();
  }
  EXPECT_GT(2 * kUnits + sum({"reduction_repeated"}), AnsweredFrames::kPerAnswer + 100);
  EXPECT_EQ(counted(0, PortCounter::kHeldBack), 0u);
}

// An honest partner's contributions do not pay for a flood.
TEST_F(ReductionBudget, AResultPaysForAFewFramesOnly) {
  set_up(2);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    contribute(0, round);
    contribute(1, round);
    for (int n = 0; n < 64 && contribute(0, round); ++n) {
    }
    pass_round();
  }
  EXPECT_GT(sum({"reduction_duplicate"}), 0u);
  EXPECT_LE(sum({"reduction_duplicate", "drop_reduction_gap"}),
            kAllowed + sum({"reduction_units"}) * AnsweredFrames::kPerResult);
}

}  // namespace
}  // namespace cepheus::live
