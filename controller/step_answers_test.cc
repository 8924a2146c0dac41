#include "controller/step_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/test_network.h"

namespace cepheus::mrp {
namespace {

using test::member;
constexpr std::uint64_t kWhole = wire::SenderGroupMessage::kWholeShare;
constexpr std::size_t kReceivers = 2;

TEST(StepAnswers, AreCompleteOnceTheSharesOfOneAttemptAddUpAndAllHaveAnsweredIt) {
  StepAnswers answers;
  answers.add_attempt(1);
  EXPECT_TRUE(answers.take(0, 1, kWhole / 2));
  EXPECT_FALSE(answers.is_complete(1, kReceivers));
  EXPECT_TRUE(answers.take(0, 1, kWhole / 4));
  EXPECT_TRUE(answers.take(1, 1, kWhole / 8));
  EXPECT_FALSE(answers.is_complete(1, kReceivers)) << "receiver 1 has another path";
  EXPECT_TRUE(answers.take(1, 1, kWhole / 8));
  EXPECT_TRUE(answers.is_complete(1, kReceivers));
}

TEST(StepAnswers, AreIncompleteWhileAReceiverIsSilentWhateverTheShares) {
  StepAnswers answers;
  answers.add_attempt(1);
  for (int doubled = 0; doubled < 3; ++doubled) EXPECT_TRUE(answers.take(0, 1, kWhole / 2));
  EXPECT_FALSE(answers.is_complete(1, kReceivers));
  EXPECT_THAT(answers.missing(std::vector{member(1), member(2)}),
              ::testing::ElementsAre(member(2)));
}

TEST(StepAnswers, OfFourAttemptsTogetherSuffice) {
  StepAnswers answers;
  for (std::uint16_t seq = 1; seq <= 4; ++seq) {
    answers.add_attempt(seq);
    EXPECT_TRUE(answers.take(seq % 2, seq, 1));
    EXPECT_EQ(answers.is_complete(seq, kReceivers), seq == 4) << seq;
  }
  EXPECT_TRUE(answers.missing(std::vector{member(1), member(2)}).empty());
}

TEST(StepAnswers, ToUnknownAttemptsAndWithImpossibleSharesAreRefused) {
  StepAnswers answers;
  for (std::uint16_t seq = 1; seq <= StepAnswers::kAttemptsKept + 1; ++seq) {
    answers.add_attempt(seq);
  }
  EXPECT_EQ(answers.attempts(), StepAnswers::kAttemptsKept);
  EXPECT_FALSE(answers.take(0, 1, 1)) << "the oldest is forgotten";
  EXPECT_FALSE(answers.take(0, 100, 1));
  EXPECT_FALSE(answers.take(0, 2, kWhole + 1));
  EXPECT_TRUE(answers.take(0, 2, kWhole));
}

}  // namespace
}  // namespace cepheus::mrp
