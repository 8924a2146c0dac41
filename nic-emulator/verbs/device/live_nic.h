// A NIC at work: the engine, its port on the fabric, one lock, and a thread for busy programs.
//
// Every call that gives the engine work sends all ready packets before it returns. While the
// program polls, poll() takes packets in. Otherwise the thread does, asleep on the port without
// work. Separate objects choose between both, and how each waits: drive_policy.h, timer_turn.h,
// switch-emulator/ports/wait_policy.h.
//
// Lock order: a process's device lock, then the NIC's, then a completion queue's, then a channel's
// or an asynchronous event queue's. Listeners are called under the NIC's lock and may take only the
// locks behind it.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nic-emulator/engine/nic.h"
#include "nic-emulator/engine/nic_profile.h"
#include "nic-emulator/verbs/datagram_sockets.h"
#include "nic-emulator/verbs/device/drive_policy.h"
#include "nic-emulator/verbs/device/fork_mutex.h"
#include "nic-emulator/verbs/device/readiness.h"
#include "nic-emulator/verbs/device/timer_turn.h"
#include "nic-emulator/verbs/engine_names.h"
#include "nic-emulator/verbs/queues/completion_queue.h"
#include "switch-emulator/ports/host_port.h"
#include "wire/clock.h"

namespace cepheus::verbs {

// A verbs object, for the events of it that the NIC finds.
class Listener {
 public:
  // Of a completion queue, its first overrun; of a port, once: the fabric is gone for ever.
  virtual void on_event(ibv_event_type type) = 0;
  // The process is the child of a fork(). There, locks of other threads stay locked for ever, and
  // descriptors are shared with the parent.
  virtual void on_forked() {}

 protected:
  ~Listener() = default;
};

// Verbs objects of a NIC that the engine does not know.
struct ObjectCounts {
  std::atomic<int> domains{0}, queues{0}, handles{0};
};

class LiveNic {
 public:
  // Errors: kUnavailable (no descriptor or no thread).
  static wire::Result<std::unique_ptr<LiveNic>> start(
      std::unique_ptr<fabric::HostPort> port,
      const std::optional<rnic::CongestionConfig>& congestion = {},
      const rnic::NicProfile& profile = rnic::nic_profiles().front());
  ~LiveNic();

  const fabric::HostIdentity& identity() const { return identity_; }
  const NicConfig& config() const { return engine_.config(); }
  // False once the fabric is gone: packets are lost, and QPs fail by their own time-outs.
  bool is_up() const { return up_.load(std::memory_order_relaxed); }
  // True in the child of a fork: the port is the parent's, and this NIC sends and receives nothing.
  bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }

  void add_listener(Listener& listener);
  void remove_listener(Listener& listener);
  CqId add_queue(CompletionQueue& queue, Listener& listener);
  void remove_queue(CqId id);
  void add_qp(Qpn qpn, Listener& listener);
  void remove_qp(Qpn qpn);
  void add_srq(SrqId srq, Listener& listener);
  void remove_srq(SrqId srq);

  // Runs `work(engine, now, actions)` under the lock, then sends and delivers its results. If there
  // were packets to send, it also takes arrived ones in.
  template <typename Work>
  auto run(Work&& work);
  // The same for work after which a queue pair receives nothing.
  template <typename Work>
  auto run_last(Work&& work) {
    finish_received();
    return run(std::forward<Work>(work));
  }
  // Drives the NIC from the program's own thread; for calls that found nothing to return.
  void poll();
  // Before a queue pair, the port or the program ends: takes in packets that have arrived, and sends
  // their acknowledgements. A hardware NIC has done so already. A full ring delays that by 0.1 s at
  // most, and once until something is sent again.
  void finish_received();
  // A completion queue has been armed: the thread must not wait for the program to poll.
  void on_armed();
  std::atomic<int>& armed_queues() { return armed_queues_; }
  ObjectCounts& objects() { return objects_; }

  // UDP datagrams (datagram.h). open: null if the port is taken. send: kInvalid (too long), kAgain
  // (no space).
  DatagramSocket* open_socket(std::uint16_t port, std::uint16_t from_port = 0,
                              std::uint8_t tos = 0);
  void close_socket(DatagramSocket* socket);
  wire::Result<void> send_datagram(const DatagramSocket& socket, Ipv4 to, std::uint16_t to_port,
                                   std::span<const std::uint8_t> data);
  // Drives the NIC, then passes the oldest datagram to `sink(const Datagram&)`; false: none.
  template <typename Sink>
  bool receive_datagram(DatagramSocket& socket, Sink&& sink);

  // "name value\n" for each counter, engine's and driver's, and rate and alpha of each QP that
  // congestion control has slowed down; `described`: for users, without zeros, and counters of the
  // engine with a description.
  std::string counters_text(bool described = false);

