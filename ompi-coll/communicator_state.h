// coll/cepheus on one communicator: its broadcasts in the order of their calls, and the course that
// each takes, which its ranks' places decide.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ompi-coll/arrangement.h"
#include "ompi-coll/broadcast.h"
#include "ompi-coll/call_report.h"
#include "ompi-coll/hosts_broadcast.h"
#include "ompi-coll/multicast.h"

namespace cepheus::coll {

// Open MPI allocates modules with malloc, so this hangs off a pointer of the module.
class CommunicatorState {
 public:
  explicit CommunicatorState(ompi_communicator_t* comm);
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  // Before each broadcast, of `bytes`. False, on all ranks alike: the saved module shall serve it.
  bool may_serve(size_t bytes);
  static constexpr size_t kMany = ~size_t{0} / 2;
  // The saved module has served it alone. `began`: mcast_report_begin()'s; `bytes` from `root`.
  void count_saved(bool attended, uint64_t began, size_t bytes, int root);
  void count(const Broadcast& broadcast);

  // Serves a blocking broadcast of more than no bytes, or returns OMPI_ERR_NOT_AVAILABLE: the saved
  // module shall serve it, and count() be told.
  int serve(Broadcast& broadcast);
  // Starts a non-blocking one of more than no bytes, whose request is set; never blocks.
  void start(std::unique_ptr<Broadcast> broadcast);
  // Some are not complete.
  bool is_in_flight() const { return in_flight_.load(); }
  // What can be done for them now; whose requests are to be completed is added to `out`. Never
  // blocks.
  void advance(std::vector<Finished>& out);
  // Until none is in flight.
  void finish_started();

  // What must go on while the program is elsewhere in MPI: others may need what this rank has.
  // Never blocks; returns at once if another call is at it.
  void watch();
  // Another rank may need what this one has: watch() shall come soon. Runs anywhere.
  void call();
  // True once after a call().
  bool take_call();

  // All ranks that are members agree: groups were set up, so they are torn down together.
  bool has_groups() const { return multicast_ != nullptr && multicast_->has_groups(); }
  // No broadcast will follow. True once nobody needs the groups any more and they are gone; call
  // it, or watch(), until then. Never blocks.
  bool close();
  bool is_closing() const { return closing_.load(); }
  bool is_closed() const { return closed_.load(); }
  // Local, when it is closed: what is still posted on the communicator is taken back.
  void detach();
  // The program has freed the communicator: its object waits until the state is closed.
  bool is_freed() const { return freed_.load(); }
  void set_freed() { freed_ = true; }
  ompi_communicator_t* comm() const { return all_.comm(); }

 private:
  // Held for moments, by whoever works on this state; never waits for another.
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
  int step(Broadcast& broadcast);
  int choose_course(Broadcast& broadcast);
  // Of started_; false if none is started.
  bool take_incoming();
  bool is_earned(size_t bytes);
  bool is_time_to_look_again();
  void settle();
  void tell_unserved();
  void look_after();
  struct Times {
    uint64_t began;
    size_t bytes;
    int root;
  };
  void count(Route route, bool attended, const std::string& reason, const Times& times);

  const Placement& placement() const { return arrangement_.placement(); }
  bool is_unserved() const {
    return placement().shape == Placement::Shape::kOneHost ||
           placement().shape == Placement::Shape::kNone;
  }

  const Team all_;
  std::once_flag first_call_;
  Arrangement arrangement_;
  bool settled_ = false;  // the arrangement, and what follows from it
  // Setting up a group costs more than a few broadcasts gain. Every rank counts the same calls and
  // bytes until they are enough.
  std::atomic<bool> earned_{false};
  std::atomic<uint64_t> first_calls_{0}, first_bytes_{0};
  bool told_unserved_ = false;
  // Calls that the saved module has served since the last look at the ranks' places, and after how
  // many the next one comes. Every rank counts the same calls.
  std::atomic<uint64_t> saved_calls_{0};
  uint64_t look_again_after_ = 64;
  std::atomic<bool> alike_ = false;       // all ranks know it when they make their next call
  std::optional<Hosts> hosts_;            // Shape::kHosts
  std::unique_ptr<Multicast> multicast_;  // of all, or of the hosts' leaders
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::chrono::nanoseconds nap_{0};  // the course in hand can spare the caller for so long

  std::deque<std::unique_ptr<Broadcast>> started_;  // the first is being served
  std::mutex incoming_mutex_;
  std::vector<std::unique_ptr<Broadcast>> incoming_;
  std::atomic<bool> in_flight_{false};

  std::atomic<bool> called_{false};
  std::atomic<bool> closing_{false}, closed_{false}, freed_{false};
  std::mutex calls_mutex_;
  CallReport calls_;
};

}  // namespace cepheus::coll
