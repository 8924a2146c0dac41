// A packet passes four checks, each with a counter: well-formed, our address, ICRC, a queue pair of
// that number. Then its queue pair handles it (queue_pair.h).
//
// After each change of a queue pair, refresh() updates three indexes: pairs that owe responses,
// pairs with data, timers. transmit() takes responses first. Then pairs with data take turns, one
// packet each. A deadline that moves later is corrected when its timer expires.
//
// Bounds: a small buffer ends transmit() after kTriesWithoutBuffer pairs. The configuration is
// clamped: windows of at most 2^22 packets keep PSNs comparable.
#include "nic-emulator/engine/nic.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "nic-emulator/engine/port.h"
#include "nic-emulator/engine/qp_table.h"
#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::rnic {
namespace {

// Limits the driver's configuration to the engine's range.
NicConfig within_limits(NicConfig c) {
  constexpr std::uint32_t kLargestWindow = 1u << 22;  // well below half the PSN circle
  c.window_packets = std::clamp(c.window_packets, 1u, kLargestWindow);
  c.cautious_window = std::clamp(c.cautious_window, 1u, c.window_packets);
  c.ack_every = std::max(c.ack_every, 1u);
  std::uint32_t& kept = c.manners.keeps_behind_gap;
  if (kept != 0) kept = std::bit_ceil(std::min(kept, 1024u));
  return c;
}

wire::Result<void> check_caps(const QpCap& cap) {
  const auto over = [](std::uint32_t requested, std::uint32_t limit, const char* what) {
    return requested > limit ? std::string(what) + " must be at most " + std::to_string(limit) : "";
  };
  for (const std::string& text : {over(cap.max_send_wr, kMaxCap.max_send_wr, "max_send_wr"),
                                  over(cap.max_recv_wr, kMaxCap.max_recv_wr, "max_recv_wr"),
                                  over(cap.max_send_sge, kMaxCap.max_send_sge, "max_send_sge"),
                                  over(cap.max_recv_sge, kMaxCap.max_recv_sge, "max_recv_sge"),
                                  over(cap.max_inline, kMaxCap.max_inline, "max_inline")}) {
    if (!text.empty()) return wire::invalid(text);
  }
  return {};
}

tl::unexpected<wire::Error> unknown_srq() {
  return wire::invalid("no such shared receive queue: it was destroyed or never created");
}

tl::unexpected<wire::Error> unknown_qp() {
  return wire::invalid("no such qp: it was destroyed or never created");
}

}  // namespace

struct Nic::State {
  explicit State(const NicConfig& config)
      : port(within_limits(config)), srqs(config.max_srqs), qps(config.max_qps, config.seed) {}

  // Updates lists and timer for the QP's pending work. Due after every change of the QP.
  void refresh(QueuePair& qp) {
    last_used = &qp;
    responding.set_member(qp, qp.has_response());
    sending.set_member(qp, qp.has_data());
    const Instant due = qp.deadline();
    if (due == wire::kNever) {
      timers.cancel(qp);
    } else if (due < qp.timer.due) {
      timers.schedule(qp, due);
    }
    // A deadline that has moved later stays in the heap. The timer moves it when it expires: once
    // per time-out instead of once per packet.
  }

  bool build_response(wire::Frame& frame);
  bool build_data(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out);

  const QueuePair* last_used = nullptr;
  // Read after every call; the elements are those of `qps`.
  IntrusiveList<QueuePair, &QueuePair::response_hook> responding;
  IntrusiveList<QueuePair, &QueuePair::data_hook> sending;
  TimerHeap<QueuePair, &QueuePair::timer> timers;
  Port port;
  SrqTable srqs;  // outlives the QPs
  QpTable qps;
};

Nic::Nic(const NicConfig& config) : state_(std::make_unique<State>(config)) {}
Nic::~Nic() = default;

wire::Result<MemoryKeys> Nic::register_memory(PdId pd, void* memory, std::size_t length,
                                              std::uint64_t iova, std::uint32_t access) {
  return state_->port.memory.add(pd, memory, length, iova, access).map([](std::uint32_t key) {
    return MemoryKeys{key, key};
  });
}

wire::Result<MemoryKeys> Nic::register_memory_as(std::uint32_t key, PdId pd, void* memory,
                                                 std::size_t length, std::uint64_t iova,
                                                 std::uint32_t access) {
  return state_->port.memory.add_as(key, pd, memory, length, iova, access).map([key] {
    return MemoryKeys{key, key};
  });
}

bool Nic::deregister_memory(std::uint32_t lkey) { return state_->port.memory.remove(lkey); }

