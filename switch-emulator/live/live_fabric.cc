// start() checks what only a live fabric can't do and takes the lock beside the socket. Then it
// opens both sockets, builds the datapath, opens interfaces, and starts the control thread. The
// first failure undoes all.
//
// run() is one loop: a round of the datapath, offenders, interfaces; without work, a wait by
// WaitPolicy. Busy rounds look at descriptors every kRoundsBetweenEvents. Requests run on the
// control thread and change the datapath by tasks. A reload takes effect as a whole or not at all.
#include "switch-emulator/live/live_fabric.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "net/settings_change.h"
#include "switch-emulator/live/control/control_thread.h"
#include "switch-emulator/live/control/interfaces.h"
#include "switch-emulator/live/control/link_request.h"
#include "switch-emulator/live/control/record_request.h"
#include "switch-emulator/live/datapath/datapath.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/ports/processor.h"
#include "switch-emulator/ports/short_slices.h"
#include "wire/clock.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using wire::Instant;

constexpr unsigned kRoundsBetweenEvents = 8;  // busy rounds before the descriptors' turn

json done_or_refused(const wire::Result<void>& done) {
  return done ? json{{"ok", true}} : refusal(done.error().text);
}

}  // namespace

struct LiveFabric::State {
  State(const net::Topology& topology, net::Topology::Plan plan, const Access& who,
        const LiveOptions& live_options, Poller made_poller, std::unique_ptr<TaskQueue> own_queue,
        PathLock held_lock)
      : access(who),
        options(live_options),
        running(topology),
        lock(std::move(held_lock)),
        poller(std::move(made_poller)),
        tasks(std::move(own_queue)),
        datapath(topology, std::move(plan)),
        interfaces(datapath, poller, options.warn),
        recording_session(datapath, *tasks) {}

  wire::Result<void> set_up(ControlThread::Sockets sockets);
  void run();
  bool is_due(wire::Instant now) const;
  void wait(fabric::WaitPolicy& policy, wire::Instant now);
  void sleep(wire::Instant now, wire::Duration early);
  void close_offenders(wire::Instant now);
  void stop();
  json answer(const ControlRequest& request);
  wire::Result<std::vector<std::string>> reload();
  FabricStatus status() const;

  Access access;  // on the control thread, as `running`
  const LiveOptions options;
  net::Topology running;
  const wire::Instant started = wire::monotonic_now();
  // A sleep shorter than this would be over before it began.
  const wire::Duration wake_up = fabric::cost_of_sleeping();
  PathLock lock;
  Poller poller;  // of the serving thread, as all below
  const std::unique_ptr<TaskQueue> tasks;
  Datapath datapath;
  Interfaces interfaces;
  std::atomic<bool> stopping{false};
  FabricStatus baseline;                          // on the control thread
  RecordingSession recording_session;             // likewise
  std::unique_ptr<ControlThread> control_thread;  // ends first
};

