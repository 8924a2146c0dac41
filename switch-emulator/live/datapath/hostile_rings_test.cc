// A client writes random values into the words that it shares with the switch, and does something
// legal in the same round.
#include <gmock/gmock.h>

#include <random>

#include "switch-emulator/live/datapath/test_datapath.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::PortCounter;

constexpr std::size_t kVictim = 0, kHostile = 1, kBystander = 2;

// Legal actions in the same round as the random values.
enum Action : unsigned {
  kReadsAFrame = 1,
  kLeavesAFrameUnread = 2,
  kQueuesAFrame = 4,
  kRings = 8,
  kEnds = 16,  // its process ends: the control thread detaches it as well
  kAllActions = 31,
};

class HostileRings : public DatapathTest {
 protected:
  static constexpr std::size_t kWords = fabric::kSharedWords;

  static void queue(BareClient& from, std::size_t sender, std::size_t to) {
    from.put(plain_datagram(sender, to, std::vector<std::uint8_t>(16, 1)), 0);
  }
  void send(BareClient& from, std::size_t sender, std::size_t to) {
    queue(from, sender, to);
    datapath->wake(sender);
  }
  // As LiveFabric does; returns the number of offenders.
  std::size_t close_offenders() {
    const auto offenders = datapath->take_offenders();
    for (const std::size_t host : offenders) datapath->detach(now, host);
    return offenders.size();
  }
  std::uint64_t corrupt_rings() { return counted(kHostile, PortCounter::kDropRingCorrupt); }

  void strike(BareClient& victim, unsigned corrupted, unsigned actions, std::mt19937& random) {
    BareClient hostile = attach(kHostile, 1001);
    for (int n = 0; n < 2; ++n) send(victim, kVictim, kHostile);
    datapath->poll(now);
    if ((actions & kReadsAFrame) != 0) hostile.take();
    if ((actions & kLeavesAFrameUnread) == 0) take_all(hostile);
    if ((actions & kQueuesAFrame) != 0) queue(hostile, kHostile, kVictim);
    const auto word = shared_words(hostile.segment);
    for (std::size_t n = 0; n < kWords; ++n) {
      if ((corrupted >> n & 1) != 0) word[n](random() >> random() % 32);
    }
    if ((actions & kRings) != 0) datapath->wake(kHostile);
    const std::uint64_t before = corrupt_rings();
    std::size_t offenders = 0;
    for (int round = 0; round < 3; ++round) {
      datapath->poll(now);
      datapath->arm();
      if (round == 0 && (actions & kEnds) != 0) datapath->detach(now, kHostile);
      offenders += close_offenders();
    }
    EXPECT_LE(offenders, 1u);
    EXPECT_LE(corrupt_rings(), before + 1);
    if (datapath->shared_port(kHostile)->is_open()) datapath->detach(now, kHostile);
  }
};

TEST_F(HostileRings, EveryWordBesideEveryLegalActionHarmsNoOtherHost) {
  build(net::Topology::star(3));
  BareClient victim = attach(kVictim), bystander = attach(kBystander);
  std::mt19937 random(7);
  for (unsigned corrupted = 0; corrupted < 1u << kWords; ++corrupted) {
    for (unsigned actions = 0; actions <= kAllActions; ++actions) {
      SCOPED_TRACE(testing::Message() << "words " << corrupted << ", actions " << actions);
      strike(victim, corrupted, actions, random);
      take_all(victim);
      send(victim, kVictim, kBystander);
      datapath->poll(now);
      EXPECT_EQ(take_all(bystander), 1u);
      ASSERT_FALSE(HasFailure());
      now += std::chrono::milliseconds(1);
    }
  }
}

TEST_F(HostileRings, AnOffenderIsCountedAndClosedOnce) {
  build(net::Topology::star(2));
  BareClient victim = attach(kVictim), hostile = attach(kHostile, 1001);
  send(victim, kVictim, kHostile);
  datapath->poll(now);  // a frame stays unread
  queue(hostile, kHostile, kVictim);
  hostile.segment.rx().consumed->store(0xDEADBEEF);
  datapath->wake(kHostile);
  datapath->poll(now);
  EXPECT_THAT(datapath->take_offenders(), testing::ElementsAre(kHostile));
  EXPECT_EQ(corrupt_rings(), 1u);
}

}  // namespace
}  // namespace cepheus::live
