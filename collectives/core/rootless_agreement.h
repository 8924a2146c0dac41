// The members of a team agree, after a failure of their reducing group, on the calls that this
// group has served: Barrier, Allreduce, Reduce and Allgather, which have no root that could decide.
// Pure: events and messages come in, one output struct goes out.
//
// A *call* is one collective of the program. Its *units* are consecutive packets of the group. All
// members count calls alike for ever, and units alike within a group. Groups that follow each other
// have generations. A member gets results in the order of units.
//
// A result proves that all members have contributed, so all have begun its call. Therefore the
// member with the most results decides for all:
//
//   a unit that is complete at some member   its result is final. A member that lacks it gets it from a
//                                            member that has all of them, bit by bit
//   a unit that is complete nowhere          all members compute it again without the group (kSaved), and
//                                            the units and calls behind it. So a call may have its first
//                                            units of the group, and the others of messages
//
//              fail() or FAILED            drained()
//     kWhole ------------------> kStopping ---------> kStopped
//       ^                                              |    |
//       | renew()           DECISION, it has all       |    | DECISION, it lacks some
//       |             +--------------------------------+    v
//     kNoGroup <------+------------------------------- kCopying
//     (initial)              it has the last one
//
//   FAILED(reason)                first member that finds it -> member 0 -> all: stop
//   STATUS(units, calls)          each -> member 0, once its group is drained: no result counts later
//   DECISION(units, calls, retry, member 0 -> each, once it has every STATUS
//            holder, requests)
//   LACK(first, end)              a member without these units -> its holder, which sends their bits,
//                                 then served()
//   GONE                          the holder does not keep them: the member sends ENDED
//   WAITING(unit, contributed) -> HAS(unit)    see watch()
//   ENDED(member)                 to all others, also to that member: it can't be reached, or a result
//                                 is gone. All calls that are not complete end in an error, also
//                                 those on path kSaved
//   ENDED(refusal)                ... and the sender takes no part in a call that confirms the ranks'
//                                 agreement (Choice::confirms). So no member completes that call. Only
//                                 this ENDED is also sent behind another one
//
// Bounds
//   Results kept    the last `window` ones at each member, also those of calls that have returned. A
//                   member contributes to unit k only once it has result k - W (the credit of a
//                   group of window W), so no member lacks an older one. If results come as whole
//                   operations of up to P units, P - 1 of those that a member has are unseen, and
//                   it may lack W + P - 1. They go once the last LACK is served.
//   Inputs          a unit's input is not overwritten before its result is complete here: it is the
//                   input if the unit is computed again. A device may write a result, and its completion
//                   may be flushed. So a unit in place needs other memory for its result.
//   Messages        about 5 for each member and failure, of which member 0 sends or gets 4. A member
//                   that can't reach another one sends ENDED to all: up to N squared messages.
//   Memory          a Status for each member at member 0, and three early messages for each.
//   Time            none: a member outside MPI delays the decision until it is back.
//
// What the port does, and does not
//   kSaved          MPI matches collectives by the order in which each rank starts them, and members
//                   reach kSaved at different times. So the port uses messages of its own, for the units
//                   from first_unit() on. It ends such a call in an error once path() is kError.
//   ENDED           A member that is outside MPI, and has the call's result, has returned already:
//                   then one call ends in success at some members and in an error at others.
//   ENDED, STATUS   If member 0 dies before it has sent DECISION to all, or a member before it has
//   and LACK        asked its holder, another one that has no call under way waits for it at the
//                   communicator's end, until the launcher ends the job.
//
// Source: the flush of virtual synchrony (Birman and Joseph, 1987). Before a group's members change,
// each gets the messages that any of them has got.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/agreement.h"

