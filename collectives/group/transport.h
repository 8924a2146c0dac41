// The process's access to groups: libmcast's context, or UCX's rc_mcast if the user chooses it.
// Opened at first need.
//
// UCT objects are single-threaded: every call on a channel, and every callback from one, runs under
// mutex(). No call of the host happens with the mutex held, so it is never held across its
// progress.
#pragma once

#include <mcast/mcast.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/core/silence.h"
#include "collectives/group/clock.h"
#include "collectives/group/uct_domain.h"

namespace cepheus::coll {

class Transport {
 public:
  static Transport& instance();

  // MCAST_OK, or the reason why this process can't multicast, with the remedy in the text. The
  // outcome of the first call stays, unless `again`. A port that went down is opened anew once no
  // group uses it except the caller's next one, which the caller has added. The first call waits
  // for the opening. Later ones start a thread for it, and return MCAST_ERR_AGAIN until it ends.
  mcast_status_t open(std::string& why, bool again);
  // This host's address in groups, in host byte order; 0: unknown.
  uint32_t host_address();
  // Groups in being; from before their creation to after their destruction.
  void add_group() { groups_.fetch_add(1); }
  void remove_group() { groups_.fetch_sub(1); }
  int groups() const { return groups_.load(); }
  // Frees the objects of open(). Lanes must be gone.
  void close();

  mcast_context_h context() const { return context_; }
  // Bytes registered with the device; 0 while it is not open.
  std::uint64_t registered_bytes();
  std::mutex& mutex() { return mutex_; }

  // A member of a new group; see DirectChannel::open(). Call under mutex(). Null: mcast_last_error()
  // has the reason.
  std::unique_ptr<Channel> open_channel(const mcast_group_params_t& params,
                                        Channel::Arrival arrival, void* arg,
                                        mcast_status_t& status);

  // Registrations that this process leads, of all its communicators. The reason why none shall begin
  // now, because no switch has answered one lately; empty: begin.
  std::string why_not_register();
  // One of `members` members that began at `began` has ended. `why_unanswered`: no other member has
  // answered it; empty: one has, or a switch.
  void end_registration(Clock::time_point began, std::uint32_t members,
                        const std::string& why_unanswered);
  void forget_registrations();

  // Progress of all groups; 0 at once if another thread is at it.
  unsigned progress();

 private:
  struct Opened {
    mcast_status_t status = MCAST_ERR_NO_DEVICE;
    mcast_context_h context = nullptr;
    std::unique_ptr<UctDomain> uct;  // it has the context; null: the caller has it
    std::string why;
  };

  Transport() = default;
  // A program that exits without MPI_Finalize may have threads that use the context.
  ~Transport() { (void)uct_.release(); }
  static Opened open_context();
  static void open_carrier(Opened& opened, const mcast_context_params_t& params);

  std::mutex open_mutex_;
  bool tried_ = false;
  std::future<Opened> opening_;  // valid: a thread is at it, or its outcome was not looked at yet
  mcast_status_t outcome_ = MCAST_ERR_NO_DEVICE;
  std::string why_;

  std::mutex registrations_mutex_;
  Silence silence_;

  std::mutex mutex_;
  mcast_context_h context_ = nullptr;
  std::unique_ptr<UctDomain> uct_;  // null: libmcast directly
  std::atomic<int> groups_{0};
};

}  // namespace cepheus::coll
