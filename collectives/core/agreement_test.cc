// Members on an imitation of a group and of MPI's messages, in random order: whatever breaks
// whenever, each gets each unit exactly once, and all agree on who takes the saved function.
#include "collectives/core/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace cepheus::coll {
namespace {

using Kind = ControlMessage::Kind;
using Path = Agreement::Path;

// One broadcast of the program that all ranks run.
struct Step {
  int root;
  bool large;
};

struct Letter {
  int from, to;
  bool is_data;  // a repair; else control
  ControlMessage control;
  std::uint64_t unit;
};

class World {
 public:
  // Attended roots of large units send when all others have posted, unattended ones at once.
  World(unsigned seed, int size, std::size_t steps, bool attended)
      : random_(seed), attended_(attended) {
    for (std::size_t i = 0; i < steps; ++i) program_.push_back({pick(size), pick(3) == 0});
    for (int r = 0; r < size; ++r) ranks_.emplace_back(r, size);
  }

  // Runs to the end; false if nobody can go on.
  bool run() {
    std::size_t idle = 0;
    for (std::size_t event = 0; !is_over(); ++event) {
      if (event == break_at_) cut_off_.insert(pick(static_cast<int>(ranks_.size())));
      idle = act() ? 0 : idle + 1;
      // Every action has had its chance many times over.
      if (idle > 400 * ranks_.size()) {
        // Nothing moves: the watchdogs of those that still owe something bark.
        if (!bark()) return false;
        idle = 0;
      }
    }
    return true;
  }
  void break_at(std::size_t event) { break_at_ = event; }

  struct Rank {
    Rank(int r, int n) : rank(r), agreement(r, n, 1) {}
    int rank;
    Agreement agreement;
    std::size_t at = 0;  // step
    bool inside = false;
    bool posted = false;           // large: its buffer is posted
    bool stopped = false;          // out of the group
    std::set<std::uint64_t> have;  // arrived by multicast
    std::set<std::uint64_t> repaired;
    std::map<std::uint64_t, std::set<int>> owes;  // sent as root: who has acknowledged
    std::size_t served = 0, serves_wanted = 0;
    std::vector<char> how;  // per step: m multicast, r repaired, s saved
  };
  std::deque<Rank>& ranks() { return ranks_; }
  const std::vector<Step>& program() const { return program_; }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool is_over() const {
    for (const Rank& r : ranks_)
      if (r.at < program_.size()) return false;
    return letters_.empty();
  }

  bool act() {
    if (!letters_.empty() && pick(2) == 0) return deliver_letter();
    Rank& r = ranks_[static_cast<std::size_t>(pick(static_cast<int>(ranks_.size())))];
    return pick(2) == 0 ? deliver_data(r) : step(r);
  }

  void put(Rank& r, Actions& actions) {
    for (const Action& a : actions) {
      switch (a.kind) {
        case Action::Kind::kSend:
          for (int to = 0; to < static_cast<int>(ranks_.size()); ++to) {
            if (to != r.rank && (a.to == Action::kEveryone || a.to == to))
              letters_.push_back({r.rank, to, false, a.message, 0});
          }
          break;
        case Action::Kind::kServeStored:
          ASSERT_TRUE(r.owes.count(a.message.unit)) << "unit " << a.message.unit << " is not kept";
          ASSERT_FALSE(r.owes[a.message.unit].count(a.to)) << "asked for what it had acknowledged";
          letters_.push_back({r.rank, a.to, true, {}, a.message.unit});
          break;
        case Action::Kind::kServeCurrent:
          letters_.push_back({r.rank, a.to, true, {}, a.message.unit});
          break;
        case Action::Kind::kTellDelivered:
          ADD_FAILURE() << "nobody waits for long here";
          break;
      }
    }
    actions.clear();
  }

