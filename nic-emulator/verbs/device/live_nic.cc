// progress() is one step: take in up to kReceiveBatch frames, fire due timers, send, deliver.
// Acknowledgements leave before completions are visible, because a program may exit after its last
// completion. Frames without an ICRC state go to the datagram sockets, all others to the engine. At
// most kLoopBatch packets go to the NIC itself in one go; a full ring keeps packets in the engine.
//
// A lost completion fails its queue pair. After the fabric's end, packets are discarded and
// counted. Memory that a program took away fails its connection, with one line on stderr.
#include "nic-emulator/verbs/device/live_nic.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <thread>

#include "nic-emulator/engine/live_defaults.h"
#include "nic-emulator/verbs/device/report.h"
#include "nic-emulator/verbs/memory/memory_guard.h"
#include "switch-emulator/ports/port_segment.h"
#include "wire/byte_order.h"

namespace cepheus::verbs {
namespace {

// By AsyncEventKind.
constexpr std::array kEvents{IBV_EVENT_QP_FATAL,         IBV_EVENT_QP_ACCESS_ERR,
                             IBV_EVENT_QP_REQ_ERR,       IBV_EVENT_COMM_EST,
                             IBV_EVENT_SQ_DRAINED,       IBV_EVENT_QP_LAST_WQE_REACHED,
                             IBV_EVENT_SRQ_LIMIT_REACHED};
static_assert(kEvents.size() == static_cast<std::size_t>(AsyncEventKind::kSrqLimitReached) + 1);

// Frames written before the switch sees them: it takes these while the next are written.
constexpr std::size_t kSendBatch = fabric::kWindow / 4;
static_assert(rnic::kLiveWindow == fabric::kWindow);
// Packets to the NIC itself in one go: each may call for the next, so only this bounds how long the
// lock is held.
constexpr int kLoopBatch = 256;

bool is_to(const wire::Frame& frame, Ipv4 address) {
  constexpr std::size_t kDestination = wire::kIpOffset + 16;
  return wire::load_be32(frame.bytes.data() + kDestination) == address.value();
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
    seed = static_cast<std::uint64_t>(wire::monotonic_now().time_since_epoch().count());
  }
  return seed;
}

// A thread that sleeps until a packet's time wakes some tens of microseconds late.
constexpr auto kCatchUp = std::chrono::microseconds(100);

NicConfig config_of(const fabric::HostIdentity& identity,
                    const std::optional<rnic::CongestionConfig>& congestion,
                    const rnic::NicProfile& profile) {
  NicConfig config = rnic::live_defaults(identity.mtu, identity.slowest_rate);
  profile.apply(config);
  config.address = identity.address;
  config.mac = identity.mac;
  config.gateway = identity.gateway;
  config.make_icrc = identity.icrc_always;
  config.seed = random_seed();
  config.guard = guard_memory;
  config.congestion = congestion;
  if (config.congestion) config.congestion->catch_up = kCatchUp;
  return config;
}

void report_lost(const rnic::LostRegion& lost) {
  static constexpr std::array kReasons{
      // by AccessEnd
      "", "was unmapped; deregister memory before you free it",
      "has a page that the program has protected; allow access to registered memory",
      "has a page that its file can't give; deregister memory before you truncate its file, and "
      "look "
      "for a full or failed disk"};
  std::ostringstream text;
  text << "a connection used registered memory, " << lost.length << " bytes at " << lost.memory
       << ", and fails: the memory " << kReasons[static_cast<std::size_t>(lost.why)];
  print_line(text.str());
}

}  // namespace

wire::Result<std::unique_ptr<LiveNic>> LiveNic::start(
    std::unique_ptr<fabric::HostPort> port, const std::optional<rnic::CongestionConfig>& congestion,
    const rnic::NicProfile& profile) {
  auto kick = Readiness::create();
  if (!kick) return tl::unexpected(kick.error());
  install_memory_guard();
  std::unique_ptr<LiveNic> nic(new LiveNic(std::move(port), congestion, profile, std::move(*kick)));
  if (auto started = nic->start_thread(); !started) return tl::unexpected(started.error());
  return nic;
}

