// Serves a fabric's sockets on its own thread: peers that attach, and peers that send requests.
//
// It reads, checks and answers their messages, however many. Only changes to ports, links and
// counters run on the datapath's thread (task_queue.h), a little at a time. This thread waits for
// that one, never the reverse.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "switch-emulator/live/control/attach_server.h"
#include "switch-emulator/live/control/control_server.h"
#include "wire/types.h"

namespace cepheus::live {

// Limits how long a call may sleep because of a peer.
//
// Closing a peer's socket, or receiving a message from it, also closes descriptors that the peer
// sent along. A TCP socket among them that lingers (SO_LINGER) blocks the last process that closes
// it for the time that the peer chose. Listening sockets refuse descriptors if the kernel can
// (since Linux 6.16, SO_PASSRIGHTS); otherwise a signal wakes the thread.
//
// During this object's lifetime, sleeps of the constructing thread are interrupted every `longest`.
class SleepLimit {
 public:
  explicit SleepLimit(wire::Duration longest);
  ~SleepLimit();
  SleepLimit(const SleepLimit&) = delete;
  SleepLimit& operator=(const SleepLimit&) = delete;

 private:
  timer_t timer_{};
  bool is_set_ = false;
};

class ControlThread {
 public:
  struct Sockets {
    ListeningSocket attach, control;
    wire::Duration time_limit;  // limit for peers that connect to attach, and send nothing
  };
  // The datapath, its thread's poller and tasks, and `access` outlive this object. `answer` runs
  // on the control thread.
  static wire::Result<std::unique_ptr<ControlThread>> open(Sockets sockets, Datapath& datapath,
                                                           Poller& doorbells, TaskQueue& tasks,
                                                           const Access& access,
                                                           ControlServer::Answer answer);
  ~ControlThread();

  // Call it once: it serves from here on.
  wire::Result<void> start();
  // From another thread: runs `task` on this one, and waits for its end.
  template <typename Task>
  void run(Task&& task) {
    own_tasks_->run(std::forward<Task>(task));
  }
  // From the datapath's thread, after it has closed a port (AttachServer::on_closed).
  void on_closed(std::size_t host, std::uint64_t attachment);
  // On the control thread, as all below: opens the sockets to the users that `access` permits,
  // which is about to take effect.
  wire::Result<void> take_access(const Access& access);
  std::uint64_t refused_users() const {
    return attachments_.refused_users() + control_.refused_users();
  }
  wire::Result<void> kill(const std::string& host, pid_t pid) const {
    return attachments_.kill(host, pid);
  }
  void show_reservations(std::vector<SwitchStatus>& switches) const {
    attachments_.show_reservations(switches);
  }

 private:
  ControlThread(Sockets sockets, Poller poller, std::unique_ptr<TaskQueue> own_tasks,
                Datapath& datapath, Poller& doorbells, TaskQueue& tasks, const Access& access,
                ControlServer::Answer answer);
  void receive();
  void receive_once();
  wire::Duration time_left() const;
  void see_off();
  std::optional<SleepLimit> limit_close() const;

  Sockets sockets_;
  Poller poller_;
  std::unique_ptr<TaskQueue> own_tasks_;  // for the control thread
  TaskQueue& tasks_;                      // for the datapath's
  AttachServer attachments_;
  ControlServer control_;
  std::atomic<bool> stopping_{false}, has_ended_{false};
  std::thread thread_;
};

}  // namespace cepheus::live