  // Around fork(): waits until no other thread is in the middle of a change. `held`: InnerLocks at
  // fork(). False: the calling thread itself is in the middle of a change, and a signal handler
  // called fork(); nothing is to be unlocked.
  bool lock_for_fork(int held) { return mutex_.lock_for_fork(held); }
  void unlock_after_fork() { mutex_.unlock(); }
  // In the child. `is_whole`: the result of lock_for_fork(). Without it the thread may continue its
  // change, which reaches nothing of the parent's.
  void abandon(bool is_whole);

 private:
  // Frames taken in before answers are sent: enough to share one doorbell, few enough to keep ACKs
  // prompt.
  static constexpr std::size_t kReceiveBatch = 64;
  // Packets without space or payload buffer are sent again after this time, unless the thread wakes
  // before.
  static constexpr Duration kRetryTransmit = std::chrono::milliseconds(1);

  struct Queue {
    CompletionQueue* queue = nullptr;
    Listener* listener = nullptr;
  };
  struct Counters {
    std::uint64_t tx_lost_no_fabric = 0;  // sent after the fabric had gone
    std::uint64_t completions_lost = 0;   // completion queue full
  };

  LiveNic(std::unique_ptr<fabric::HostPort> port,
          const std::optional<rnic::CongestionConfig>& congestion, const rnic::NicProfile& profile,
          Readiness kick);

  // All members below are under mutex_.
  std::size_t progress(Instant now);  // returns frames taken; fewer than a batch: all
  std::size_t receive(Instant now);
  void transmit(Instant now);
  void deliver();
  void deliver_completion(const Completion& completion);
  void deliver_event(const AsyncEvent& event);
  void check_fabric();
  void check_fabric_sometimes(Instant now);
  void take_down();
  void flush_output(Instant now);

  // The driver of the engine. It may sleep on the port, which has one sleeper at a time.
  enum class Driver : std::uint8_t {
    kNone,          // there is no thread, or it shall end
    kThread,        // the thread is awake, or sleeps without the port
    kThreadOnPort,  // it sleeps until a packet comes
    kProgram,       // the program polls: the thread looks on now and then
    kProgramOnPort  // the program sleeps until a packet comes, and then polls
  };

  // The thread (nic_thread.cc).
  wire::Result<void> start_thread();
  static void* thread_entry(void* self);
  void thread_loop();
  void fail(std::string_view why);
  void defer_to_program(Duration duration);
  void pass(Driver from, Driver to);
  // Waiting of a polling program (waiting.cc).
  void on_sent(Instant now);
  void rest(Instant now, bool amid_message);
  bool sleep_on_port(fabric::HostPort::WaitFor what);
  void sleep_until(Instant wake, bool on_port);
  void wake_up(bool on_port);
  void kick();
  void clear_kick();

  std::unique_ptr<fabric::HostPort> port_;
  const fabric::HostIdentity identity_;
  Nic engine_;
  DatagramSockets sockets_;
  ForkMutex mutex_{true};
  NicOutput actions_;
  std::vector<Queue> queues_;  // by CqId
  std::unordered_map<Qpn, Listener*> qps_;
  std::unordered_map<SrqId, Listener*> srqs_;
  std::vector<Listener*> listeners_;
  std::vector<std::uint8_t> void_;  // payload buffer for discarded packets
  Counters counters_;
  bool waited_in_vain_ = false;  // finish_received(), since the last packet was sent
  std::atomic<bool> up_{true};
  std::atomic<bool> abandoned_{false};

  Readiness kick_;
  pthread_t thread_{};
  // Under mutex_:
  DrivePolicy drive_;
  TimerTurn timers_;
  bool is_kicked_ = false;                 // the thread
  Instant thread_wakes_ = Instant::min();  // min: it is awake
  std::uint64_t delivered_ = 0;            // completions, of all time
  Instant fabric_check_{};                 // time of the program's next check of the fabric

  // Written under mutex_, once the thread runs. The thread writes driver_ and then reads
  // armed_queues_. An arming program writes armed_queues_ and then reads driver_. So the program
  // kicks a thread that has left it the NIC, or the thread sees the armed queue.
  std::atomic<Driver> driver_{Driver::kNone};
  std::atomic<int> armed_queues_{0};
  ObjectCounts objects_;
};

template <typename Work>
auto LiveNic::run(Work&& work) {
  const std::scoped_lock lock(mutex_);
  const Instant now = wire::monotonic_now();
  auto result = work(engine_, now, actions_);
  const bool sends = engine_.wants_to_transmit();
  flush_output(now);
  if (sends) on_sent(now);
  return result;
}

template <typename Sink>
bool LiveNic::receive_datagram(DatagramSocket& socket, Sink&& sink) {
  poll();
  const std::scoped_lock lock(mutex_);
  const Datagram* datagram = socket.front();
  if (datagram == nullptr) return false;
  sink(*datagram);
  socket.pop();
  return true;
}

}  // namespace cepheus::verbs
