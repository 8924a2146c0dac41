// Modification is one hold of the NIC's lock: query the state, convert, modify, record what the
// engine does not keep. Before ERR, RESET and destruction the NIC takes in packets that have
// arrived. RESET and destruction also drop the queue pair's completions and free its slots.
//
// Destruction: the listener goes first, the engine's queue pair second, and then the call waits for
// acknowledgements of fetched events. Refused: raw packets and XRC (EOPNOTSUPP), queues of another
// context (EINVAL).
#include "nic-emulator/verbs/queues/queue_pair.h"

#include "nic-emulator/verbs/next_library.h"
#include "nic-emulator/verbs/queues/extended.h"
#include "nic-emulator/verbs/queues/qp_attributes.h"

namespace cepheus::verbs {
namespace {

// An errno, or 0 and the type.
int to_engine(ibv_qp_type type, QpType& out) {
  switch (type) {
    case IBV_QPT_RC:
      out = QpType::kRc;
      return 0;
    case IBV_QPT_UC:
      out = QpType::kUc;
      return 0;
    case IBV_QPT_UD:
      out = QpType::kUd;
      return 0;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}

bool has_its_queues(const ProtectionDomain& domain, const ibv_qp_init_attr& init) {
  return init.send_cq != nullptr && init.send_cq->context == domain.context &&
         init.recv_cq != nullptr && init.recv_cq->context == domain.context &&
         (init.srq == nullptr || init.srq->context == domain.context);
}

}  // namespace

QueuePair::QueuePair(ProtectionDomain& domain, const ibv_qp_init_attr& init, QpType type,
                     Qpn number, std::unique_ptr<QpSlots> slots)
    : ibv_qp_ex{},
      in_domain_(domain.users()),
      in_send_cq_(VerbsCq::of(init.send_cq).users()),
      in_recv_cq_(VerbsCq::of(init.recv_cq).users()),
      init_(init),
      type_(type),
      slots_(std::move(slots)) {
  if (init.srq != nullptr) in_srq_.emplace(SharedReceiveQueue::of(init.srq).users());
  qp_base.context = domain.context;
  qp_base.qp_context = init.qp_context;
  qp_base.pd = &domain;
  qp_base.send_cq = init.send_cq;
  qp_base.recv_cq = init.recv_cq;
  qp_base.srq = init.srq;
  qp_base.handle = domain.owner().next_handle();
  qp_base.qp_num = number.value();
  qp_base.state = IBV_QPS_RESET;
  qp_base.qp_type = init.qp_type;
  ::pthread_mutex_init(&qp_base.mutex, nullptr);
  ::pthread_cond_init(&qp_base.cond, nullptr);
  set_extended_operations(*this);
  nic().add_qp(number, *this);
}

QueuePair::~QueuePair() {
  // First the listener: once the queue pair is gone, another thread may get its number.
  nic().remove_qp(qpn());
  nic().run_last([&](Nic& engine, Instant, NicOutput&) {
    forget_completions();
    if (engine.holds_shared_receive(qpn())) SharedReceiveQueue::of(qp_base.srq).slots().free(1);
    return engine.destroy_qp(qpn());
  });
  const std::uint32_t fetched = owner().async_events().withdraw(async_source_);
  await_acknowledgements(qp_base.mutex, qp_base.cond, [&] {
    return nic().is_abandoned() || qp_base.events_completed == fetched;
  });
}

void QueuePair::forget_completions() {
  VerbsCq::of(qp_base.send_cq).queue().forget(qpn());
  if (qp_base.recv_cq != qp_base.send_cq) VerbsCq::of(qp_base.recv_cq).queue().forget(qpn());
  slots_->sends.clear();
  slots_->receives.clear();
}

void QueuePair::on_event(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &qp_base;
  owner().async_events().post(event, async_source_);
}

int QueuePair::modify(const ibv_qp_attr& a, int mask) {
  const auto change = [&](Nic& engine, Instant now, NicOutput& out) -> wire::Result<void> {
    const auto before = engine.query_qp(qpn());
    if (!before) return tl::unexpected(before.error());
    const auto wanted = to_engine(a, mask, before->state, type_);
    if (!wanted) return tl::unexpected(wanted.error());
    const bool held = engine.holds_shared_receive(qpn());
    if (auto done = engine.modify_qp(now, qpn(), wanted->attributes, wanted->mask, out); !done) {
      return done;
    }
    if ((mask & IBV_QP_STATE) != 0) qp_base.state = a.qp_state;
    if ((mask & IBV_QP_STATE) != 0 && a.qp_state == IBV_QPS_RESET) {
      forget_completions();
      if (held) SharedReceiveQueue::of(qp_base.srq).slots().free(1);
    }
    if ((mask & IBV_QP_AV) != 0) set_.ah_attr = a.ah_attr;
    if ((mask & IBV_QP_PORT) != 0) set_.port_num = a.port_num;
    return {};
  };
  const bool ends =
      (mask & IBV_QP_STATE) != 0 && (a.qp_state == IBV_QPS_ERR || a.qp_state == IBV_QPS_RESET);
  const auto changed = ends ? nic().run_last(change) : nic().run(change);
  if (!changed) {
    log_verbose("modify qp: " + changed.error().text);
    return to_errno(changed.error().code);
  }
  return 0;
}

int QueuePair::query(ibv_qp_attr& a, int mask, ibv_qp_init_attr* init) {
  const auto now = nic().run([&](Nic& engine, Instant, NicOutput&) {
    a = set_;
    return engine.query_qp(qpn());
  });
  if (!now) return to_errno(now.error().code);
  to_verbs(*now, a);
  // As libibverbs does: programs expect the state that they last set or queried.
  if ((mask & IBV_QP_STATE) != 0) qp_base.state = a.qp_state;
  if (init != nullptr) {
    *init = init_;
    init->cap = a.cap;
  }
  return 0;
}

QueuePair* create_queue_pair(ProtectionDomain& domain, ibv_qp_init_attr& init) {
  LiveNic& nic = domain.owner().nic();
  if (nic.is_abandoned()) return refuse(ENODEV);
  QpInit wanted;
  if (const int error = to_engine(init.qp_type, wanted.type); error != 0) return refuse(error);
  if (!has_its_queues(domain, init)) return refuse(EINVAL);
  wanted.pd = domain.id();
  wanted.send_cq = VerbsCq::of(init.send_cq).id();
  wanted.recv_cq = VerbsCq::of(init.recv_cq).id();
  wanted.cap = to_engine(init.cap);
  wanted.signal_all = init.sq_sig_all != 0;
  auto slots = std::make_unique<QpSlots>(init.cap.max_send_wr, init.cap.max_recv_wr);
  wanted.send_owner = &slots->sends;
  wanted.recv_owner = &slots->receives;
  if (init.srq != nullptr) {
    wanted.srq = SharedReceiveQueue::of(init.srq).id();
    wanted.recv_owner = &SharedReceiveQueue::of(init.srq).slots();
  }
  QpCap granted;
  const auto created = nic.run([&](Nic& engine, Instant, NicOutput&) {
    auto qpn = engine.create_qp(wanted);
    if (qpn) granted = engine.query_qp(*qpn)->cap;
    return qpn;
  });
  if (!created) return refuse_creation("create qp", created.error());
  init.cap = to_verbs(granted);
  return new QueuePair(domain, init, wanted.type, *created, std::move(slots));
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_create_qp, pd, init);
  return guarded([&]() -> ibv_qp* {
    QueuePair* const qp = create_queue_pair(ProtectionDomain::of(pd), *init);
    return qp == nullptr ? nullptr : &qp->qp_base;
  });
}

CEPHEUS_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_modify_qp, qp, attributes, mask);
  QueuePair& ours = QueuePair::of(qp);
  return call_nic(ours.nic(), [&] { return ours.modify(*attributes, mask); });
}

CEPHEUS_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask,
                                ibv_qp_init_attr* init) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_query_qp, qp, attributes, mask, init);
  QueuePair& ours = QueuePair::of(qp);
  return call_nic(ours.nic(), [&] { return ours.query(*attributes, mask, init); });
}

CEPHEUS_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_destroy_qp, qp);
  return guarded([&] {
    delete &QueuePair::of(qp);
    return 0;
  });
}

CEPHEUS_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, std::uint32_t flags) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_query_qp_data_in_order, qp, op, flags);
  return 0;
}
