#include "collectives/units/pairwise_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "arithmetic/pairs.h"
#include "arithmetic/reference.h"
#include "collectives/core/parameters.h"
#include "collectives/fakes/pairwise_members.h"

namespace cepheus::coll {
namespace {

using arithmetic::Operation;
using testing::Each;
using testing::Ne;
using Vectors = std::vector<std::vector<std::byte>>;  // by member

constexpr std::size_t kChunk = 48;  // bytes

class Pairwise : public testing::Test {
 protected:
  void SetUp() override {
    fake::use_small_sizes();
    parameters().reduction_chunk = kChunk;
    parameters().copied_bytes = 0;
  }
};

// Random bits: also infinities, NaNs and subnormal numbers.
template <typename T>
std::vector<std::vector<T>> draw(int members, std::size_t elements, std::mt19937_64& random) {
  std::vector<std::vector<T>> all(static_cast<std::size_t>(members), std::vector<T>(elements));
  for (auto& each : all) {
    for (T& value : each) {
      const auto bits = static_cast<arithmetic::Bits<T>>(random());
      value = random() % 4 == 0 ? std::bit_cast<T>(bits)
                                : static_cast<T>(static_cast<double>(random() % 1000) * 0.1);
    }
  }
  return all;
}

template <typename T>
Vectors bytes_of(const std::vector<std::vector<T>>& values) {
  Vectors all;
  for (const auto& each : values) {
    auto& bytes = all.emplace_back(each.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), each.data(), bytes.size());
  }
  return all;
}

template <typename T>
std::vector<std::byte> reduced(std::vector<std::vector<T>> values, Operation operation) {
  arithmetic::combine_in_pairs(values.size(), [&](std::size_t left, std::size_t right) {
    for (std::size_t i = 0; i < values[left].size(); ++i)
      values[left][i] = arithmetic::reference(operation, values[left][i], values[right][i]);
  });
  return bytes_of<T>({values[0]})[0];
}

// Lengths by which chunks, slices, or both are empty, whole or divided.
std::vector<std::size_t> lengths(int members) {
  const auto n = static_cast<std::size_t>(members);
  std::vector<std::size_t> all{0, 1, n - 1, n, n + 1};
  if (members <= 9) all.insert(all.end(), {2, 61, 2 * n + 1, 300});
  return all;
}

template <typename T>
void expect_reference(Operation operation, unsigned seed) {
  std::mt19937_64 random(seed);
  for (int members = 1; members <= 33; ++members) {
    fake::PairwiseMembers all(members, seed);
    for (const std::size_t elements : lengths(members)) {
      const auto values = draw<T>(members, elements, random);
      Vectors vectors = bytes_of(values);
      all.begin(vectors, {nullptr, elements, sizeof(T),
                          arithmetic::Combiner::find(operation, arithmetic::type_of<T>())});
      all.run();
      ASSERT_THAT(all.results(), Each(Code::kDone)) << members << ", " << elements;
      ASSERT_THAT(vectors, Each(reduced(values, operation))) << members << ", " << elements;
    }
    all.finish();
    EXPECT_EQ(all.mpi.receives(), 0u);
    EXPECT_LE(all.longest(), kChunk);
  }
}

TEST_F(Pairwise, SumsHaveTheBitsOfTheReference) {
  expect_reference<float>(Operation::kSum, 1);
  expect_reference<double>(Operation::kSum, 2);
}

TEST_F(Pairwise, OtherOperationsToo) {
  expect_reference<std::int8_t>(Operation::kSum, 3);
  expect_reference<double>(Operation::kMin, 4);
  expect_reference<std::uint64_t>(Operation::kBitXor, 5);
}

// Neither commutative nor associative, on elements of three bytes.
class Ordered final : public Operator {
 public:
  static constexpr std::size_t kElement = 3;
  Code apply(const void* left, void* right, std::size_t elements) override {
    return fake::Mixing().apply(left, right, elements * kElement);
  }
};

std::vector<std::byte> in_order(Vectors operands) {
  arithmetic::combine_in_pairs(operands.size(), [&](std::size_t left, std::size_t right) {
    (void)fake::Mixing().apply(operands[left].data(), operands[right].data(),
                               operands[left].size());
    operands[left] = operands[right];
  });
  return operands[0];
}

Vectors draw_bytes(int members, std::size_t bytes, std::mt19937_64& random) {
  Vectors all(static_cast<std::size_t>(members), std::vector<std::byte>(bytes));
  for (auto& each : all)
    for (std::byte& value : each) value = static_cast<std::byte>(random());
  return all;
}

TEST_F(Pairwise, AHostsOperationGetsItsOperandsInTheOrderOfMembers) {
  std::mt19937_64 random(6);
  Ordered ordered;
  for (int members = 1; members <= 33; ++members) {
    fake::PairwiseMembers all(members, 6);
    for (const std::size_t elements : lengths(members)) {
      Vectors vectors = draw_bytes(members, elements * Ordered::kElement, random);
      const auto right = in_order(vectors);
      all.begin(vectors, {nullptr, elements, Ordered::kElement, std::nullopt, &ordered});
      all.run();
      ASSERT_THAT(all.results(), Each(Code::kDone)) << members << ", " << elements;
      ASSERT_THAT(vectors, Each(right)) << members << ", " << elements;
    }
  }
}

// One element is longer than a chunk shall be.
TEST_F(Pairwise, ElementsAreNotDivided) {
  std::mt19937_64 random(7);
  parameters().reduction_chunk = 2;
  Ordered ordered;
  fake::PairwiseMembers all(5, 7);
  Vectors vectors = draw_bytes(5, 11 * Ordered::kElement, random);
  const auto right = in_order(vectors);
  all.begin(vectors, {nullptr, 11, Ordered::kElement, std::nullopt, &ordered});
  all.run();
  EXPECT_THAT(all.results(), Each(Code::kDone));
  EXPECT_THAT(vectors, Each(right));
  EXPECT_EQ(all.longest(), Ordered::kElement);
}

// Each message of each member in turn. Whatever happens, no member waits for ever, none has another
// result, and the one that MPI has refused a message fails.
class RefusedPairwise : public Pairwise {
 protected:
  using Refuses = fake::Mpi::Refuses;
  static constexpr std::size_t kElements = 70;