  // Messages between two ranks stay in order, all else is random.
  bool deliver_letter() {
    const auto chosen = letters_[static_cast<std::size_t>(pick(static_cast<int>(letters_.size())))];
    const auto at = std::find_if(letters_.begin(), letters_.end(), [&](const Letter& l) {
      return l.from == chosen.from && l.to == chosen.to && l.is_data == chosen.is_data;
    });
    const Letter letter = *at;
    letters_.erase(at);
    Rank& r = ranks_[static_cast<std::size_t>(letter.to)];
    if (letter.is_data) {
      EXPECT_TRUE(r.repaired.insert(letter.unit).second) << "repaired twice";
      return true;
    }
    Actions actions;
    r.agreement.receive(letter.from, letter.control, actions);
    put(r, actions);
    salvage(r);
    return true;
  }

  // The fabric hands the oldest unit that `r` lacks over, if it can; that acknowledges it.
  bool deliver_data(Rank& r) {
    if (r.stopped || cut_off_.count(r.rank)) return false;
    Rank* from = nullptr;
    std::uint64_t oldest = kNoUnit;
    for (Rank& root : ranks_) {
      for (const auto& [unit, acknowledged] : root.owes) {
        if (root.rank == r.rank || acknowledged.count(r.rank) || unit >= oldest) continue;
        from = &root;
        oldest = unit;
      }
    }
    if (from == nullptr || from->stopped || cut_off_.count(from->rank)) return false;
    from->owes[oldest].insert(r.rank);
    EXPECT_TRUE(r.have.insert(oldest).second);
    return true;
  }

  void salvage(Rank& r) {
    if (!r.agreement.is_broken() || r.agreement.is_salvaged() || pick(3) != 0) return;
    r.stopped = true;
    Actions actions;
    std::erase_if(r.owes,
                  [&](const auto& each) { return each.second.size() + 1 == ranks_.size(); });
    bool owes = false;
    for (const auto& [unit, acknowledged] : r.owes) owes |= unit < r.at;
    r.agreement.salvaged(owes, actions);
    put(r, actions);
  }

  bool bark() {
    bool any = false;
    for (Rank& r : ranks_) {
      for (const auto& [unit, acknowledged] : r.owes) {
        if (acknowledged.size() + 1 == ranks_.size() || r.agreement.is_broken()) continue;
        r.agreement.fail(Cause::kWatchdog, "nobody answers");
        any = true;
      }
    }
    return any;
  }

  void done(Rank& r, char how) {
    Actions actions;
    r.how.push_back(how);
    r.agreement.leave(++r.at, actions);
    r.inside = false;
    put(r, actions);
  }

  bool all_ready() const {
    for (const Rank& r : ranks_)
      if (!r.posted) return false;
    return true;
  }

  bool step(Rank& r) {
    salvage(r);
    if (r.at == program_.size()) return false;
    const Step& now = program_[r.at];
    Actions actions;
    if (!r.inside) {
      if (pick(3) != 0) return true;  // busy elsewhere
      r.inside = true;
      r.posted = false;
      r.agreement.enter(r.at, now.root, 1000, actions);
      put(r, actions);
      return true;
    }
    const bool root = now.root == r.rank;
    switch (r.agreement.path()) {
      case Path::kSaved:
        done(r, 's');
        return true;
      case Path::kGone:
        ADD_FAILURE() << "roots keep here what not all have";
        return true;
      case Path::kSalvage:
        return true;
      case Path::kMulticast:
        if (!root) {
          r.posted = r.posted || now.large;
          if (!r.have.count(r.at)) return false;
          done(r, 'm');
          return true;
        }
        if (!r.owes.count(r.at)) {
          if (now.large && attended_ && !others_posted(r)) return false;
          r.owes[r.at];
          r.agreement.mark_sent();
          if (!now.large) done(r, 'm');
          return true;
        }
        if (r.owes[r.at].size() + 1 < ranks_.size()) return false;
        done(r, 'm');
        return true;
      case Path::kRepair:
        if (root) {
          if (!r.agreement.is_answered()) return false;
          done(r, 'm');
          return true;
        }
        if (r.have.count(r.at) || r.repaired.count(r.at)) {
          EXPECT_FALSE(r.have.count(r.at) && r.repaired.count(r.at)) << "delivered twice";
          done(r, r.have.count(r.at) ? 'm' : 'r');
          return true;
        }
        r.agreement.lack(0, actions);
        const bool asked = !actions.empty();
        put(r, actions);
        return asked;
    }
    return false;
  }