wire::Result<void> Nic::change_memory(std::uint32_t lkey, PdId pd, void* memory, std::size_t length,
                                      std::uint64_t iova, std::uint32_t access) {
  return state_->port.memory.change(lkey, pd, memory, length, iova, access);
}

std::optional<LostRegion> Nic::take_lost_region() { return state_->port.memory.take_lost(); }

wire::Result<SrqId> Nic::create_srq(const SrqInit& init) {
  if (auto ok = check_caps({.max_recv_wr = init.max_wr, .max_recv_sge = init.max_sge}); !ok) {
    return tl::unexpected(ok.error());
  }
  const SharedReceiveQueue* srq = state_->srqs.create(init);
  if (srq == nullptr) {
    return wire::unavailable("all shared receive queues in use: destroy some");
  }
  return srq->id();
}

wire::Result<void> Nic::arm_srq(SrqId srq, std::uint32_t limit, NicOutput& out) {
  SharedReceiveQueue* queue = state_->srqs.find(srq);
  if (queue == nullptr) return unknown_srq();
  return queue->arm(limit, out);
}

wire::Result<void> Nic::resize_srq(SrqId srq, std::uint32_t max_wr) {
  SharedReceiveQueue* queue = state_->srqs.find(srq);
  if (queue == nullptr) return unknown_srq();
  if (auto ok = check_caps({.max_recv_wr = max_wr}); !ok) return ok;
  return queue->resize(max_wr);
}

wire::Result<SrqAttr> Nic::query_srq(SrqId srq) const {
  const SharedReceiveQueue* queue = state_->srqs.find(srq);
  if (queue == nullptr) return unknown_srq();
  return queue->query();
}

wire::Result<void> Nic::destroy_srq(SrqId srq) {
  const SharedReceiveQueue* queue = state_->srqs.find(srq);
  if (queue == nullptr) return unknown_srq();
  if (queue->in_use()) {
    return wire::fail(wire::ErrorCode::kAgain, "queue pairs still use it: destroy them first");
  }
  state_->srqs.destroy(srq);
  return {};
}

wire::Result<void> Nic::post_srq_recv(SrqId srq, const RecvWr& wr) {
  SharedReceiveQueue* queue = state_->srqs.find(srq);
  if (queue == nullptr) return unknown_srq();
  return queue->post(wr);
}

wire::Result<Qpn> Nic::create_qp(const QpInit& requested) {
  QpInit init = requested;
  SharedReceiveQueue* srq = nullptr;
  if (init.srq) {
    srq = state_->srqs.find(*init.srq);
    if (srq == nullptr) return unknown_srq();
    init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
  }
  if (auto ok = check_caps(init.cap); !ok) return tl::unexpected(ok.error());
  const QueuePair* qp = state_->qps.create(state_->port, init, srq);
  if (qp == nullptr) {
    return wire::unavailable("all queue pairs in use: destroy some");
  }
  return qp->qpn();
}

wire::Result<void> Nic::modify_qp(Instant /*now*/, Qpn qpn, const QpAttr& attr, std::uint32_t mask,
                                  NicOutput& out) {
  QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return unknown_qp();
  auto result = qp->modify(attr, mask, out);
  state_->refresh(*qp);
  return result;
}

wire::Result<QpAttr> Nic::query_qp(Qpn qpn) const {
  const QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return unknown_qp();
  return qp->query();
}

bool Nic::fail_qp(Qpn qpn, NicOutput& out) {
  QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return false;
  qp->fail(out);
  state_->refresh(*qp);
  return true;
}

bool Nic::holds_shared_receive(Qpn qpn) const {
  const QueuePair* qp = state_->qps.find(qpn);
  return qp != nullptr && qp->holds_shared_receive();
}

bool Nic::jump(Qpn qpn, std::uint64_t sent, std::uint64_t received) {
  QueuePair* qp = state_->qps.find(qpn);
  return qp != nullptr && qp->jump(sent, received);
}

bool Nic::destroy_qp(Qpn qpn) {
  QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return false;
  state_->responding.set_member(*qp, false);
  state_->sending.set_member(*qp, false);
  state_->timers.cancel(*qp);
  if (state_->last_used == qp) state_->last_used = nullptr;
  state_->qps.destroy(*qp);
  return true;
}

wire::Result<void> Nic::post_send(Instant now, Qpn qpn, const SendWr& wr, NicOutput& out) {
  return post_sends(now, qpn, {&wr, 1}, out);
}