namespace cepheus::coll {

// Travels as it is: all ranks run the same build.
struct RootlessMessage {
  enum class Kind : std::uint32_t {
    kFailed = 1,
    kStatus,
    kDecision,
    kLack,
    kGone,
    kWaiting,
    kHas,
    kEnded,
    kClosed,  // this and the next ones are the port's, for the communicator's end
    kRelease,
    kReleased
  };
  Kind kind;
  std::uint32_t generation;
  // kStatus: results here; kDecision: final ones; kLack: first; kWaiting, kHas: unit.
  std::uint64_t units;
  // kStatus: of complete calls; kLack: final ones; kWaiting: units that the sender has contributed to.
  std::uint64_t complete;
  std::uint64_t calls;       // kStatus, kDecision: complete ones
  std::uint64_t retry_at;    // kDecision: the call at which all try to set up the next group
  std::int32_t member;       // kDecision: the holder; kEnded: the lost one
  std::uint32_t requests;    // kDecision: LACKs that the receiver will serve
  std::uint32_t is_refusal;  // kEnded
  std::uint32_t is_ended;    // kRelease: a member has given up
  std::uint32_t has_groups;  // the port's: some member may have had a group
  Cause cause;
  char reason[180];  // of the failure, naming the member that detected it
};
const char* name(RootlessMessage::Kind kind);  // "FAILED"

struct RootlessOutput {
  struct Send {
    int to;
    RootlessMessage message;
  };
  struct Serve {  // send these results, as they came from the group; then served()
    int to;
    std::uint64_t first, end;  // units
  };
  std::vector<Send> sends;
  std::vector<Serve> serves;
  bool stops = false;     // stop the group, take what has arrived, then drained()
  bool releases = false;  // no member needs the kept results any more
};

class RootlessAgreement {
 public:
  // What a member does about a call.
  enum class Path : std::uint8_t {
    kSetUp,    // once the calls before it are over: set up the next group with all members
    kNetwork,  // contribute, and wait for its results
    kWait,     // the group has failed, and its fate is not known
    kDone,     // all its results are here
    // Once the calls before it are over: bring the inputs from unit first_unit() on together by own
    // messages, and reduce them in the order of the group's reductions. The host's MPI_Allreduce may have
    // another order.
    kSaved,
    kError  // of reason()
  };
  enum class Stage : std::uint8_t { kNoGroup, kWhole, kStopping, kStopped, kCopying };
  using Time = std::chrono::steady_clock::time_point;
  // A waiting member sends WAITING after kRequest, and again after kRequestAgain. Without an answer
  // that time doubles up to kRequestSeldom.
  static constexpr std::chrono::milliseconds kRequest{4000}, kRequestAgain{2000},
      kRequestSeldom{64000};
  static constexpr std::uint8_t kSilent = 3;
  static constexpr int kMostRequested = 16;  // members at a time

  // `window`: of the groups, in units, and P - 1 more.
  RootlessAgreement(int member, int size, std::uint32_t window);

  // --- The program's calls: the number of the next one.
  std::uint64_t start() { return started_++; }

  // --- The groups. A call on path kSetUp has led to a new group, or to none: then it takes path
  // kSaved, and all try again at call `retry_at`.
  void renew(std::uint64_t call, RootlessOutput& out);
  void refuse(std::uint64_t retry_at) { retry_at_ = retry_at; }
  // The next unit's result is complete here: from the group, or copied from the holder.
  void take_result(bool ends_call, RootlessOutput& out);
  // A result of an operation has arrived, and the operation is not complete. Once it is complete,
  // take_result() follows for this result.
  void see_result();
  // This member's end of the group has failed.
  void fail(Cause cause, const std::string& reason, RootlessOutput& out);
  // The group is stopped, and all arrived results were taken. None is taken from it any more.
  void drained(RootlessOutput& out);
  // The sends of one entry of `serves` are complete, or have failed. Comes before renew().
  void served(RootlessOutput& out);

  // --- The members.
  void receive(int from, const RootlessMessage& message, RootlessOutput& out);
  // The host reports that `member` can't be reached any more: at any time, also during a set-up or
  // on path kSaved.
  void lose(int member, RootlessOutput& out);
  // This member can't go on, for `reason`. Other members may still copy results from it.
  void give_up(const std::string& reason, bool is_refusal, RootlessOutput& out);
  // The time goes by; call now and then. A fabric may acknowledge a result and lose it. Its group
  // shows no failure then, and a member would wait for ever. So a waiting member sends WAITING(unit)
  // to member 0, and a waiting member 0 sends it to the others in turn. A member with the result
  // answers HAS. After two such answers in a row the unit is lost, and the group has failed. The
  // second request is sent after the first answer, because the NIC may be about to hand over the
  // result.
  //
  // A result may reach no member: its fabric lost it everywhere, or lost a contribution that it had
  // acknowledged. Then no member answers. It is lost once member 0 has kSilent WAITINGs from each
  // member, all of which have contributed to it.
  void watch(Time now, RootlessOutput& out);
  // This member has contributed to these units of the group, without gaps.
  void contribute(std::uint64_t units) { contributed_ = units; }
  // No call follows, and none is in flight. This member lacks nothing, so it finds no failure any
  // more. Other members may find one, and need this member until is_finished() on all members.
  void close() { is_closed_ = true; }
  // Member 0: if it decides, all try again after this number of calls, at least 1.
  void set_retry_after(std::uint64_t calls) { retry_after_ = calls; }