  bool others_posted(const Rank& root) const {
    for (const Rank& r : ranks_) {
      if (r.rank != root.rank && (r.at != root.at || !r.inside || !r.posted)) return false;
    }
    return true;
  }

  std::mt19937 random_;
  const bool attended_;
  std::vector<Step> program_;
  std::deque<Rank> ranks_;
  std::deque<Letter> letters_;
  std::set<int> cut_off_;
  std::size_t break_at_ = ~std::size_t{0};
};

TEST(Agreement, EveryUnitReachesEveryRankOnceWheneverTheFabricBreaks) {
  int repaired = 0, saved = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, 2 + static_cast<int>(seed % 5), 12, seed % 2 == 0);
    world.break_at(seed * 7919 % 900);
    ASSERT_TRUE(world.run()) << "nobody can go on";
    for (const World::Rank& r : world.ranks()) {
      ASSERT_EQ(r.how.size(), world.program().size());
      for (std::size_t i = 0; i < r.how.size(); ++i) {
        const bool is_saved = r.how[i] == 's';
        ASSERT_EQ(is_saved, world.ranks()[0].how[i] == 's') << "unit " << i << ": ranks disagree";
        ASSERT_FALSE(i > 0 && r.how[i - 1] == 's' && !is_saved);
        saved += is_saved;
        repaired += r.how[i] == 'r';
      }
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(repaired, 500);
  EXPECT_GT(saved, 5000);
}

TEST(Agreement, WithoutAFaultAllIsMulticast) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    World world(seed, 4, 20, seed % 2 == 0);
    ASSERT_TRUE(world.run());
    for (const World::Rank& r : world.ranks()) {
      EXPECT_EQ(std::string(r.how.begin(), r.how.end()), std::string(20, 'm'));
    }
  }
}

TEST(Agreement, ARootThatKnowsOfTheBreachCutsAtItsNextUnit) {
  Actions out;
  Agreement root(0, 3, 7);
  root.fail(Cause::kSlow, "too slow");
  root.salvaged(false, out);
  EXPECT_TRUE(out.empty());
  root.enter(5, 0, 100, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].to, Action::kEveryone);
  EXPECT_EQ(out[0].message.kind, Kind::kCut);
  EXPECT_EQ(out[0].message.unit, 5u);
  EXPECT_EQ(out[0].message.generation, 7u);
  EXPECT_STREQ(out[0].message.reason, "too slow");
  EXPECT_EQ(root.path(), Path::kSaved);
  EXPECT_EQ(root.retry_at(), 105u);

  Agreement member(1, 3, 7);
  Actions none;
  member.enter(5, 0, 1, none);
  member.receive(0, out[0].message, none);
  EXPECT_EQ(member.path(), Path::kSalvage);
  member.salvaged(false, none);
  EXPECT_EQ(member.path(), Path::kSaved);
  EXPECT_EQ(member.retry_at(), 105u);
  EXPECT_EQ(member.cause(), Cause::kSlow);
  EXPECT_TRUE(none.empty());
}

