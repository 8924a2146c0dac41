// modify() checks everything first: current state, transition, values. Only then it applies the
// attributes and acts on the new state. A refused change changes nothing.
#include "nic-emulator/engine/qp_transitions.h"
#include "nic-emulator/engine/queue_pair.h"
#include "wire/ecn.h"
#include "wire/splitmix.h"

namespace cepheus::rnic {
namespace {

// Ports for RoCEv2 flows (IBTA Annex A17.9.1): 0xC000 and up, one per connection so that ECMP
// spreads them.
std::uint16_t source_port(std::uint64_t seed, Qpn qpn) {
  return static_cast<std::uint16_t>(0xC000 | (wire::splitmix(seed, qpn.value()) & 0x3FFF));
}

// Sets ECT: queues may mark the packet.
std::uint8_t as_capable(std::uint8_t traffic_class) {
  return static_cast<std::uint8_t>(wire::without_ecn(traffic_class) |
                                   static_cast<std::uint8_t>(wire::Ecn::kEct0));
}

}  // namespace

wire::Result<void> QueuePair::modify(const QpAttr& attr, std::uint32_t mask, NicOutput& out) {
  const QpState from = context_.state;
  if ((mask & kAttrCurrentState) != 0 && attr.current_state != from) {
    return wire::invalid(std::string("current state is ") + to_string(from) + ", not " +
                         to_string(attr.current_state));
  }
  const QpState to = (mask & kAttrState) != 0 ? attr.state : from;
  if (auto ok = check_transition(type(), from, to, mask); !ok) return ok;
  if (to == QpState::kInit && was_connected_ && context_.port.config.manners.is_used_once) {
    return wire::invalid("this make of NIC can't use a queue pair again: create another one");
  }
  if (auto ok = check_values(attr, mask, context_.port.config.max_mtu); !ok) return ok;

  apply(attr, mask);
  if (to == QpState::kErr) {
    if (from != QpState::kErr) enter_error(std::nullopt, "modified to err", out);
    return {};
  }
  if (to == from && to != QpState::kReset) return {};
  set_state(to, "modified");
  switch (to) {
    case QpState::kReset:
      reset();
      break;
    case QpState::kRtr:
      start_receiving(attr.rq_psn);
      break;
    case QpState::kRts:
      from == QpState::kRtr ? start_sending(attr.sq_psn) : requester_.undrain();
      break;
    case QpState::kSqd:
      if (is_rc()) requester_.drain();
      // The attribute requests the event (IBTA 10.3.1, SQD).
      owes_drained_ = (mask & kAttrDrainedEvent) != 0 && attr.drained_event;
      finish_requester(out);
      break;
    default:
      break;
  }
  return {};
}

void QueuePair::reset() {
  requester_.reset();
  responder_.reset();
  unreliable_.reset();
  uc_responder_.reset();
  if (congestion_) congestion_->reset();
  has_received_ = false;
}

void QueuePair::start_receiving(Psn first) {
  was_connected_ = true;
  first_received_ = first_sent_ = first;
  is_rc() ? responder_.start(first) : uc_responder_.start(first);
}

void QueuePair::start_sending(Psn first) {
  first_sent_ = first;
  is_rc() ? requester_.start(first) : unreliable_.start(first);
}

void QueuePair::apply(const QpAttr& attr, std::uint32_t mask) {
  QpAttr& a = context_.attr;
  if ((mask & kAttrAccess) != 0) a.access = attr.access;
  if ((mask & kAttrPathMtu) != 0) a.path_mtu = attr.path_mtu;
  if ((mask & kAttrRemoteQpn) != 0) a.remote_qpn = attr.remote_qpn;
  if ((mask & kAttrTimeout) != 0) a.timeout_code = attr.timeout_code;
  if ((mask & kAttrRetryCount) != 0) a.retry_count = attr.retry_count;
  if ((mask & kAttrRnrRetry) != 0) a.rnr_retry = attr.rnr_retry;
  if ((mask & kAttrMinRnrTimer) != 0) a.min_rnr_timer = attr.min_rnr_timer;
  if ((mask & kAttrMaxRdAtomic) != 0) a.max_rd_atomic = attr.max_rd_atomic;
  if ((mask & kAttrMaxDestRdAtomic) != 0) a.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if ((mask & kAttrAddress) != 0) {
    a.remote_ip = attr.remote_ip;
    a.traffic_class = attr.traffic_class;
    a.hop_limit = attr.hop_limit;
  }
  if ((mask & kAttrQkey) != 0) a.qkey = attr.qkey;
  if ((mask & (kAttrAddress | kAttrRemoteQpn)) != 0) make_envelope();
}

void QueuePair::make_envelope() {
  const NicConfig& config = context_.port.config;
  wire::RoceHeaders& e = context_.envelope;
  e.ethernet.destination = config.gateway;
  e.ethernet.source = config.mac;
  // As with mlx5, a program chooses the DSCP, and the NIC the ECN field.
  e.ip.tos = congestion_ ? as_capable(context_.attr.traffic_class)
                         : wire::without_ecn(context_.attr.traffic_class);
  e.ip.ttl = context_.attr.hop_limit;
  e.ip.source = config.address;
  e.ip.destination = context_.attr.remote_ip;
  e.udp.source_port = source_port(config.seed, context_.qpn);
  e.bth.destination_qp = context_.attr.remote_qpn;
}

QpAttr QueuePair::query() const {
  QpAttr a = context_.attr;
  a.state = a.current_state = context_.state;
  a.sq_psn = is_rc() ? requester_.next_psn() : unreliable_.next_psn();
  a.rq_psn = is_rc() ? responder_.expected_psn() : uc_responder_.expected_psn();
  if (context_.port.config.manners.psn_query_stands_still) {
    a.sq_psn = first_sent_;
    a.rq_psn = first_received_;
  }
  a.is_draining = context_.state == QpState::kSqd && !is_drained();
  return a;
}

}  // namespace cepheus::rnic
