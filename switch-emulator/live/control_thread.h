// Whoever comes to a fabric's sockets is received here, on a thread of its own: those who attach,
// and those who ask.
//
// What they say is read, checked and answered here, however much it is; only what concerns ports,
// links and counters themselves is done on the datapath's thread (task_queue.h), a little at a
// time. This thread waits for that one, never the other way round.
#pragma once

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <thread>

#include "switch-emulator/live/attach_server.h"
#include "switch-emulator/live/control_server.h"
#include "wire/types.h"

namespace cepheus::live {

// Bounds how long a call may sleep over something that a peer has in hand.
//
// Closing a peer's socket, or taking a message from it, also lets go of descriptors that the peer
// sent along: a TCP socket among them that lingers (SO_LINGER) keeps whoever closes it last for as
// long as it was told to. Listening sockets refuse descriptors where the kernel can (since Linux
// 6.16, SO_PASSRIGHTS); elsewhere a signal wakes the sleeper.
// While it lives, sleeps of the constructing thread are interrupted every `longest`.
class CloseDeadline {
 public:
  explicit CloseDeadline(wire::Duration longest);
  ~CloseDeadline();
  CloseDeadline(const CloseDeadline&) = delete;
  CloseDeadline& operator=(const CloseDeadline&) = delete;

 private:
  timer_t timer_{};
  bool is_set_ = false;
};

class ControlThread {
 public:
  struct Sockets {
    ListeningSocket attach, control;
    wire::Duration time_limit;  // with who connects to attach, and says nothing
  };
  // The datapath, its thread's poller and tasks, and `access` outlive the control thread. `answer`
  // runs on the control thread.
  static wire::Result<std::unique_ptr<ControlThread>> open(Sockets sockets, Datapath& datapath,
                                                           Poller& doorbells, TaskQueue& tasks,
                                                           const Access& access,
                                                           ControlServer::Answer answer);
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // Once: receives from here on.
  wire::Result<void> start();
  // From another thread: has `task` run on this one, and waits for its end.
  template <typename Task>
  void run(Task&& task) {
    own_tasks_->run(std::forward<Task>(task));
  }
  // From the datapath's thread, which has closed a port (AttachServer::on_closed).
  void on_closed(std::size_t host, std::uint64_t attachment);
  // On the control thread, as all below: sockets open to whom `access`, which is about to be in
  // force, lets in.
  wire::Result<void> take_access(const Access& access);
  std::uint64_t refused_users() const {
    return attachments_.refused_users() + control_.refused_users();
  }
  wire::Result<void> kill(const std::string& host, pid_t pid) const {
    return attachments_.kill(host, pid);
  }
  void tell_reservations(std::vector<SwitchStatus>& switches) const {
    attachments_.tell_reservations(switches);
  }

 private:
  ControlThread(Sockets sockets, Poller poller, std::unique_ptr<TaskQueue> own_tasks,
                Datapath& datapath, Poller& doorbells, TaskQueue& tasks, const Access& access,
                ControlServer::Answer answer);
  void receive();
  void receive_once();
  wire::Duration time_left() const;
  void see_off();
  std::optional<CloseDeadline> limit_close() const;

  Sockets sockets_;
  Poller poller_;
  std::unique_ptr<TaskQueue> own_tasks_;  // of the control thread
  TaskQueue& tasks_;                      // of the datapath's
  AttachServer attachments_;
  ControlServer control_;
  std::atomic<bool> stopping_{false}, has_ended_{false};
  std::thread thread_;
};

}  // namespace cepheus::live