TEST(Agreement, AnswersEveryUnattendedRootThatAsks) {
  Actions out;
  Agreement member(2, 3, 1);
  member.enter(5, 0, 10, out);
  const auto broken = [](std::uint64_t unit) {
    return ControlMessage{Kind::kBroken, 1, unit, 0, Cause::kWork, "cut off"};
  };
  member.receive(0, broken(5), out);
  member.receive(1, broken(6), out);
  member.salvaged(false, out);
  EXPECT_TRUE(out.empty());
  for (const int root : {0, 1}) {
    const std::uint64_t unit = 5 + static_cast<std::uint64_t>(root);
    member.leave(unit + 1, out);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].to, root);
    EXPECT_EQ(out[0].message.kind, Kind::kHave);
    EXPECT_EQ(out[0].message.unit, unit);
    out.clear();
    member.enter(unit + 1, 1, 10, out);
  }
}

// The fabric has acknowledged a unit, and the root has returned without a copy.
TEST(Agreement, AMemberWhoseUnitIsGoneIsToldSo) {
  Actions out;
  Agreement member(1, 2, 1);
  member.enter(0, 0, 10, out);
  member.fail(Cause::kWork, "broken");
  member.salvaged(false, out);
  EXPECT_EQ(member.path(), Path::kRepair);
  Agreement root(0, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  root.leave(1, out);
  ASSERT_TRUE(out.empty());
  root.gone(1, 0, out);
  ASSERT_EQ(out.size(), 1u);
  const ControlMessage gone = out[0].message;
  EXPECT_EQ(out[0].to, 1);
  member.receive(0, gone, out);
  EXPECT_EQ(member.path(), Path::kRepair) << "it has not asked";
  member.lack(0, out);
  member.receive(0, gone, out);
  EXPECT_EQ(member.path(), Path::kGone);
  member.leave(1, out);
  member.enter(1, 0, 10, out);
  EXPECT_EQ(member.path(), Path::kRepair) << "the next unit is another matter";
}

// Data that was acknowledged and lost: a group that seems whole to everybody.
TEST(Agreement, AMemberThatWaitsForAUnitThatAllHaveFindsTheBreach) {
  Actions out;
  Agreement root(0, 2, 1), member(1, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  member.enter(0, 0, 10, out);
  const Agreement::Time start{};
  member.watch(start, out);
  member.watch(start + Agreement::kAsk / 2, out);
  EXPECT_TRUE(out.empty());
  const auto ask = [&](Agreement::Time at) {
    out.clear();
    member.watch(at, out);
    ASSERT_EQ(out.size(), 1u);
    const ControlMessage waiting = out[0].message;
    EXPECT_EQ(waiting.kind, Kind::kWaiting);
    out.clear();
    root.receive(1, waiting, out);
  };
  ask(start + Agreement::kAsk);
  EXPECT_TRUE(out.empty()) << "the root is still inside";
  root.leave(1, out);
  for (int i = 1; i <= 2; ++i) {
    EXPECT_FALSE(member.is_broken());
    const Agreement::Time now = start + Agreement::kAsk + i * Agreement::kAskAgain;
    ask(now);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].kind, Action::Kind::kTellDelivered);
    Actions answer;
    root.deliver(1, 0, answer);
    member.receive(0, answer[0].message, out);
    member.watch(now, out);
  }
  EXPECT_TRUE(member.is_broken());
  EXPECT_EQ(member.cause(), Cause::kLost);
}

