// coll/cepheus on one communicator: which path its broadcasts take, and the module that serves them
// otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ompi-coll/backoff.h"
#include "ompi-coll/bulk_operation.h"
#include "ompi-coll/call_report.h"
#include "ompi-coll/control_link.h"
#include "ompi-coll/hierarchy.h"
#include "ompi-coll/ibcast.h"
#include "ompi-coll/session.h"
#include "ompi-coll/speed_guard.h"

namespace cepheus::coll {

// C++ state of a module. Open MPI allocates modules with malloc, so it hangs off a pointer.
class CommunicatorState {
 public:
  explicit CommunicatorState(ompi_communicator_t* comm);
  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  // Serves one broadcast of `bytes` > 0, or returns OMPI_ERR_NOT_AVAILABLE: the saved module shall
  // serve it from byte `done` of the packed payload on.
  int broadcast(Payload& payload, int root, size_t& done);

  // Starts a non-blocking one of more than no bytes; never blocks. OMPI_ERR_NOT_AVAILABLE, on all
  // ranks alike: the saved module shall serve it.
  int start(std::unique_ptr<Ibcast> ibcast, ompi_request_t** request);
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

  // Tear-down in two rounds, so that nobody leaves while another still waits for its
  // acknowledgement: all have drained -> rank 0 says so -> groups are destroyed. Never blocks; true
  // when done.
  bool tear_down();
  // All ranks agree: groups were set up, so they are torn down together.
  bool has_groups() const { return link_.is_open() || tear_down_ != TearDown::kNot; }
  // Others may lack what only this rank has.
  bool is_owing() const { return session_->agreement().is_broken(); }
  void destroy_groups();  // local only
  // While the communicator can communicate: frees those made below it.
  void free_hierarchy();
  ompi_communicator_t* comm() const { return comm_; }

 private:
  enum class TearDown : std::uint8_t { kNot, kDraining, kGathering, kReleasing, kDone };

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

  // Calls `step()` under the guard until it says OMPI_SUCCESS or an error, with progress in
  // between.
  template <typename Step>
  int drive(Step&& step);
  int flat_broadcast(Payload& payload, int root, size_t& done);
  void arrange();
  int run(const Call& call, bool small);
  void note_speed(const Call& call, const BulkOperation& operation);
  static bool is_small(const Payload& payload);
  static size_t unit_of(bool small);  // bytes
  uint64_t take_units(const Payload& payload);
  std::unique_ptr<Operation> make_operation(const Call& call, bool small);
  void count(const char* path, const std::string& reason);
  const char* declines(const Ibcast& ibcast) const;
  // Under the guard; OMPI_ERR_WOULD_BLOCK: call again.
  int set_up(Lane& lane);
  int try_again(uint64_t unit);
  int choose_path(Ibcast& ibcast);
  int step(Ibcast& ibcast);
  void note_end(const Ibcast& ibcast);
  // Under the guard:
  void look_after();
  void take(const Actions& actions);
  void receive();
  void serve_stored(int to, uint64_t unit);
  void announce(const ControlMessage& message);

  void report(const Lane& lane);
  std::uint64_t retry_after() const;
  [[noreturn]] void abort_job(const std::string& reason);

  ompi_communicator_t* comm_;
  // Whether each rank has a host of its own.
  enum class Shape : std::uint8_t {
    kUnknown,
    kFlat,
    kHierarchy,
    kOneHost
  } shape_ = Shape::kUnknown;
  std::unique_ptr<Hierarchy> hierarchy_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> next_session_;  // while multicast is tried again
  ControlLink link_;
  struct Held {
    int from;
    ControlMessage message;
  };
  std::vector<Held> held_;  // of a session that this rank has not entered yet
  Operation* current_ = nullptr;
  std::chrono::nanoseconds nap_{0};  // the operation in hand can spare the caller for so long
  Actions actions_;
  Messages repairs_;
  std::unique_ptr<EagerHeader> gone_;

  bool reported_ = false;
  std::atomic<std::uint64_t> call_number_{0};
  std::mutex calls_mutex_;
  CallReport calls_;
  std::atomic<std::uint64_t> next_unit_{0};  // counted alike by all ranks
  std::string without_[2];                   // why large, and small, ones have no lane

  std::deque<std::unique_ptr<Ibcast>> started_;  // the first is being served
  std::mutex incoming_mutex_;
  std::vector<std::unique_ptr<Ibcast>> incoming_;
  std::atomic<bool> in_flight_{false};

  SpeedGuard speed_;
  Backoff backoff_;
  std::chrono::steady_clock::time_point since_;  // of rate_units_
  std::uint64_t since_unit_ = 0;

  TearDown tear_down_ = TearDown::kNot;
  Messages messages_;
  std::unique_ptr<char[]> flags_;
};

// Sets up what is needed to tear groups down while messages still flow: attributes on
// communicators, and on MPI_COMM_SELF for those that are never freed.
int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state);
// From opal_progress: lets one communicator after the other do what it has to.
void progress_communicators();
// From opal_progress: what non-blocking broadcasts in flight can do now.
void progress_ibcasts();
// One more communicator has some, or one less.
void add_in_flight(int communicators);

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority);

}  // namespace cepheus::coll
