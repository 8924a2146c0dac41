// Posting, building and the two timers; requester_responses.cc handles answers. A packet requests
// an acknowledgement if it is the last of its message, fills the window, or is an ack_every-th.
//
// After an ACK time-out one retry is spent, all is sent again from the oldest packet on, and one
// packet probes until an answer comes. For 64 windows after that the cautious window holds, and
// requests for acknowledgements are frequent. Makes with `lacks_caution` do neither.
//
// A request that can't be built fails when it is the oldest, so earlier ones complete first. SQD
// lets begun messages end and begins none.
#include "nic-emulator/engine/requester.h"

#include <algorithm>
#include <cassert>

#include "nic-emulator/engine/ack_timeout.h"
#include "wire/situation.h"

namespace cepheus::rnic {
using wire::Opcode;

Requester::Requester(QpContext& context, SendQueue& queue)
    : qp_(context), counters_(context.port.counters), queue_(queue) {}

void Requester::start(Psn first) {
  assert(queue_.empty() && posted_ == 0);
  first_psn_ = first;
  origin_ = queue_.head();
  retries_left_ = qp_.attr.retry_count;
  rnr_retries_left_ = qp_.attr.rnr_retry;
  timeouts_in_a_row_ = 0;
}

void Requester::reset() {
  queue_.clear();
  una_ = next_ = sent_ = posted_ = often_until_ = requested_end_ = 0;
  forget_progress();
}

void Requester::forget_progress() {
  cursor_ = queue_.head();
  probing_ = waits_for_receiver_ = local_failure_ = false;
  missed_results_ = 0;
  fetches_in_flight_ = 0;
  rnr_deadline_ = ack_deadline_ = wire::kNever;
  drain_limit_.reset();
  oldest_failure_.reset();
  nak_packet_.reset();
}

wire::Result<void> Requester::post(const SendWr& wr) {
  const auto end = queue_.post(wr, posted_);
  if (!end) return tl::unexpected(end.error());
  posted_ = *end;
  return {};
}

void Requester::take_back() {
  posted_ = queue_.at(queue_.tail() - 1).first_packet;
  queue_.pop_youngest();
}

std::uint64_t Requester::window() const {
  if (probing_) return 1;
  const NicConfig& config = qp_.port.config;
  return next_ < often_until_ ? config.cautious_window : config.window_packets;
}

bool Requester::can_send() const {
  if (qp_.state != QpState::kRts && qp_.state != QpState::kSqd) return false;
  if (waits_for_receiver_ || local_failure_ || oldest_failure_) return false;
  return next_ < drain_limit_.value_or(posted_) && next_ - una_ < window() && may_begin();
}

// Most packets of a READ in one request.
std::uint64_t Requester::read_piece() const {
  return std::max(qp_.port.config.cautious_window / 2, 1u);
}

// Whether READs and atomics in flight let the message at the cursor continue
// (IBTA 10.8.3.3, 9.7.3.2).
bool Requester::may_begin() const {
  const SendWqe& wqe = queue_.at(cursor_);
  if (wqe.fence && next_ == wqe.first_packet && fetches_in_flight_ != 0) return false;
  return !wqe.is_fetch() || fetches_in_flight_ < qp_.attr.max_rd_atomic;
}

// After a loss, and with a slow peer, only frequent ACKs prevent time-outs.
std::uint32_t Requester::ack_every() const {
  constexpr std::uint32_t kOften = 32;
  const std::uint32_t requested = qp_.port.config.ack_every;
  const bool is_cautious = next_ < often_until_ && !qp_.port.config.manners.lacks_caution;
  return is_cautious ? std::min(requested, kOften) : requested;
}

Build Requester::build(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame) {
  assert(can_send());
  const SendWqe& wqe = queue_.at(cursor_);
  if (wqe.is_defective()) {
    local_failure_ = true;
    return Build::kFailed;
  }
  if (wqe.is_fetch()) return build_fetch(now, wqe, frame);
  const std::uint64_t index = next_ - wqe.first_packet;
  const std::uint64_t offset = index * qp_.attr.path_mtu;
  const auto length =
      static_cast<std::size_t>(std::min<std::uint64_t>(qp_.attr.path_mtu, wqe.length - offset));
  const bool first = index == 0;
  const bool last = index + 1 == wqe.packets;
  const bool fills_window = next_ + 1 - una_ >= window();

  wire::RoceHeaders headers = qp_.envelope;
  headers.bth.opcode = opcode_of(wqe, first, last);
  headers.bth.solicited = last && wqe.solicited;
  headers.bth.ack_request = last || fills_window || (index + 1) % ack_every() == 0;
  headers.bth.psn = psn_of(next_);
  headers.reth = {wqe.remote_address, wqe.rkey, wqe.length};
  headers.imm.value = headers.ieth.rkey = wqe.imm;

  const Build built = build_with_payload(qp_.port, headers, length, buffer, frame, [&](auto bytes) {
    return queue_.read(cursor_, offset, bytes);
  });
  local_failure_ = built == Build::kFailed;
  if (built == Build::kBuilt) on_sent(now, 1, headers.bth.ack_request);
  return built;
}

// A READ request or an atomic: no payload.
Build Requester::build_fetch(Instant now, const SendWqe& wqe, wire::Frame& frame) {
  wire::RoceHeaders headers = qp_.envelope;
  headers.bth.psn = psn_of(next_);
  headers.bth.ack_request = true;
  std::uint64_t packets = 1;
  if (wqe.op == SendOp::kRead) {
    const std::uint64_t index = next_ - wqe.first_packet;
    const std::uint64_t offset = index * qp_.attr.path_mtu;
    packets = std::min(read_piece() - index % read_piece(), wqe.packets - index);
    headers.bth.opcode = Opcode::kRcReadRequest;
    headers.reth = {wqe.remote_address + offset, wqe.rkey,
                    static_cast<std::uint32_t>(
                        std::min<std::uint64_t>(packets * qp_.attr.path_mtu, wqe.length - offset))};
  } else {
    const bool swaps = wqe.op == SendOp::kCompareSwap;
    headers.bth.opcode = swaps ? Opcode::kRcCompareSwap : Opcode::kRcFetchAdd;
    headers.atomic = {wqe.remote_address, wqe.rkey, swaps ? wqe.swap : wqe.compare_add,
                      swaps ? wqe.compare_add : 0};
  }
  build_without_payload(qp_.port, headers, frame);
  ++fetches_in_flight_;
  on_sent(now, packets, true);
  return Build::kBuilt;
}

void Requester::on_sent(Instant now, std::uint64_t packets, bool requests_ack) {
  if (next_ < sent_) {
    counters_.add(Counter::kTxRetransmitted);
    if (next_ == sent_ - 1) CEPHEUS_SITUATION("the last packet sent is repeated alone");
  }
  // Packets behind a request for an answer must not hide its loss. Before one is in flight no answer
  // is due, however slowly packets are sent.
  const bool is_answer_due = ack_deadline_ != wire::kNever && requested_end_ > una_;
  next_ += packets;
  sent_ = std::max(sent_, next_);
  if (next_ == queue_.at(cursor_).end_packet()) ++cursor_;
  if (requests_ack) requested_end_ = next_;
  if (!is_answer_due) restart_timer(now);
}

// Go-back-N: resend from the oldest packet that is not acknowledged.
void Requester::go_back() {
  next_ = requested_end_ = una_;
  cursor_ = queue_.head();
  fetches_in_flight_ = 0;
  local_failure_ = false;
  ack_deadline_ = wire::kNever;
}

void Requester::spend_retry() {
  constexpr std::uint64_t kWindows = 64;
  often_until_ = sent_ + kWindows * qp_.port.config.window_packets;
  if (retries_left_ == 0) {
    CEPHEUS_SITUATION("a source gives up after all its retries");
    counters_.add(Counter::kRetriesExceeded);
    oldest_failure_ = WcStatus::kRetryExceeded;
    return;
  }
  --retries_left_;
  go_back();
}

void Requester::on_timer(Instant now) {
  if (waits_for_receiver_) {
    if (now < rnr_deadline_) return;
    waits_for_receiver_ = false;
    if (una_ == next_) CEPHEUS_SITUATION("an RNR wait ends with nothing in flight");
    return;
  }
  if (now < ack_deadline_) return;
  counters_.add(Counter::kAckTimeouts);
  if (timeouts_in_a_row_ != 0) CEPHEUS_SITUATION("two time-outs in a row");
  if (sent_ - una_ > 32) CEPHEUS_RARE_SITUATION("a time-out with many packets in flight");
  ++timeouts_in_a_row_;
  missed_results_ = 0;
  // One packet probes: mostly the answer was lost or late, and a whole window would be sent in
  // vain.
  probing_ = !qp_.port.config.manners.lacks_caution;
  spend_retry();
}

Duration Requester::ack_timeout() {
  const NicConfig& nic = qp_.port.config;
  const AckTimeout range = rnic::ack_timeout(nic, qp_.attr.timeout_code, timeouts_in_a_row_);
  if (nic.manners.ignores_timeout_code)
    CEPHEUS_SITUATION("a NIC that ignores the time-out code waits");
  if (!nic.manners.varies_timeout) return range.least;
  CEPHEUS_SITUATION("a NIC waits longer than its time-out code says");
  return std::min(qp_.draw(range.least, kLatestAckTimeout * range.least), range.most);
}

void Requester::restart_timer(Instant now) {
  const bool runs = una_ < next_ && qp_.attr.timeout_code != 0;
  ack_deadline_ = runs ? now + ack_timeout() : wire::kNever;
}

std::optional<WcStatus> Requester::failure() const {
  if (oldest_failure_) return oldest_failure_;
  // Requests before the unreadable one end first; their own failure would come first, too. The
  // request's own packets may be in flight, without AckReq.
  if (!local_failure_ || cursor_ != queue_.head()) return std::nullopt;
  return queue_.front().is_defective() ? queue_.front().defect : WcStatus::kLocalProtection;
}

void Requester::flush(std::optional<WcStatus> first, NicOutput& out) {
  queue_.flush(first, out);
  una_ = next_ = posted_ = sent_;
  forget_progress();
}

void Requester::drain() {
  drain_limit_ = una_;
  for (std::uint64_t p = queue_.head(); p < queue_.tail() && queue_.at(p).first_packet < sent_;
       ++p) {
    drain_limit_ = queue_.at(p).end_packet();
  }
}

void Requester::jump(std::uint64_t packets) {
  assert(is_idle());
  una_ += packets;
  origin_ -= packets;  // messages of one packet
  next_ = sent_ = posted_ = una_;
}

void Requester::check_consistent() const {
  assert(una_ <= next_ && next_ <= sent_ && sent_ <= posted_);
  assert(requested_end_ <= next_);
  assert(sent_ - una_ < 2 * std::uint64_t{qp_.port.config.window_packets});
  assert(queue_.empty() ? una_ == posted_ : queue_.front().end_packet() > una_);
  assert(cursor_ >= queue_.head() && cursor_ <= queue_.tail());
  assert(cursor_ == queue_.tail() ||
         (queue_.at(cursor_).first_packet <= next_ && next_ < queue_.at(cursor_).end_packet()));
  assert(ack_deadline_ == wire::kNever || una_ < next_);
  assert(fetches_in_flight_ <= next_ - una_ && fetches_in_flight_ <= kMaxRdAtomic);
  assert(!waits_for_receiver_ || rnr_deadline_ != wire::kNever);
  assert(!waits_for_receiver_ || probing_ != qp_.port.config.manners.lacks_caution);
}

}  // namespace cepheus::rnic
