#include "collectives/core/rootless_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

namespace cepheus::coll {
namespace {

using Kind = RootlessMessage::Kind;
using Path = RootlessAgreement::Path;
using Stage = RootlessAgreement::Stage;

// All members of a team. Messages wait until deliver().
class Members {
 public:
  explicit Members(int size, std::uint32_t window = 4) {
    for (int i = 0; i < size; ++i) {
      members_.push_back(std::make_unique<RootlessAgreement>(i, size, window));
      outs_.emplace_back();
    }
  }
  RootlessAgreement& operator[](int member) { return *members_[static_cast<std::size_t>(member)]; }
  // The member's output so far.
  RootlessOutput& out(int member) { return outs_[static_cast<std::size_t>(member)]; }

  // Each starts `calls` of one unit, and has the first group.
  void start(int calls) {
    for (int i = 0; i < size(); ++i) {
      for (int call = 0; call < calls; ++call) (*this)[i].start();
      (*this)[i].renew(0, out(i));
    }
  }
  void take_results(int member, int count) {
    for (int i = 0; i < count; ++i) (*this)[member].take_result(true, out(member));
  }
  void drain(int member) { (*this)[member].drained(out(member)); }
  // Delivers the oldest waiting message. False: there is none.
  bool deliver_one() {
    for (int from = 0; from < size(); ++from) {
      auto& sends = out(from).sends;
      for (const auto& each : sends) wait_.push_back({from, each.to, each.message});
      sends.clear();
    }
    if (wait_.empty()) return false;
    const Waiting next = wait_.front();
    wait_.pop_front();
    kinds.push_back(next.message.kind);
    (*this)[next.to].receive(next.from, next.message, out(next.to));
    return true;
  }
  void deliver() {
    while (deliver_one()) {
    }
  }
  // The group has failed at one member, and some drain.
  void fail_at(int member, const std::vector<int>& drained) {
    (*this)[member].fail(Cause::kWork, "no port", out(member));
    deliver();
    for (const int each : drained) drain(each);
    deliver();
  }
  void fail() {
    std::vector<int> all(members_.size());
    std::iota(all.begin(), all.end(), 0);
    fail_at(0, all);
  }
  std::vector<Kind> kinds;  // of delivered messages

 private:
  struct Waiting {
    int from, to;
    RootlessMessage message;
  };
  int size() const { return static_cast<int>(members_.size()); }