LiveNic::LiveNic(std::unique_ptr<fabric::HostPort> port,
                 const std::optional<rnic::CongestionConfig>& congestion,
                 const rnic::NicProfile& profile, Readiness kick)
    : port_(std::move(port)),
      identity_(port_->identity()),
      engine_(config_of(identity_, congestion, profile)),
      sockets_(identity_.address),
      kick_(std::move(kick)),
      timers_(fabric::kFrameRing) {
  void_.resize(std::size_t{identity_.mtu} + 4);
}

LiveNic::~LiveNic() {
  if (is_abandoned()) return;  // the thread is the parent's
  bool has_thread = false;
  {
    const std::scoped_lock lock(mutex_);
    has_thread = driver_.exchange(Driver::kNone) != Driver::kNone;
    kick();
  }
  if (has_thread) ::pthread_join(thread_, nullptr);
  finish_received();
}

void LiveNic::add_listener(Listener& listener) {
  const std::scoped_lock lock(mutex_);
  listeners_.push_back(&listener);
}

void LiveNic::remove_listener(Listener& listener) {
  const std::scoped_lock lock(mutex_);
  std::erase(listeners_, &listener);
}

CqId LiveNic::add_queue(CompletionQueue& queue, Listener& listener) {
  const std::scoped_lock lock(mutex_);
  auto slot = std::ranges::find(queues_, nullptr, &Queue::queue);
  if (slot == queues_.end()) slot = queues_.insert(slot, Queue{});
  *slot = Queue{&queue, &listener};
  return static_cast<CqId>(slot - queues_.begin());
}

void LiveNic::remove_queue(CqId id) {
  const std::scoped_lock lock(mutex_);
  queues_[id] = Queue{};
}

void LiveNic::add_qp(Qpn qpn, Listener& listener) {
  const std::scoped_lock lock(mutex_);
  qps_.insert_or_assign(qpn, &listener);
}

void LiveNic::remove_qp(Qpn qpn) {
  const std::scoped_lock lock(mutex_);
  qps_.erase(qpn);
}

void LiveNic::add_srq(SrqId srq, Listener& listener) {
  const std::scoped_lock lock(mutex_);
  srqs_.insert_or_assign(srq, &listener);
}

void LiveNic::remove_srq(SrqId srq) {
  const std::scoped_lock lock(mutex_);
  srqs_.erase(srq);
}

std::size_t LiveNic::progress(Instant now) {
  if (is_abandoned()) return 0;
  const std::size_t taken = is_up() ? receive(now) : 0;
  if (timers_.may_fire(now, engine_.deadline(), taken, taken < kReceiveBatch)) {
    engine_.on_timer(now, actions_);
  }
  flush_output(now);
  return taken;
}

std::size_t LiveNic::receive(Instant now) {
  wire::Frame frame;
  std::size_t taken = 0;
  for (; taken < kReceiveBatch && port_->receive(frame); ++taken) {
    if (frame.icrc_state == wire::Icrc::kNone) {
      sockets_.deliver(frame);
    } else {
      engine_.on_packet(now, frame, actions_);
    }
  }
  if (taken > 0) port_->release();
  return taken;
}

void LiveNic::flush_output(Instant now) {
  // Acknowledgements first, completions second: a program may exit as soon as it sees its last
  // completion.
  transmit(now);
  deliver();
  if (const auto lost = engine_.take_lost_region()) report_lost(*lost);
  // A thread that fell asleep before does not know of the packets without space.
  const bool is_left =
      is_up() && engine_.wants_to_transmit() && thread_wakes_ > now + kRetryTransmit;
  if (engine_.deadline() < thread_wakes_ || is_left) kick();
}