  // --- Questions.
  Path path(std::uint64_t call) const;
  // On path kSaved: the units of the call before this one have final results, which this member has.
  std::uint64_t first_unit(std::uint64_t call) const;
  Stage stage() const { return stage_; }
  std::uint32_t generation() const { return generation_; }
  std::uint64_t units() const { return units_; }  // results of this group
  // Results from this unit on must be kept.
  std::uint64_t first_kept() const;
  // On stage kCopying: the member that sends results, from units() to copied_units().
  int holder() const { return holder_; }
  std::uint64_t copied_units() const { return decided_units_; }
  // This member can't go on, or can't leave, without `member`, or may be so.
  bool awaits(int member) const;
  // A member has given up, for reason(): calls that are not complete end in errors.
  bool is_ended() const { return is_ended_; }
  // ... by a refusal.
  bool is_refused() const { return is_refused_; }
  // Nothing is undecided here, and no LACK is left to serve. If the group is whole, a failure may
  // still come: a member leaves once all members are finished.
  bool is_finished() const;
  Cause cause() const { return cause_; }
  const std::string& reason() const { return reason_; }

 private:
  struct Status {
    std::uint64_t units, complete, calls;
  };
  struct Early {
    int from;
    RootlessMessage message;
  };

  bool decides() const { return member_ == 0; }
  RootlessMessage message(RootlessMessage::Kind kind, std::uint64_t units = 0,
                          std::uint64_t complete = 0) const;
  void send_to_others(const RootlessMessage& message, int except, RootlessOutput& out) const;
  void stop(Cause cause, const std::string& reason, RootlessOutput& out);
  void report(RootlessOutput& out);
  void take_failed(int from, const RootlessMessage& message, RootlessOutput& out);
  void take_status(int from, const Status& status, RootlessOutput& out);
  void decide(RootlessOutput& out);
  void take_decision(const RootlessMessage& decision, RootlessOutput& out);
  void serve(int to, const RootlessMessage& lack, RootlessOutput& out);
  void release_if_served(RootlessOutput& out);
  void take_waiting(const RootlessMessage& message, int from, RootlessOutput& out);
  void take_has(const RootlessMessage& message, int from, RootlessOutput& out);
  void give_up(int member, const std::string& reason, RootlessOutput& out);
  void end(int member, const std::string& reason, RootlessOutput& out);
  void take_ended(const RootlessMessage& message, RootlessOutput& out);
  void request(RootlessOutput& out);
  void forget_requests();

  const int member_, size_;
  const std::uint32_t window_;

  std::uint64_t started_ = 0;  // calls
  Stage stage_ = Stage::kNoGroup;
  std::uint32_t generation_ = 0;   // of the group, or of the last one
  std::uint64_t calls_ = 0;        // the first one that is not complete by groups
  std::uint64_t units_ = 0;        // results
  std::uint64_t seen_ = 0;         // ... and those of an operation that is not complete
  std::uint64_t contributed_ = 0;  // units
  std::uint64_t complete_ = 0;     // units of complete calls
  std::uint64_t retry_at_ = 0;     // call; if there is no group
  std::uint64_t retry_after_ = 1;
  Cause cause_ = Cause::kWork;
  std::string reason_;
  bool is_ended_ = false;  // in an error
  bool is_refused_ = false;
  bool is_closed_ = false;

  std::vector<std::optional<Status>> statuses_;  // member 0's, by member
  std::uint64_t decided_units_ = 0;
  int holder_ = 0;
  std::optional<std::uint32_t> requests_;  // that this member serves, once that is decided
  std::uint32_t served_ = 0;
  std::vector<Early> early_;  // of the next group, which this member has not yet

  std::optional<Time> request_at_;  // WAITING is due; else in request_in_ from now on
  std::chrono::milliseconds request_in_ = kRequest, request_again_in_ = kRequestAgain;
  bool requested_since_ = false;        // WAITING was sent after the last answer
  int answers_ = 0;                     // that count
  int next_requested_ = 1;              // member 0: to which WAITING goes next...
  int requested_at_once_ = 1;           // ... and to how many
  std::vector<std::uint8_t> waitings_;  // member 0's, by member: for the unit that it waits for
};

}  // namespace cepheus::coll