wire::Result<std::unique_ptr<LiveFabric>> LiveFabric::start(const net::Topology& topology,
                                                            const LiveOptions& options) {
  if (topology.hosts.size() > fabric::PoolGeometry::kMaxHosts) {
    return wire::invalid("a live fabric has at most " +
                         std::to_string(fabric::PoolGeometry::kMaxHosts) + " hosts, and this one " +
                         std::to_string(topology.hosts.size()) + ": leave some out");
  }
  auto plan = topology.plan();
  if (!plan) return tl::unexpected(plan.error());
  // Refused, because a promise would be broken: such a host's kernel ignores pauses.
  for (const net::HostSpec& host : topology.hosts) {
    const bool is_emulated = host.interface.empty() && topology.one_armed.empty();
    if (!host.up.pfc.on || is_emulated) continue;
    return wire::invalid("host " + host.name +
                         " is behind a network interface, which can't be paused "
                         "(pfc): take pfc out of its link");
  }
  for (const net::HostSpec& host : topology.hosts) {
    if (!topology.one_armed.empty() || (!host.mac && !host.any_mac)) continue;
    return wire::invalid("host '" + host.name +
                         "' has a mac, but no interface that checks it: write "
                         "one_armed in [fabric], or start with --one-armed");
  }
  const auto access = Access::of(topology.users);
  if (!access) return tl::unexpected(access.error());
  auto lock = PathLock::take(options.socket);
  if (!lock) return tl::unexpected(lock.error());
  auto attach_at = ListeningSocket::open(options.socket, SOCK_SEQPACKET, access->socket_mode());
  if (!attach_at) return tl::unexpected(attach_at.error());
  auto request_at =
      ListeningSocket::open(control_path(options.socket), SOCK_STREAM, access->socket_mode());
  if (!request_at) return tl::unexpected(request_at.error());
  auto poller = Poller::create();
  if (!poller) return tl::unexpected(poller.error());
  auto tasks = TaskQueue::create();
  if (!tasks) return tl::unexpected(tasks.error());

  auto state = std::make_unique<State>(topology, std::move(*plan), *access, options,
                                       std::move(*poller), std::move(*tasks), std::move(*lock));
  auto done = state->set_up({std::move(*attach_at), std::move(*request_at), options.time_limit});
  if (!done) return tl::unexpected(done.error());
  return std::unique_ptr<LiveFabric>(new LiveFabric(std::move(state)));
}

LiveFabric::LiveFabric(std::unique_ptr<State> state) : state_(std::move(state)) {}
LiveFabric::~LiveFabric() = default;

wire::Result<void> LiveFabric::State::set_up(ControlThread::Sockets sockets) {
  if (!poller.watch(tasks->fd(), Poller::kIn, [this](std::uint32_t) { tasks->serve(); })) {
    return wire::call_failed("can't watch an eventfd");
  }
  if (!options.pcap_dir.empty()) {
    if (auto done = datapath.capture(options.pcap_dir, options.warn); !done) return done;
  }
  datapath.start(wire::monotonic_now());
  if (auto done = interfaces.open(wire::monotonic_now()); !done) return done;
  auto opened =
      ControlThread::open(std::move(sockets), datapath, poller, *tasks, access,
                          [this](const ControlRequest& request) { return answer(request); });
  if (!opened) return tl::unexpected(opened.error());
  control_thread = std::move(*opened);  // exists before any request is answered
  return control_thread->start();
}

void LiveFabric::run() { state_->run(); }

void LiveFabric::stop() { state_->stop(); }

void LiveFabric::State::stop() {
  stopping.store(true, std::memory_order_release);
  tasks->nudge();
}

void LiveFabric::State::run() {
  const fabric::FineTimers fine_timers;
  // A look at all rings takes as long as a yield.
  fabric::WaitPolicy policy(wake_up, wire::Duration(0));
  unsigned rounds = 0;
  while (!stopping.load(std::memory_order_acquire)) {
    const wire::Instant now = wire::monotonic_now();
    const bool worked = datapath.poll(now);
    close_offenders(now);
    interfaces.look(now);
    if (!worked) {
      wait(policy, now);
      continue;
    }
    policy.found(wire::monotonic_now());
    if (++rounds % kRoundsBetweenEvents == 0) poller.wait(wire::Duration{0});
  }
}

void LiveFabric::State::wait(fabric::WaitPolicy& policy, wire::Instant now) {
  using Step = fabric::WaitPolicy::Step;
  const Step step = policy.found_nothing(now, datapath.is_amid_bulk(now));
  if (step == Step::kLook) return;
  if (step != Step::kYield && policy.is_contended(now))
    return sleep(now, -fabric::WaitPolicy::kGather);
  if (step != Step::kYield && !is_due(now)) return sleep(now, wake_up);
  poller.wait(wire::Duration{0});
  const bool saw_computing = policy.sees_computing();
  fabric::offer_core(policy);
  // Preempting polling programs at every wake-up would cost more than it saves.
  if (policy.sees_computing() != saw_computing) fabric::request_short_slices(!saw_computing);
}