void LiveNic::finish_received() {
  if (is_abandoned()) return;
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    {
      // The lock may be held for ever: by the thread itself, if a signal handler ends the program.
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock.owns_lock()) {
        check_fabric();
        const Instant now = wire::monotonic_now();
        for (std::size_t taken = 0; taken < fabric::kFrameRing; taken += kReceiveBatch) {
          if (progress(now) < kReceiveBatch) break;
        }
        // Once for all queue pairs: a switch that stands still delays the end of many no longer.
        if (!is_up() || !engine_.owes_answers() || waited_in_vain_) return;
        waited_in_vain_ = tries + 1 == kMostTries;
      }
    }
    std::this_thread::sleep_for(kRetryTransmit);
  }
}

void LiveNic::transmit(Instant now) {
  if (is_abandoned()) return;
  std::size_t queued = 0;
  int looped = 0;
  while (engine_.wants_to_transmit()) {
    wire::Frame frame;
    if (!is_up()) {
      if (!engine_.transmit(now, void_, frame, actions_)) break;
      ++counters_.tx_lost_no_fabric;
      continue;
    }
    if (port_->free_entries() == 0) break;
    if (!engine_.transmit(now, port_->tx_buffer(), frame, actions_)) break;
    if (is_to(frame, identity_.address)) {
      // Switches return no frame to the port of its arrival, so the NIC loops its own packets back.
      engine_.on_packet(now, frame, actions_);
      if (++looped < kLoopBatch) continue;
      kick();  // to continue soon without a poll
      break;
    }
    port_->send(frame);
    if (++queued % kSendBatch == 0) port_->flush();
  }
  if (queued > 0) waited_in_vain_ = false;
  port_->flush();
}

void LiveNic::deliver() {
  // On every exit: nothing is delivered twice.
  const struct Cleared {
    ~Cleared() { actions.clear(); }
    NicOutput& actions;
  } cleared{actions_};
  // By index: a queue that overruns fails QPs, which adds completions and events.
  for (std::size_t i = 0; i < actions_.completions.size(); ++i) {
    deliver_completion(actions_.completions[i]);
  }
  for (const AsyncEvent& event : actions_.events) deliver_event(event);
}

void LiveNic::deliver_completion(const Completion& completion) {
  if (completion.cq >= queues_.size() || queues_[completion.cq].queue == nullptr) return;
  const Queue& target = queues_[completion.cq];
  ++delivered_;
  if (target.queue->push(completion)) return;
  ++counters_.completions_lost;
  if (target.queue->report_overrun()) target.listener->on_event(IBV_EVENT_CQ_ERR);
  // No completion reports the end of the QP's work (IBTA 10.10.2.2). `completion` may move in this.
  const Qpn qpn = completion.qpn;
  engine_.fail_qp(qpn, actions_);
}

void LiveNic::deliver_event(const AsyncEvent& event) {
  const ibv_event_type type = kEvents[static_cast<std::size_t>(event.kind)];
  if (event.kind == AsyncEventKind::kSrqLimitReached) {
    if (const auto at = srqs_.find(event.srq); at != srqs_.end()) at->second->on_event(type);
  } else if (const auto at = qps_.find(event.qpn); at != qps_.end()) {
    at->second->on_event(type);
  }
}

void LiveNic::check_fabric() {
  if (is_up() && !port_->is_connected()) take_down();
}

void LiveNic::take_down() {
  up_.store(false);
  for (Listener* listener : listeners_) listener->on_event(IBV_EVENT_PORT_ERR);
}

DatagramSocket* LiveNic::open_socket(std::uint16_t port, std::uint16_t from_port,
                                     std::uint8_t tos) {
  const std::scoped_lock lock(mutex_);
  return sockets_.open(port, from_port, tos);
}

void LiveNic::close_socket(DatagramSocket* socket) {
  const std::scoped_lock lock(mutex_);
  sockets_.close(socket);
}