// A root outside MPI finds several questions in its queue and answers all at once. The member's NIC
// may still have the data.
TEST(Agreement, AnswersThatComeTogetherCountOnce) {
  Actions out;
  Agreement root(0, 2, 1), member(1, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  root.leave(1, out);
  member.enter(0, 0, 10, out);
  Agreement::Time now{};
  member.watch(now, out);
  now += Agreement::kAsk;
  member.watch(now, out);
  member.watch(now += Agreement::kAskAgain, out);
  ASSERT_EQ(out.size(), 2u) << "asks again";
  Actions answers;
  for (std::size_t i = 0; i < 2; ++i) root.deliver(1, 0, answers);
  for (const Action& answer : answers) member.receive(0, answer.message, out);
  EXPECT_FALSE(member.is_broken());
  member.watch(now, out);
  member.watch(now += Agreement::kAskAgain, out);
  ASSERT_EQ(out.size(), 3u);
  member.receive(0, answers[0].message, out);
  EXPECT_TRUE(member.is_broken());
}

// Questions pile up at a root that computes outside MPI. Once it answers, the member finds out
// soon.
TEST(Agreement, AMemberAsksLessOftenWhileNothingAnswers) {
  Actions out;
  Agreement root(0, 2, 1), member(1, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  root.leave(1, out);
  member.enter(0, 0, 10, out);
  Agreement::Time now{};
  const auto wait = [&](std::chrono::milliseconds time) {
    out.clear();
    for (const auto end = now + time; now < end; now += std::chrono::milliseconds(100))
      member.watch(now, out);
  };
  wait(std::chrono::minutes(1));
  EXPECT_EQ(out.size(), 5u) << "after 4, 6, 10, 18 and 34 seconds";
  wait(std::chrono::hours(1));
  EXPECT_LT(out.size(), 60u);
  EXPECT_GT(out.size(), 50u) << "the root may have answered none of them yet";
  Actions answer;
  root.deliver(1, 0, answer);
  member.receive(0, answer[0].message, out);
  wait(Agreement::kAskAgain);
  EXPECT_TRUE(out.empty()) << "the NIC may still hand over the data";
  wait(std::chrono::milliseconds(100));
  ASSERT_EQ(out.size(), 1u);
  member.receive(0, answer[0].message, out);
  EXPECT_TRUE(member.is_broken());
}

// The next unit begins anew.
TEST(Agreement, AMemberAsksSoonInEachUnit) {
  Actions out;
  Agreement member(1, 2, 1);
  Agreement::Time now{};
  for (std::uint64_t unit = 0; unit < 3; ++unit) {
    member.enter(unit, 0, 10, out);
    for (const auto end = now + Agreement::kAsk + Agreement::kAskAgain; now <= end;
         now += std::chrono::milliseconds(100))
      member.watch(now, out);
    member.leave(unit + 1, out);
    EXPECT_EQ(out.size(), 2 * (unit + 1));
  }
}

TEST(Agreement, AMemberThatWaitsLearnsThatTheGroupBrokeAtItsRoot) {
  Actions out;
  Agreement root(0, 2, 1), member(1, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  root.leave(1, out);
  root.fail(Cause::kDevice, "no port");
  root.salvaged(false, out);
  member.enter(0, 0, 10, out);
  member.watch({}, out);
  ASSERT_TRUE(out.empty());
  member.watch(Agreement::Time{} + Agreement::kAsk, out);
  ASSERT_EQ(out.size(), 1u);
  const ControlMessage waiting = out[0].message;
  out.clear();
  root.receive(1, waiting, out);
  ASSERT_EQ(out.size(), 1u);
  member.receive(0, out[0].message, out);
  EXPECT_TRUE(member.is_broken());
}

TEST(Agreement, AnAskingMemberIsServedOnlyOnceTheRootHasSalvaged) {
  Actions out;
  Agreement root(0, 2, 1);
  root.enter(0, 0, 10, out);
  root.mark_sent();
  root.leave(1, out);
  Agreement member(1, 2, 1);
  member.enter(0, 0, 10, out);
  member.fail(Cause::kDevice, "no port");
  member.salvaged(false, out);
  member.lack(0, out);
  member.lack(0, out);
  ASSERT_EQ(out.size(), 1u) << "asks once";
  const ControlMessage lack = out[0].message;
  out.clear();
  root.receive(1, lack, out);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(root.is_broken());
  root.salvaged(true, out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].message.kind, Kind::kBroken);
  EXPECT_EQ(out[1].kind, Action::Kind::kServeStored);
  EXPECT_EQ(out[1].to, 1);
}

}  // namespace
}  // namespace cepheus::coll