  std::vector<std::unique_ptr<RootlessAgreement>> members_;
  std::deque<RootlessOutput> outs_;
  std::deque<Waiting> wait_;
};

TEST(RootlessAgreement, SetsAGroupUpAtTheFirstCallAndReducesInIt) {
  RootlessAgreement member(1, 3, 4);
  RootlessOutput out;
  EXPECT_EQ(member.start(), 0u);
  EXPECT_EQ(member.path(0), Path::kSetUp);
  member.renew(0, out);
  EXPECT_EQ(member.generation(), 1u);
  EXPECT_EQ(member.path(0), Path::kNetwork);
  member.take_result(false, out);
  EXPECT_EQ(member.path(0), Path::kNetwork) << "a unit is missing";
  member.take_result(true, out);
  EXPECT_EQ(member.path(0), Path::kDone);
  EXPECT_TRUE(out.sends.empty());
}

TEST(RootlessAgreement, ComputesByTheHostUntilAllTryAgain) {
  RootlessAgreement member(1, 3, 4);
  member.refuse(2);
  EXPECT_EQ(member.path(1), Path::kSaved);
  EXPECT_EQ(member.path(2), Path::kSetUp);
}

TEST(RootlessAgreement, FailureGoesByMember0ToAll) {
  Members all(4);
  all.start(1);
  all[2].fail(Cause::kDevice, "no port", all.out(2));
  EXPECT_TRUE(all.out(2).stops);
  EXPECT_EQ(all[2].path(0), Path::kWait);
  ASSERT_EQ(all.out(2).sends.size(), 1u);
  EXPECT_EQ(all.out(2).sends[0].to, 0);
  all.deliver();
  EXPECT_EQ(all.kinds, std::vector<Kind>(3, Kind::kFailed));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(all.out(i).stops);
    EXPECT_EQ(all[i].cause(), Cause::kDevice);
    EXPECT_EQ(all[i].reason(), "no port");
  }
}

// The member that drains last may have the most results.
TEST(RootlessAgreement, DecidesOnceAllAreDrained) {
  Members all(3);
  all.start(2);
  all.take_results(1, 1);
  all.fail_at(0, {0, 2});
  all.take_results(1, 1);  // while it stops
  EXPECT_EQ(all[1].path(1), Path::kDone);
  EXPECT_EQ(all[0].path(0), Path::kWait);
  all.drain(1);
  all.deliver();
  for (const int lacking : {0, 2}) {
    EXPECT_EQ(all[lacking].holder(), 1);
    EXPECT_EQ(all[lacking].copied_units(), 2u);
  }
  ASSERT_EQ(all.out(1).serves.size(), 2u);
  EXPECT_EQ(all.out(1).serves[0].end, 2u);
  all.take_results(0, 2);
  EXPECT_EQ(all[0].path(1), Path::kDone);
  EXPECT_EQ(all[0].stage(), Stage::kNoGroup);
}

TEST(RootlessAgreement, ACallThatIsCompleteNowhereIsComputedAgainByAll) {
  Members all(3);
  for (int i = 0; i < 3; ++i) {
    all[i].set_retry_after(5);
    all[i].start();
    all[i].renew(0, all.out(i));
  }
  all.fail();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].path(0), Path::kSaved);
    EXPECT_EQ(all[i].first_unit(0), 0u);
    EXPECT_EQ(all[i].path(4), Path::kSaved);
    EXPECT_EQ(all[i].path(5), Path::kSetUp);
    EXPECT_TRUE(all.out(i).serves.empty());
    EXPECT_TRUE(all.out(i).releases);
  }
}

// Its units that are complete at some member are not: the program's memory has their results in the
// place of their inputs.
TEST(RootlessAgreement, OnlyUnitsThatAreCompleteNowhereAreComputedAgain) {
  Members all(3);
  for (int i = 0; i < 3; ++i) {
    all[i].start();
    all[i].start();
    all[i].renew(0, all.out(i));
    all[i].take_result(true, all.out(i));  // call 0
    all[i].start();
  }
  for (int unit = 0; unit < 3; ++unit) all[1].take_result(false, all.out(1));
  all[2].take_result(false, all.out(2));
  all.fail();
  ASSERT_EQ(all.out(1).serves.size(), 2u);
  EXPECT_EQ(all[1].first_unit(1), 3u);
  for (const int lacking : {0, 2}) {
    EXPECT_EQ(all[lacking].stage(), Stage::kCopying);
    EXPECT_EQ(all[lacking].path(1), Path::kWait);
    EXPECT_EQ(all[lacking].copied_units(), 4u);
    while (all[lacking].stage() == Stage::kCopying)
      all[lacking].take_result(false, all.out(lacking));
    EXPECT_EQ(all[lacking].path(1), Path::kSaved);
    EXPECT_EQ(all[lacking].first_unit(1), 3u);
    EXPECT_EQ(all[lacking].first_unit(2), 0u);
    EXPECT_EQ(all[lacking].path(2), Path::kSetUp);
  }
}

// A holder has returned from all its calls, and still serves the members that lack results.
TEST(RootlessAgreement, SeveralHoldersShareTheLackingMembers) {
  Members all(6);
  all.start(3);
  all.take_results(2, 3);
  all.take_results(5, 3);
  all.take_results(0, 1);
  all.fail();
  EXPECT_EQ(all.out(2).serves.size(), 2u);
  EXPECT_EQ(all.out(5).serves.size(), 2u);
  EXPECT_EQ(all.out(2).serves[0].to, 0);
  EXPECT_EQ(all.out(2).serves[0].first, 1u);
  EXPECT_EQ(all.out(2).serves[1].first, 0u);
}