wire::Result<void> LiveNic::send_datagram(const DatagramSocket& socket, Ipv4 to,
                                          std::uint16_t to_port,
                                          std::span<const std::uint8_t> data) {
  if (data.size() > kMaxDatagram) {
    return wire::invalid("a datagram holds at most 1472 bytes; send less");
  }
  const std::scoped_lock lock(mutex_);
  if (is_abandoned() || !is_up()) {
    return wire::unavailable("the fabric has ended; start it again");
  }
  const auto no_space = wire::fail(wire::ErrorCode::kAgain, "the port is full; send again later");
  if (port_->free_entries() == 0) return no_space;

  wire::UdpDatagram headers;
  headers.ethernet.destination = identity_.gateway;
  headers.ethernet.source = identity_.mac;
  headers.ip.tos = socket.tos();
  headers.ip.source = identity_.address;
  headers.ip.destination = to;
  headers.udp.source_port = socket.port();
  headers.udp.destination_port = to_port;
  wire::Frame frame;
  frame.header_len = wire::kBthOffset;
  std::span<const std::uint8_t> payload = data;
  if (!frame.payload_fits_inline(data.size())) {
    const std::span<std::uint8_t> buffer = port_->tx_buffer();
    if (buffer.size() < data.size()) return no_space;
    std::copy(data.begin(), data.end(), buffer.begin());
    payload = buffer.first(data.size());
  }
  headers.emit(frame, payload);
  port_->send(frame);
  port_->flush();
  ++sockets_.counters.sent;
  return {};
}

std::string LiveNic::counters_text(bool described) {
  const std::scoped_lock lock(mutex_);
  std::string text;
  const auto line = [&](std::string_view name, std::uint64_t value) {
    if (described && value == 0) return;
    text.append(name).append(" ").append(std::to_string(value)).append("\n");
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::kCount); ++i) {
    const std::uint64_t value = engine_.counters()[static_cast<Counter>(i)];
    const auto& [name, description] = rnic::kCounterTexts[i];
    line(name, value);
    if (described && value != 0)
      text.insert(text.size() - 1, "  (" + std::string(description) + ")");
  }
  line("tx_lost_no_fabric", counters_.tx_lost_no_fabric);
  line("completions_lost", counters_.completions_lost);
  line("rx_drop_invalid_descriptor", is_abandoned() ? 0 : port_->invalid_frames());
  const DatagramSockets::Counters& udp = sockets_.counters;
  line("datagrams_received", udp.received);
  line("datagrams_sent", udp.sent);
  line("datagrams_dropped_malformed", udp.dropped_malformed);
  line("datagrams_dropped_not_mine", udp.dropped_not_mine);
  line("datagrams_dropped_port_closed", udp.dropped_port_closed);
  line("datagrams_dropped_source_port", udp.dropped_source_port);
  line("datagrams_dropped_queue_full", udp.dropped_queue_full);
  line("datagrams_dropped_too_long", udp.dropped_too_long);
  const Instant now = wire::monotonic_now();
  for (const auto& [qpn, listener] : qps_) {
    const auto state = engine_.congestion(now, qpn);
    if (!state || !state->is_limited) continue;
    const std::string of = "_qp" + std::to_string(qpn.value());
    line("rate_mbps" + of, state->rate.bits_per_second / 1'000'000);
    line("alpha_ppm" + of, static_cast<std::uint64_t>(state->alpha * 1e6));
  }
  return text;
}

void LiveNic::abandon(bool is_whole) {
  abandoned_.store(true);
  up_.store(false);
  kick_.renew();
  if (!is_whole) {
    port_->isolate();
    if (!mutex_.is_in_use_here()) mutex_.renew();  // its holder is not in this process
    return;
  }
  port_->abandon();
  for (const Queue& each : queues_) {
    if (each.queue == nullptr) continue;
    each.queue->on_forked();
    each.listener->on_forked();
  }
  for (const auto& [qpn, listener] : qps_) listener->on_forked();
  for (const auto& [id, listener] : srqs_) listener->on_forked();
  for (Listener* listener : listeners_) listener->on_forked();
}

}  // namespace cepheus::verbs
