// In mode "try" a size class gives the network up if that is slower than the other way by more than
// a threshold. The safeguard compares both ways for each size class of a communicator's calls, and
// chooses the way of the next one (core/comparison.h; core/judge.h, core/reduction_judge.h).
//
//   call                                       the other way
//   blocking broadcast, barrier or allgather   the saved function
//   non-blocking broadcast                     down a tree of our own messages
//   any other                                  our own messages, reduced in pairs by rank
//
// So no choice changes the bits of a result (may_be_saved() of core/collective.h).
//
// If the network can't serve a reduction, our messages do. Where they are not the other way, their
// times count as the network's: the saved function may be faster than they are, too.
//
// At the end of a plan the ranks' times go up a tree to rank 0, and its plan goes down. A rank
// continues once it has the plan. So all ranks follow it from the same call on, blocking or not. No
// other call costs a message.
//
// MPI's messages may fail at one rank, if the program has asked for errors. That rank sends one failure
// to each of its neighbours in the tree, in the place of its next message, and they do the same. From
// then on no ranks agree any more:
//
//   broadcasts   each class keeps its way
//   reductions   the one behind the agreement ends in errors on all ranks (Choice::confirms): the rank
//                that has failed refuses it, and no rank can complete it alone. So all ranks know of the
//                failure, though only some have the plan. No later one goes to the saved function
//
// MPI's messages may also fail within a reduction, after all ranks have agreed. Then some ranks may have
// completed it, and follow the plan, perhaps into the saved function. So the others do that, too: they
// know that no rank has refused it (Algorithm::is_refused). Such a failure is final for reductions in
// the network, and no further plan could be confirmed. So a rank that has met it fails the next agreement.
//
// If a rank refuses the reduction and another one's messages fail in it, ranks may learn of the second
// failure first, and follow the plan until the next agreement.
//
// Failures may stay under way for ever, so the communicator's tags are not used again
// (host::retire_tags).
//
// All calls are under the communicator's guard and never block.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "collectives/core/code.h"
#include "collectives/core/comparison.h"
#include "collectives/core/judge.h"
#include "collectives/core/reduction_judge.h"
#include "collectives/group/messages.h"

namespace cepheus::coll {

class Safeguard {
 public:
  // `team`: all ranks of the communicator.
  explicit Safeguard(const Team& team) : team_(team) {}

  // The way of the next call, which is of `sizes`, in the order of their turns. Code::kPending: call
  // again. An error is a broadcast's; a reduction's is in the choice.
  Code choose(const SizeClass& sizes, Choice& choice);
  // The next call of `sizes` waits for an agreement.
  bool is_agreement_due(const SizeClass& sizes) const;
  // The reason why the last chosen call takes Way::kOther.
  const std::string& reason() const;
  // That call has ended by `route`; without a route: it has no time. Ignored without a choice before.
  void end(std::optional<Route> route);
  // ... in an error, and perhaps not all ranks have begun it. `is_refused`: see Algorithm.
  void fail(bool is_refused);
  // Failures between the ranks may be under way.
  bool has_failed() const { return has_failed_; }

  // No call follows: cancels the receives that are posted on the communicator.
  void forget() {
    incoming_.forget();
    outgoing_.forget();
  }

  // The leader's plan.
  struct Judgement {
    SizeClass sizes;
    Way way;
    std::int64_t network_ns, other_ns;
    std::uint32_t comparisons;
    bool by_messages;  // in the place of the network
    bool is_broadcast() const { return sizes.collective == Collective::kBcast; }
    const char* network() const {
      return is_broadcast() ? "multicast" : by_messages ? "messages" : "network";
    }
    const char* other_way() const {
      if (may_be_saved(sizes.collective, sizes.blocking)) return host::implementation();
      return is_broadcast() ? "point to point" : "messages";
    }
  };
  // The last one, once.
  std::optional<Judgement> take_judgement() { return std::exchange(judgement_, std::nullopt); }

 private:
  enum class Step : std::uint8_t { kIdle, kGather, kWait };
  struct Compared {
    explicit Compared(const SizeClass& sizes);
    std::variant<Judge, ReductionJudge> judge;  // the leader's
    Comparison comparison;
    bool by_messages = false;  // the last timed call that was to be the network's
  };

  using Class = std::pair<const SizeClass, Compared>;

  Class& of(const SizeClass& sizes);
  bool is_confirmed_by_messages(const SizeClass& sizes) const;
  Code agree(Class& sizes);
  Code listen();
  Code report(Class& sizes);
  Code end_agreement(Class& sizes, Code rc);
  void send_failure();
  void judge(Class& sizes, const Times& times);
  void log_change() const;
  Code send_plan();

  const Team& team_;
  std::map<SizeClass, Compared> classes_;
  Class* current_ = nullptr;  // of the call chosen last, until its end
  Comparison::Turn turn_{};
  bool confirms_ = false;  // that call: see Choice
  std::chrono::steady_clock::time_point began_;

  Step step_ = Step::kIdle;
  bool has_failed_ = false;      // no agreement follows
  bool fails_next_ = false;      // the next agreement, because a reduction has failed at this rank
  bool is_notified_ = false;     // of a failure, by a message of this agreement
  std::vector<Times> received_;  // from the ranks below
  Plan plan_{};
  Messages incoming_, outgoing_;
  std::optional<Judgement> judgement_;
};

}  // namespace cepheus::coll