void LiveFabric::State::close_offenders(wire::Instant now) {
  for (const std::size_t host : datapath.take_offenders()) {
    const fabric::SwitchPort& port = *datapath.shared_port(host);
    poller.forget(port.doorbell());
    datapath.detach(now, host);
    control_thread->on_closed(host, port.attachment());
  }
}

// The next frame leaves its link before a sleeping thread would have woken up.
bool LiveFabric::State::is_due(wire::Instant now) const {
  const wire::Instant deadline = datapath.deadline();
  return deadline != wire::kNever && deadline - now < wake_up;
}

// Until a client rings, or `early` before the next frame leaves its link.
void LiveFabric::State::sleep(wire::Instant now, wire::Duration early) {
  const wire::Instant deadline = std::min(datapath.deadline(), interfaces.deadline());
  datapath.flush_captures();
  if (!datapath.arm()) return poller.wait(wire::Duration{0});
  poller.wait(deadline == wire::kNever ? wire::Duration{-1}
                                       : std::max(deadline - early - now, wire::Duration{0}));
}

json LiveFabric::State::answer(const ControlRequest& request) {
  if (const auto* link = std::get_if<LinkRequest>(&request)) {
    const auto links = find_links(datapath, *link);
    if (!links) return refusal(links.error().text);
    tasks->run([&] { set_links(datapath, wire::monotonic_now(), *links, *link); });
    return {{"ok", true}};
  }
  if (const auto* record = std::get_if<RecordRequest>(&request)) {
    return recording_session.answer(*record, wire::monotonic_now());
  }
  if (const auto* kill = std::get_if<KillRequest>(&request)) {
    return done_or_refused(control_thread->kill(kill->host, kill->pid));
  }
  if (std::holds_alternative<ReloadRequest>(request)) {
    const auto changed = reload();
    return changed ? json{{"ok", true}, {"changed", *changed}} : refusal(changed.error().text);
  }
  json answer = {{"ok", true}};
  if (std::holds_alternative<StatusRequest>(request)) {
    FabricStatus now = status();
    subtract(now, baseline);
    answer["status"] = to_json(now);
  }
  if (std::holds_alternative<ResetCountersRequest>(request)) baseline = status();
  if (std::holds_alternative<StopRequest>(request)) stop();
  return answer;
}

// All or nothing: the running configuration always comes from one file.
wire::Result<std::vector<std::string>> LiveFabric::State::reload() {
  if (!options.reread) {
    return wire::invalid(
        "this fabric has no topology file to read again: start it with --topology");
  }
  const auto next = options.reread();
  if (!next) return tl::unexpected(next.error());
  const auto who = Access::of(next->users);
  if (!who) return tl::unexpected(who.error());
  net::SettingsChange change = net::compare(running, *next);
  if (!change.needs_restart.empty()) {
    return wire::fail(wire::ErrorCode::kRefused,
                      "nothing was changed, because a restart is needed for " +
                          first_few(change.needs_restart, "; "));
  }
  if (auto done = control_thread->take_access(*who); !done) return tl::unexpected(done.error());
  access = *who;
  running = net::with_settings(std::move(running), *next);
  tasks->run([&] { datapath.take_settings(running.switches); });
  return std::move(change.taken);
}

FabricStatus LiveFabric::State::status() const {
  FabricStatus now =
      datapath.reporting().timed_status([this](const auto& slice) { tasks->run(slice); });
  now.pid = getpid();
  now.mtu = running.mtu;
  now.icrc_always = running.icrc_always;
  now.refused_users = control_thread->refused_users();
  control_thread->show_reservations(now.switches);
  now.uptime_seconds = std::chrono::duration<double>(now.now - started).count();
  return now;
}

FabricStatus LiveFabric::status() const {
  FabricStatus now;
  state_->control_thread->run([&] { now = state_->status(); });
  return now;
}

}  // namespace cepheus::live