TEST(RootlessAgreement, AHolderKeepsItsResultsUntilTheLastLackIsServed) {
  RootlessAgreement holder(1, 3, 4);
  RootlessOutput out;
  holder.start();
  holder.renew(0, out);
  holder.take_result(true, out);
  holder.fail(Cause::kWork, "failed", out);
  holder.drained(out);
  RootlessMessage lack{};
  lack.kind = Kind::kLack;
  lack.generation = 1;
  lack.complete = 1;
  holder.receive(2, lack, out);  // before the decision
  holder.served(out);
  EXPECT_EQ(out.serves.size(), 1u);
  EXPECT_FALSE(out.releases);
  RootlessMessage decision{};
  decision.kind = Kind::kDecision;
  decision.generation = 1;
  decision.units = decision.calls = 1;
  decision.retry_at = 9;
  decision.member = -1;
  decision.requests = 2;
  holder.receive(0, decision, out);
  EXPECT_FALSE(out.releases);
  EXPECT_FALSE(holder.is_finished());
  EXPECT_TRUE(holder.awaits(1)) << "which may have died before it asked";
  holder.receive(0, lack, out);
  EXPECT_FALSE(out.releases) << "its sends read the kept results";
  EXPECT_FALSE(holder.is_finished());
  holder.served(out);
  EXPECT_TRUE(out.releases);
  EXPECT_TRUE(holder.is_finished());
  EXPECT_FALSE(holder.awaits(1));
}

TEST(RootlessAgreement, KeepsTheLastWindow) {
  Members all(2, 4);
  all.start(9);
  all.take_results(0, 9);
  EXPECT_EQ(all[0].first_kept(), 5u);
  all.take_results(1, 5);
  all.fail();
  ASSERT_EQ(all.out(0).serves.size(), 1u);
  EXPECT_EQ(all.out(0).serves[0].first, 5u);
}

// Only a member that breaks the group's credit lacks older ones.
TEST(RootlessAgreement, AResultThatNobodyKeepsEndsTheCallsInAnError) {
  Members all(2, 4);
  all.start(9);
  all.take_results(0, 9);
  all.take_results(1, 4);
  all.fail();
  EXPECT_TRUE(all.out(0).serves.empty());
  EXPECT_EQ(all[1].path(3), Path::kDone);
  EXPECT_EQ(all[1].path(4), Path::kError);
  EXPECT_EQ(all[0].path(9), Path::kError);
}

// A member has the next group before another one knows that it is up, and sees it fail.
TEST(RootlessAgreement, MessagesOfTheNextGroupWait) {
  Members all(2);
  for (int i = 0; i < 2; ++i) all[i].start();
  all[1].renew(0, all.out(1));
  all[1].fail(Cause::kWork, "failed at once", all.out(1));
  all.drain(1);
  all.deliver();
  EXPECT_EQ(all[0].stage(), Stage::kNoGroup);
  all[0].renew(0, all.out(0));
  EXPECT_EQ(all[0].stage(), Stage::kStopping);
  EXPECT_TRUE(all.out(0).stops);
  all.drain(0);
  all.deliver();
  EXPECT_EQ(all[0].path(0), Path::kSaved);
  EXPECT_EQ(all[1].path(0), Path::kSaved);
}

TEST(RootlessAgreement, FailsAgainInTheNextGroup) {
  Members all(2);
  all.start(1);
  all.fail();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].start(), 1u);
    EXPECT_EQ(all[i].path(1), Path::kSetUp);
    all[i].renew(1, all.out(i));
    EXPECT_EQ(all[i].generation(), 2u);
  }
  all.take_results(1, 1);
  all.fail();
  EXPECT_EQ(all[0].stage(), Stage::kCopying);
  EXPECT_EQ(all[0].copied_units(), 1u) << "units count anew";
  all.take_results(0, 1);
  EXPECT_EQ(all[0].path(1), Path::kDone);
}

