// Each element's operands, as texts, through all rounds of all members.
#include "collectives/units/pair_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "arithmetic/pairs.h"

namespace cepheus::coll {
namespace {

using Texts = std::vector<std::string>;  // by element

constexpr int kMostMembers = 33;
constexpr std::size_t kMostElements = 40;

std::string pairs_of(std::size_t count) {
  Texts operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(std::to_string(i));
  arithmetic::combine_in_pairs(count, [&](std::size_t left, std::size_t right) {
    operands[left] = '(' + operands[left] + ' ' + operands[right] + ')';
  });
  return operands[0];
}

// All members of one reduction, a round at a time.
class Members {
 public:
  Members(int members, std::size_t elements) : members_(members) {
    for (int i = 0; i < members; ++i) {
      rounds_.emplace_back(i, members, elements);
      vectors_.emplace_back(elements, std::to_string(i));
    }
  }

  void run() {
    for (int round = 0; round < rounds_[0].count(); ++round) run(round);
  }
  const Texts& vector(int member) const { return vectors_[static_cast<std::size_t>(member)]; }

 private:
  void run(int round) {
    const std::vector<Texts> before = vectors_;
    std::vector<PairTransfer> sends, receives;
    std::size_t sent = 0, received = 0;  // transfers
    for (int i = 0; i < members_; ++i) {
      const auto member = static_cast<std::size_t>(i);
      rounds_[member].plan(round, sends, receives);
      sent += sends.size();
      received += receives.size();
      for (const PairTransfer& each : receives) {
        expect_sent(each.peer, round, i, each.slice);
        take(member, round, before[static_cast<std::size_t>(each.peer)], each.slice);
      }
    }
    EXPECT_EQ(sent, received) << "each is received";
  }
  void expect_sent(int from, int round, int to, const Slice& slice) {
    std::vector<PairTransfer> sends, receives;
    rounds_[static_cast<std::size_t>(from)].plan(round, sends, receives);
    const auto found = std::ranges::count_if(sends, [&](const PairTransfer& each) {
      return each.peer == to && each.slice.first == slice.first && each.slice.end == slice.end;
    });
    EXPECT_EQ(found, 1) << from << " to " << to << " in round " << round;
  }
  void take(std::size_t member, int round, const Texts& from, const Slice& slice) {
    for (std::size_t i = slice.first; i < slice.end; ++i) {
      std::string& own = vectors_[member][i];
      if (!rounds_[member].combines(round))
        own = from[i];
      else if (rounds_[member].is_left(round))
        own = '(' + own + ' ' + from[i] + ')';
      else
        own = '(' + from[i] + ' ' + own + ')';
    }
  }

  const int members_;
  std::vector<PairRounds> rounds_;
  std::vector<Texts> vectors_;
};

TEST(PairRounds, GiveEachElementThePairsByMemberAtAllMembers) {
  for (int members = 1; members <= kMostMembers; ++members) {
    const std::string right = pairs_of(static_cast<std::size_t>(members));
    for (std::size_t elements = 0; elements <= kMostElements; elements += 1 + elements / 8) {
      Members all(members, elements);
      all.run();
      for (int member = 0; member < members; ++member)
        ASSERT_THAT(all.vector(member), testing::Each(right)) << members << ", " << elements;
    }
  }
}

// Rabenseifner's number if it is a power of two, else up to twice 2 (N - 1) / N.
TEST(PairRounds, SendAndReceiveFewVectorsAMember) {
  constexpr std::size_t kElements = 1 << 16;
  for (std::size_t members = 2; members <= 200; ++members) {
    const std::size_t least = 2 * kElements * (members - 1) / members;
    const std::size_t most = std::has_single_bit(members) ? least + members : 2 * least;
    for (std::size_t member = 0; member < members; ++member) {
      const PairRounds rounds(static_cast<int>(member), static_cast<int>(members), kElements);
      std::vector<PairTransfer> sends, receives;
      std::size_t sent = 0, received = 0;
      for (int round = 0; round < rounds.count(); ++round) {
        rounds.plan(round, sends, receives);
        for (const PairTransfer& each : sends) sent += each.slice.size();
        for (const PairTransfer& each : receives) received += each.slice.size();
      }
      EXPECT_LE(std::max(sent, received), std::min(most, 2 * kElements + members)) << members;
    }
  }
}

}  // namespace
}  // namespace cepheus::coll
