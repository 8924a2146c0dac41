// A loop: wait, dispatch, expire silent peers, serve requests, rest. The thread has nice value
// kNice and rests kRest times as long as it worked, up to kLongestRest: packets come first.
//
// At the end peers have kFlushTime to read their answers; then all sockets are closed here. The
// destructor serves this thread's last tasks meanwhile. An exception ends the fabric: it is thrown
// again on the datapath's thread.
#include "switch-emulator/live/control/control_thread.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <system_error>

#include "wire/clock.h"
#include "wire/leave_signals.h"

namespace cepheus::live {
namespace {

// Time limit for calls that depend on a peer (control_thread.h).
constexpr wire::Duration kLongestClose = std::chrono::milliseconds(10);
// Packets go first when cores are scarce. A peer that sends requests without end gets a tenth of a
// program's time; occasional requests hardly wait (sched(7), "The nice value").
constexpr int kNice = 10;
// ... and rests for this multiple of its working time, because every moment on a core is taken from
// another thread. Occasional requests never meet it at rest.
constexpr int kRest = 9;
constexpr wire::Duration kLongestRest = std::chrono::milliseconds(20);
// At the end: time for peers to read their answers.
constexpr wire::Duration kFlushTime = std::chrono::seconds(1);

}  // namespace

wire::Result<std::unique_ptr<ControlThread>> ControlThread::open(
    Sockets sockets, Datapath& datapath, Poller& doorbells, TaskQueue& tasks, const Access& access,
    ControlServer::Answer answer) {
  auto poller = Poller::create();
  if (!poller) return tl::unexpected(poller.error());
  auto own_tasks = TaskQueue::create();
  if (!own_tasks) return tl::unexpected(own_tasks.error());
  std::unique_ptr<ControlThread> control_thread(
      new ControlThread(std::move(sockets), std::move(*poller), std::move(*own_tasks), datapath,
                        doorbells, tasks, access, std::move(answer)));
  return control_thread;
}

ControlThread::ControlThread(Sockets sockets, Poller poller, std::unique_ptr<TaskQueue> own_tasks,
                             Datapath& datapath, Poller& doorbells, TaskQueue& tasks,
                             const Access& access, ControlServer::Answer answer)
    : sockets_(std::move(sockets)),
      poller_(std::move(poller)),
      own_tasks_(std::move(own_tasks)),
      tasks_(tasks),
      attachments_(poller_, datapath, doorbells, tasks, sockets_.attach, access,
                   sockets_.time_limit),
      control_(poller_, sockets_.control, access, std::move(answer)) {}

wire::Result<void> ControlThread::start() {
  const bool is_watching = poller_.watch(own_tasks_->fd(), Poller::kIn,
                                         [this](std::uint32_t) { own_tasks_->serve(); }) &&
                           attachments_.start() && control_.start();
  if (!is_watching) {
    return wire::call_failed("can't watch the fabric's sockets");
  }
  try {
    const wire::LeaveSignals leave;  // to the serving thread
    thread_ = std::thread([this] { receive(); });
  } catch (const std::system_error& error) {
    return wire::unavailable(std::string("can't start a thread: ") + error.what());
  }
  return {};
}

// Runs on the datapath's thread, or on the fabric's creator if it never served: the control
// thread's remaining tasks run there.
ControlThread::~ControlThread() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  own_tasks_->nudge();
  while (!has_ended_.load()) {
    pollfd wanted{tasks_.fd(), POLLIN, 0};
    poll(&wanted, 1, -1);
    try {
      tasks_.serve();
    } catch (const std::exception&) {  // the control thread's, at the fabric's end
    }
  }
  thread_.join();
}

void ControlThread::on_closed(std::size_t host, std::uint64_t attachment) {
  own_tasks_->post([this, host, attachment] { attachments_.on_closed(host, attachment); });
}

wire::Result<void> ControlThread::take_access(const Access& access) {
  for (ListeningSocket* socket : {&sockets_.attach, &sockets_.control}) {
    if (auto done = socket->set_mode(access.socket_mode()); !done) return done;
  }
  return {};
}

void ControlThread::receive() {
  pthread_setname_np(pthread_self(), "cepheus-control");
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  try {
    while (!stopping_.load()) receive_once();
    see_off();
  } catch (const std::exception&) {  // the kernel can't wait, or no memory is left: the fabric ends
    tasks_.post([error = std::current_exception()] { std::rethrow_exception(error); });
  }
  has_ended_.store(true);
  tasks_.nudge();
}

void ControlThread::receive_once() {
  poller_.await(time_left());
  const wire::Instant began = wire::monotonic_now();
  {
    const auto time_limit = limit_close();
    poller_.dispatch();
    const wire::Instant now = wire::monotonic_now();
    attachments_.expire(now);
    control_.serve(now);
  }
  std::this_thread::sleep_for(std::min(kRest * (wire::monotonic_now() - began), kLongestRest));
}

std::optional<SleepLimit> ControlThread::limit_close() const {
  if (sockets_.attach.refuses_descriptors()) return std::nullopt;
  return std::optional<SleepLimit>(std::in_place, kLongestClose);
}

// Time until the next work without any request.
wire::Duration ControlThread::time_left() const {
  const wire::Instant next = std::min(attachments_.deadline(), control_.deadline());
  if (next == wire::kNever) return wire::Duration{-1};
  return std::max(next - wire::monotonic_now(), wire::Duration{0});
}

// Closes all sockets here, because another thread may have to wait for peers (SleepLimit).
void ControlThread::see_off() {
  const auto time_limit = limit_close();
  const wire::Instant until = wire::monotonic_now() + kFlushTime;
  while (control_.has_unsent() && wire::monotonic_now() < until) {
    poller_.await(until - wire::monotonic_now());
    poller_.dispatch();
  }
  attachments_.detach_all();
  attachments_.close();
  control_.close();
}

namespace {

// Not SIGALRM, which belongs to programs.
int signal_number() {
  static const int number = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};  // it only interrupts calls, which must not restart
    sigaction(SIGRTMIN, &action, nullptr);
    return SIGRTMIN;
  }();
  return number;
}

}  // namespace

SleepLimit::SleepLimit(wire::Duration longest) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  is_set_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  if (!is_set_) return;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, signal_number());
  pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec each{seconds.count(), (longest - seconds).count()};
  const itimerspec times{each, each};
  timer_settime(timer_, 0, &times, nullptr);
}

SleepLimit::~SleepLimit() {
  if (is_set_) timer_delete(timer_);
}

}  // namespace cepheus::live