  // The member `failing` can send, or receive, `before` messages. False: it has no further one.
  static bool expect_errors(int members, int failing, int before, bool is_send, Refuses refuses) {
    std::mt19937_64 random(8);
    Ordered ordered;
    fake::PairwiseMembers all(members, 8);
    Vectors vectors = draw_bytes(members, kElements * Ordered::kElement, random);
    const auto right = in_order(vectors);
    all.mpi.refuses_so = refuses;
    all.mpi.most_refused = 1;
    all.mpi.refused_after = before;
    all.mpi.refused_rank = failing;
    (is_send ? all.mpi.refused_send : all.mpi.refused_tag) = all.team(0).tag(Tag::kPairs);
    all.begin(vectors, {nullptr, kElements, Ordered::kElement, std::nullopt, &ordered});
    all.run();
    const bool has_refused = all.mpi.refused() > 0;
    for (int i = 0; i < members; ++i) {
      const auto it = static_cast<std::size_t>(i);
      EXPECT_NE(all.results()[it], Code::kPending) << i << " waits";
      if (i == failing) {
        EXPECT_EQ(all.results()[it] != Code::kDone, has_refused);
      }
      if (all.results()[it] == Code::kDone) {
        EXPECT_EQ(vectors[it], right) << i;
      }
    }
    if (has_refused)
      expect_errors_next(all, vectors, {nullptr, kElements, 3, {}, &ordered}, failing);
    all.finish();
    EXPECT_EQ(all.mpi.receives(), 0u);
    return has_refused;
  }
  // In the next reduction a failed member takes no part, and no member has a result.
  static void expect_errors_next(fake::PairwiseMembers& all, Vectors& vectors,
                                 const PairwiseOperation::Vector& vector, int failing) {
    const std::vector<Code> before = all.results();
    all.begin(vectors, vector);
    for (int i = 0; i < static_cast<int>(before.size()); ++i) {
      if (before[static_cast<std::size_t>(i)] == Code::kDone) continue;
      all.member(i).fail();
      all.set_result(i, Code::kFailed);
    }
    all.run();
    EXPECT_THAT(all.results(), Each(Ne(Code::kPending)));
    EXPECT_NE(all.results()[static_cast<std::size_t>(failing)], Code::kDone);
    for (int i = 0; i < static_cast<int>(before.size()); ++i) {
      EXPECT_NE(all.results()[static_cast<std::size_t>(i)], Code::kDone) << i;
    }
  }
  static void expect_all(int members) {
    for (const bool is_send : {true, false}) {
      for (const Refuses refuses : {Refuses::kAtOnce, Refuses::kLater, Refuses::kLaterButArrives}) {
        if (!is_send && refuses == Refuses::kLaterButArrives) continue;
        for (int failing = 0; failing < members; ++failing) {
          int before = 0;
          while (expect_errors(members, failing, before, is_send, refuses)) ++before;
          if (HasFailure())
            FAIL() << members << " members, " << failing << " fails, " << before << " before, send "
                   << is_send << ", as " << static_cast<int>(refuses);
        }
      }
    }
  }
};

TEST_F(RefusedPairwise, EndsInErrorsAndLeavesNoMemberWaiting) {
  for (int members = 2; members <= 7; ++members) expect_all(members);
}

TEST_F(Pairwise, OfAMemberThatCantTakePartHasNoResult) {
  std::mt19937_64 random(9);
  Ordered ordered;
  for (int members = 2; members <= 17; ++members) {
    for (int failing = 0; failing < members; ++failing) {
      fake::PairwiseMembers all(members, 9);
      Vectors vectors = draw_bytes(members, 50 * Ordered::kElement, random);
      all.begin(vectors, {nullptr, 50, Ordered::kElement, {}, &ordered});
      all.member(failing).fail();
      all.set_result(failing, Code::kFailed);
      all.run();
      EXPECT_THAT(all.results(), Each(Ne(Code::kDone))) << failing << " of " << members;
      EXPECT_THAT(all.results(), Each(Ne(Code::kPending))) << failing << " of " << members;
      all.finish();
    }
  }
}

// Another count at one member.
TEST_F(Pairwise, OfAnotherLengthEndsInErrors) {
  std::mt19937_64 random(10);
  Ordered ordered;
  for (int failing = 0; failing < 5; ++failing) {
    fake::PairwiseMembers all(5, 10);
    Vectors vectors = draw_bytes(5, 60 * Ordered::kElement, random);
    all.begin(vectors, {nullptr, 60, Ordered::kElement, {}, &ordered});
    all.member(failing).begin(
        {vectors[static_cast<std::size_t>(failing)].data(), 50, Ordered::kElement, {}, &ordered});
    all.run();
    EXPECT_THAT(all.results(), Each(Ne(Code::kDone))) << failing;
    EXPECT_THAT(all.results(), Each(Ne(Code::kPending))) << failing;
    all.finish();
  }
}

TEST_F(Pairwise, NamesTheMemberToWhichAMessageFailed) {
  constexpr int kMembers = 4, kDead = 2;
  std::mt19937_64 random(11);
  Ordered ordered;
  fake::PairwiseMembers all(kMembers, 11);
  Vectors vectors = draw_bytes(kMembers, 30, random);
  all.mpi.kill(kDead);
  all.begin(vectors, {nullptr, 10, Ordered::kElement, {}, &ordered});
  all.set_result(kDead, Code::kFailed);
  all.run();
  all.mpi.fail_operations_with_the_dead();
  EXPECT_EQ(all.member(3).progress(), Code::kFailed);
  EXPECT_EQ(all.member(3).failed_member(), kDead);
  all.finish();
}

}  // namespace
}  // namespace cepheus::coll