// The fabric lost a result, and no NIC shows that.
TEST(RootlessAgreement, AResultThatAnotherMemberHasIsFoundLost) {
  Members all(3);
  all.start(1);
  all[0].see_result();  // no member has all results of the operation
  RootlessAgreement::Time now{};
  const auto watch = [&](std::chrono::milliseconds later) {
    now += later;
    all[1].watch(now, all.out(1));
    all.deliver();
  };
  watch({});
  watch(RootlessAgreement::kRequest);
  EXPECT_EQ(all.kinds, (std::vector<Kind>{Kind::kWaiting, Kind::kHas}));
  EXPECT_EQ(all[1].stage(), Stage::kWhole) << "the NIC may be about to hand it over";
  watch({});
  watch(RootlessAgreement::kRequestAgain);
  EXPECT_EQ(all[1].cause(), Cause::kLost);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all[i].stage(), Stage::kStopping);
}

TEST(RootlessAgreement, ALateAnswerAboutAResultIsNone) {
  Members all(2);
  all.start(1);
  all.take_results(0, 1);
  RootlessAgreement::Time now{};
  all[1].watch(now, all.out(1));
  all[1].watch(now + RootlessAgreement::kRequest, all.out(1));
  all.deliver_one();
  all.take_results(1, 1);
  all.deliver();
  EXPECT_EQ(all.kinds.back(), Kind::kHas);
  EXPECT_EQ(all[1].stage(), Stage::kWhole);
}

// The fabric lost a contribution that it had acknowledged, or the result everywhere.
TEST(RootlessAgreement, AResultThatReachesNoMemberIsFoundLostOnceAllHaveContributed) {
  Members all(3);
  all.start(1);
  RootlessAgreement::Time now{};
  const auto wait = [&](std::chrono::seconds time) {
    for (const auto end = now + time; now < end; now += std::chrono::milliseconds(500))
      for (int i = 0; i < 3; ++i) all[i].watch(now, all.out(i));
    all.deliver();
  };
  all[0].contribute(1);
  all[1].contribute(1);
  wait(std::chrono::hours(1));
  EXPECT_EQ(all[0].stage(), Stage::kWhole) << "member 2 is late";
  all[2].contribute(1);
  wait(std::chrono::minutes(2));
  EXPECT_EQ(all[0].stage(), Stage::kWhole) << "its result may be on its way";
  wait(std::chrono::minutes(5));
  EXPECT_EQ(all[0].cause(), Cause::kLost);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all[i].stage(), Stage::kStopping);
}

// Member 0 doesn't know which members have the result. If a member is late, none has it.
TEST(RootlessAgreement, Member0RequestsAroundEverMoreRarely) {
  constexpr int kSize = 40;
  Members all(kSize);
  all.start(1);
  std::vector<int> requested(kSize);
  const auto wait = [&](std::chrono::seconds time) {
    static RootlessAgreement::Time now{};
    for (const auto end = now + time; now < end; now += std::chrono::milliseconds(500))
      all[0].watch(now, all.out(0));
    for (const auto& each : all.out(0).sends) ++requested[static_cast<std::size_t>(each.to)];
    const std::size_t sent = all.out(0).sends.size();
    all.out(0).sends.clear();
    return sent;
  };
  EXPECT_EQ(wait(std::chrono::seconds(60)), 31u) << "1, 2, 4, 8 and 16 members";
  wait(std::chrono::seconds(120));
  EXPECT_EQ(std::ranges::count(requested, 0), 1) << "itself";
  EXPECT_LE(wait(std::chrono::hours(1)), 60u * 16u);
}

TEST(RootlessAgreement, AMemberThatCantBeReachedEndsAllCallsInErrors) {
  Members all(4);
  all.start(2);
  all.take_results(1, 1);
  all.fail_at(1, {0, 1, 2});
  EXPECT_TRUE(all[0].awaits(3));
  EXPECT_FALSE(all[0].awaits(2));
  EXPECT_TRUE(all[2].awaits(0));
  all[0].lose(3, all.out(0));
  all.deliver();
  EXPECT_EQ(all[1].path(0), Path::kDone) << "it has the result";
  EXPECT_EQ(all[1].path(1), Path::kError);
  EXPECT_EQ(all[2].path(0), Path::kError);
  all.drain(3);
  EXPECT_EQ(all[3].path(0), Path::kError) << "it is alive";
}