wire::Result<void> Nic::post_sends(Instant now, Qpn qpn, std::span<const SendWr> wrs,
                                   NicOutput& out) {
  QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return unknown_qp();
  qp->resume(now);
  auto result = qp->post_sends(wrs, out);
  state_->refresh(*qp);
  return result;
}

wire::Result<void> Nic::post_recv(Instant /*now*/, Qpn qpn, const RecvWr& wr, NicOutput& out) {
  QueuePair* qp = state_->qps.find(qpn);
  if (qp == nullptr) return unknown_qp();
  return qp->post_recv(wr, out);
}

void Nic::on_packet(Instant now, const wire::Frame& frame, NicOutput& out) {
  Counters& counters = state_->port.counters;
  counters.add(Counter::kRxPackets);
  counters.add(Counter::kRxBytes, frame.size());
  const auto headers = wire::RoceHeaders::parse(frame);
  if (!headers || headers->bth.transport_version != 0 || frame.payload_len % 4 != 0)
    return counters.add(Counter::kRxDropMalformed);
  if (headers->ip.destination != state_->port.config.address) {
    return counters.add(Counter::kRxDropNotMine);
  }
  if (!wire::check_icrc(frame)) return counters.add(Counter::kRxDropIcrc);
  QueuePair* qp = state_->qps.find(headers->bth.destination_qp);
  if (qp == nullptr) return counters.add(Counter::kRxDropUnknownQp);
  const auto data = frame.payload().first(frame.payload_len - std::size_t{headers->bth.pad_count});
  qp->on_packet(now, *headers, data, out);
  state_->refresh(*qp);
}

bool Nic::transmit(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame,
                   NicOutput& out) {
  // A QP that failed over its data may owe a NAK now.
  return state_->build_response(frame) || state_->build_data(now, buffer, frame, out) ||
         state_->build_response(frame);
}

bool Nic::State::build_response(wire::Frame& frame) {
  QueuePair* qp = responding.front();
  if (qp == nullptr) return false;
  qp->build_response(frame);
  refresh(*qp);
  return true;
}

bool Nic::State::build_data(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame,
                            NicOutput& out) {
  // A QP without a packet for this buffer leaves the turn to the next one. After this many the call
  // ends, and the next call continues with others.
  constexpr int kTriesWithoutBuffer = 16;
  for (int tries = 0; !sending.empty() && tries < kTriesWithoutBuffer;) {
    QueuePair& qp = *sending.front();
    const Build built = qp.build_data(now, buffer, frame, out);
    sending.move_to_back(qp);
    refresh(qp);
    if (built == Build::kBuilt) return true;
    if (built == Build::kNeedsBuffer) ++tries;
  }
  return false;
}

bool Nic::wants_to_transmit() const {
  return !state_->responding.empty() || !state_->sending.empty();
}

bool Nic::owes_answers() const { return !state_->responding.empty(); }

Bulk Nic::bulk() const {
  return state_->last_used == nullptr ? Bulk::kNone : state_->last_used->bulk();
}

bool Nic::is_quiet() const {
  const QueuePair* const last = state_->last_used;
  if (wants_to_transmit() || (last != nullptr && !last->is_quiet())) return false;
  // A queue pair that waits for anything has a timer.
  const std::size_t waiting = state_->timers.size();
  return waiting == 0 || (waiting == 1 && last != nullptr && last->timer.scheduled());
}

void Nic::on_timer(Instant now, NicOutput& out) {
  while (QueuePair* qp = state_->timers.pop_due(now)) {
    if (qp->deadline() <= now) qp->on_timer(now, out);
    state_->refresh(*qp);
    assert(!qp->timer.scheduled() || qp->timer.due > now);
  }
}

Instant Nic::deadline() const { return state_->timers.earliest(); }

std::optional<CongestionState> Nic::congestion(Instant now, Qpn qpn) const {
  const QueuePair* qp = state_->qps.find(qpn);
  return qp == nullptr ? std::nullopt : qp->congestion(now);
}

const Counters& Nic::counters() const { return state_->port.counters; }
const NicConfig& Nic::config() const { return state_->port.config; }

void Nic::check_consistent() const {
  state_->timers.check_consistent();
  state_->qps.for_each([this](const QueuePair& qp) {
    qp.check_consistent();
    assert(state_->responding.contains(qp) == qp.has_response());
    assert(state_->sending.contains(qp) == qp.has_data());
    assert(qp.timer.due <= qp.deadline());
    assert(qp.timer.scheduled() == (qp.deadline() != wire::kNever));
  });
}

}  // namespace cepheus::rnic
