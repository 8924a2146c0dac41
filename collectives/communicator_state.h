// The collectives on one communicator in the order of their calls, and the algorithm of each. The
// ranks' places decide the algorithm.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/algorithms.h"
#include "collectives/broadcast.h"
#include "collectives/call_report.h"
#include "collectives/core/eligibility.h"
#include "collectives/group/host_discovery.h"
#include "collectives/reduction.h"
#include "collectives/safeguard.h"

namespace cepheus::coll {

class CommunicatorState {
 public:
  explicit CommunicatorState(host::Communicator& comm);

  // Before each broadcast, of `bytes`. False, on all ranks alike: the saved function shall serve it.
  bool may_serve(size_t bytes);
  // Before each reduction that has data or is a barrier: the same.
  bool may_serve(const ReductionShape& shape);
  // Before all of that, and before a look at the call's arguments: the saved function serves all calls
  // on this communicator, as all ranks know, and calls are not recorded. Then it counts this call.
  bool count_if_unserved(Collective collective, bool blocking);
  // Before each persistent request, which its starts will use in one order on all ranks.
  bool may_serve_request();
  // The saved function has served it alone. Without `why` the communicator's own reason is counted.
  void count_saved(bool blocking, const CallReport::Times& times, const std::string& why = "");
  void count_saved(const ReductionShape& shape, bool blocking, std::int64_t began,
                   const std::string& why = "");
  // ... after serve(): ends its turn.
  void count_saved(const Turn& turn);

  // Serves a blocking call that has data or is a barrier. Code::kNotServed: the caller has to use the
  // saved function, and then count_saved().
  Code serve(Turn& turn);
  // Starts a non-blocking call that has data or is a barrier; never blocks, except that a process's
  // first one waits until its device is open (Transport::open()).
  void start(Turn& turn);
  // Some are not complete.
  bool is_in_flight() const { return in_flight_.load(); }
  // Advances them. Adds the complete ones to `out`, for finish(). Never blocks.
  void advance(TurnQueue& out);
  // Its object stays until unpin(), which is the last access to it.
  void pin() { pins_.fetch_add(1); }
  void unpin() { pins_.fetch_sub(1); }
  bool is_pinned() const { return pins_.load() > 0; }
  // Tells their callers. Call it with nothing held.
  static void finish(TurnQueue& complete);
  // Broadcasts until none is in flight.
  void finish_started();

  // Background work while the program makes other calls of MPI: others may need this rank's data.
  // Never blocks. Returns at once if another thread is inside.
  void watch();
  // Another rank may need this rank's data: requests watch() soon. From any thread.
  void call();
  // True once after a call().
  bool take_call();

  // All ranks that are members agree: groups were set up, so they are torn down together.
  bool has_groups() const { return algorithms_.has_groups(); }
  bool has_ended_broadcasts() const { return algorithms_.has_ended_broadcasts(); }
  // No broadcast will follow. True once none is in flight, no rank needs the groups any more, and they
  // are destroyed.
  // Call it, or watch(), until then. Never blocks.
  bool close();
  bool is_closing() const { return has_reached(kClosing); }
  bool is_closed() const { return has_reached(kClosed); }
  // Local, when it is closed: cancels receives that are posted on the communicator.
  void detach();
  // The program has freed the communicator: its object waits until the state is closed.
  bool is_freed() const { return has_reached(kFreed); }
  void set_freed() { life_.fetch_or(kFreed); }
  host::Communicator& comm() const { return all_.comm(); }

 private:
  // kClosing: no broadcast follows, but other ranks may need this one. kFreed: the same, and the
  // program has freed the communicator. See README.md. A state's bits contain those of the states
  // before it, because two threads may advance it at once.
  enum Life : std::uint8_t { kLive = 0, kClosing = 1, kClosed = 3, kFreed = 5, kFreedClosed = 7 };
  bool has_reached(Life life) const { return (life_.load() & life) == life; }

  // Held for moments by the thread that works on this state. Never waits for another one.
  class Guard {
   public:
    explicit Guard(std::atomic_flag& busy) : busy_(busy), held_(!busy.test_and_set()) {}
    ~Guard() {
      if (held_) busy_.clear();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    explicit operator bool() const { return held_; }

   private:
    std::atomic_flag& busy_;
    const bool held_;
  };

  // Under the guard:
  Code step(Turn& turn);
  Code choose_algorithm(Turn& turn);
  Code begin(Broadcast& broadcast);
  Code begin(Reduction& reduction);
  Code begin_long(Reduction& reduction);
  Code choose_way(const SizeClass& sizes, Choice& choice);
  void end_turn(const Turn& turn, Code rc);
  // A call has failed on some rank: no receive may follow for messages that are under way.
  void retire_tags() {
    if (!std::exchange(has_retired_tags_, true)) host::retire_tags(comm());
  }
  // Moves incoming ones to started_. False if none is started.
  bool take_incoming();
  bool is_known_unserved();
  bool is_earned(Collective collective, size_t bytes);
  // The first calls of broadcasts, or of reductions, which earn groups of their own.
  FirstCalls& first_calls(Collective collective) {
    return collective == Collective::kBcast ? first_broadcasts_ : first_reductions_;
  }
  const FirstCalls& first_calls(Collective collective) const {
    return collective == Collective::kBcast ? first_broadcasts_ : first_reductions_;
  }
  bool may_serve(Collective collective, size_t bytes);
  bool is_look_due(const Turn& turn);
  void look_again();
  void place();
  void log_unserved();
  void look_after();
  void count(const CallReport::Kind& kind, Route route, const std::string& reason,
             const CallReport::Times& times);
  void count_saved(const CallReport::Kind& kind, const CallReport::Times& times,
                   const std::string& why);

  const Placement& placement() const { return host_discovery_.placement(); }
  bool is_unserved() const { return !placement().may_multicast(); }

  const Team all_;
  std::once_flag first_call_;
  HostDiscovery host_discovery_;
  bool is_placed_ = false;  // place() has run since the last look
  FirstCalls first_broadcasts_, first_reductions_;
  LookAgain look_again_;  // at the ranks' places
  bool is_logged_ = false;
  std::atomic<bool> alike_ = false;  // all ranks know it when they make their next call
  std::string unserved_reason_;      // of broadcasts from before the last look
  Algorithms algorithms_;
  Safeguard safeguard_;
  bool has_retired_tags_ = false;
  bool serves_ = false;  // a blocking call has its turn
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // the call in progress can spare the caller for this time
  std::chrono::nanoseconds sleep_{0};

  TurnQueue started_;  // the first is being served
  std::mutex incoming_mutex_;
  TurnQueue incoming_;
  std::atomic<bool> in_flight_{false};

  std::atomic<int> pins_{0};
  std::atomic<bool> called_{false};
  std::atomic<std::uint8_t> life_{kLive};
  std::mutex calls_mutex_;
  CallReport calls_;
};

}  // namespace cepheus::coll