// Another member copies results from it.
TEST(RootlessAgreement, AMemberThatGivesUpEndsAllCallsThatAreNotComplete) {
  Members all(3);
  all.start(1);
  all.take_results(0, 1);
  all.take_results(1, 1);
  all.fail();
  EXPECT_EQ(all[2].holder(), 0);
  all[0].give_up("its data can't be read", false, all.out(0));
  all[0].give_up("again", false, all.out(0));
  all.deliver();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(all[i].is_ended());
    EXPECT_EQ(all[i].reason(), "its data can't be read");
  }
  EXPECT_EQ(all[2].path(0), Path::kWait) << "it copies";
  all.take_results(2, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].path(0), Path::kDone);
    EXPECT_EQ(all[i].path(all[i].start()), Path::kError);
  }
}

// The others have known of another failure. No member completes a call that was refused.
TEST(RootlessAgreement, ARefusalReachesMembersThatHaveEnded) {
  Members all(3);
  all.start(1);
  all[1].lose(2, all.out(1));
  all.deliver();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(all[i].is_refused()) << i;
  all[0].give_up("it can't agree", true, all.out(0));
  all[0].give_up("nor now", true, all.out(0));
  EXPECT_EQ(all.out(0).sends.size(), 2u);
  all.deliver();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(all[i].is_refused()) << i;
    EXPECT_EQ(all[i].reason(), i == 0 ? "it can't agree" : "member 2 can't be reached") << i;
  }
}

// The NIC may still write.
TEST(RootlessAgreement, AnErrorWaitsForTheDrain) {
  Members all(2);
  all.start(1);
  all[0].lose(1, all.out(0));
  EXPECT_TRUE(all.out(0).stops);
  EXPECT_EQ(all[0].path(0), Path::kWait);
  EXPECT_FALSE(all[0].is_finished());
  all.drain(0);
  EXPECT_EQ(all[0].path(0), Path::kError);
}

// One member gives the set-up up, because another one is gone. A third one has the group already.
TEST(RootlessAgreement, AMemberThatGivesASetUpUpEndsTheGroup) {
  Members all(4);
  for (int i = 0; i < 3; ++i) all[i].start();
  all[1].renew(0, all.out(1));
  all[0].lose(3, all.out(0));
  EXPECT_EQ(all[0].path(0), Path::kError);
  all.deliver();
  EXPECT_EQ(all[1].path(0), Path::kWait);
  all.drain(1);
  EXPECT_EQ(all[1].path(0), Path::kError);
  EXPECT_EQ(all[2].path(0), Path::kError) << "its set-up can't end well";
}

TEST(RootlessAgreement, AMemberWithoutFurtherCallsFindsNoFailure) {
  Members all(2);
  all.start(1);
  all.take_results(0, 1);
  all.take_results(1, 1);
  all[1].close();
  all[1].fail(Cause::kWork, "failed", all.out(1));
  EXPECT_EQ(all[1].stage(), Stage::kWhole);
  EXPECT_TRUE(all[1].is_finished());
  all[0].fail(Cause::kWork, "failed", all.out(0));  // it is not closed, and may need others
  all.deliver();
  EXPECT_EQ(all[1].stage(), Stage::kStopping);
  EXPECT_FALSE(all[1].is_finished());
}

TEST(RootlessAgreement, AMemberThatCopiesNeedsItsHolderOnly) {
  Members all(4);
  all.start(1);
  all.take_results(1, 1);
  all.fail();
  EXPECT_EQ(all[2].stage(), Stage::kCopying);
  all[2].lose(3, all.out(2));
  EXPECT_EQ(all[2].path(0), Path::kWait);
  all[2].lose(1, all.out(2));
  EXPECT_EQ(all[2].path(0), Path::kError);
}

}  // namespace
}  // namespace cepheus::coll
