// A modification is one hold of the NIC's lock: first the size, then the limit. A size below the
// number of receives in use is refused, and so is a limit above a new size. If the limit fails in
// the engine, the new size stays.
//
// Destruction is refused while a queue pair uses the queue (EBUSY). Otherwise it waits until the
// program has acknowledged the events that it has fetched.
#include "nic-emulator/verbs/queues/shared_receive_queue.h"

#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

// Errors in errno; sets `attributes` to the granted capacities.
ibv_srq* create(ProtectionDomain& domain, void* user_context, ibv_srq_attr& attributes) {
  return guarded([&]() -> ibv_srq* {
    LiveNic& nic = domain.owner().nic();
    if (nic.is_abandoned()) return refuse(ENODEV);
    SrqAttr granted;
    const auto created = nic.run([&](Nic& engine, Instant, NicOutput&) {
      auto id = engine.create_srq(
          {.pd = domain.id(), .max_wr = attributes.max_wr, .max_sge = attributes.max_sge});
      if (id) granted = *engine.query_srq(*id);
      return id;
    });
    if (!created) return refuse_creation("create srq", created.error());
    attributes.max_wr = granted.max_wr;
    attributes.max_sge = granted.max_sge;
    return new SharedReceiveQueue(domain, user_context, *created, granted.max_wr);
  });
}

}  // namespace

SharedReceiveQueue::SharedReceiveQueue(ProtectionDomain& domain, void* user_context, SrqId id,
                                       std::uint32_t max_wr)
    : ibv_srq{}, in_domain_(domain.users()), id_(id), slots_(max_wr) {
  context = domain.context;
  srq_context = user_context;
  pd = &domain;
  handle = domain.owner().next_handle();
  ::pthread_mutex_init(&mutex, nullptr);
  ::pthread_cond_init(&cond, nullptr);
  nic().add_srq(id_, *this);
}

SharedReceiveQueue::~SharedReceiveQueue() {
  // First the listener: once the queue is gone, another thread's queue may get its number.
  nic().remove_srq(id_);
  nic().run([&](Nic& engine, Instant, NicOutput&) { return engine.destroy_srq(id_).has_value(); });
  const std::uint32_t fetched = owner().async_events().withdraw(async_source_);
  await_acknowledgements(mutex, cond,
                         [&] { return nic().is_abandoned() || events_completed == fetched; });
}

void SharedReceiveQueue::on_event(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.srq = this;
  owner().async_events().post(event, async_source_);
}

int SharedReceiveQueue::modify(const ibv_srq_attr& attributes, int mask) {
  if ((mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)) != 0) return EINVAL;
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  const bool arms = (mask & IBV_SRQ_LIMIT) != 0;
  return nic().run([&](Nic& engine, Instant, NicOutput& out) {
    wire::Result<void> done;
    if (resizes) {
      if (slots_.used() > attributes.max_wr) return EINVAL;
      if (arms && attributes.srq_limit > attributes.max_wr) return EINVAL;
      done = engine.resize_srq(id_, attributes.max_wr);
      if (done) slots_.resize(attributes.max_wr);
    }
    if (done && arms) done = engine.arm_srq(id_, attributes.srq_limit, out);
    return done ? 0 : to_errno(done.error().code);
  });
}

int SharedReceiveQueue::query(ibv_srq_attr& attributes) {
  const auto now =
      nic().run([&](Nic& engine, Instant, NicOutput&) { return engine.query_srq(id_); });
  if (!now) return to_errno(now.error().code);
  attributes = {.max_wr = now->max_wr, .max_sge = now->max_sge, .srq_limit = now->limit};
  return 0;
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_create_srq, pd, init);
  return create(ProtectionDomain::of(pd), init->srq_context, init->attr);
}

CEPHEUS_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  CEPHEUS_PASS_ON_UNLESS_OURS(srq->context, ibv_modify_srq, srq, attributes, mask);
  SharedReceiveQueue& ours = SharedReceiveQueue::of(srq);
  return call_nic(ours.nic(), [&] { return ours.modify(*attributes, mask); });
}

CEPHEUS_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  CEPHEUS_PASS_ON_UNLESS_OURS(srq->context, ibv_query_srq, srq, attributes);
  SharedReceiveQueue& ours = SharedReceiveQueue::of(srq);
  return call_nic(ours.nic(), [&] { return ours.query(*attributes); });
}

CEPHEUS_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  CEPHEUS_PASS_ON_UNLESS_OURS(srq->context, ibv_destroy_srq, srq);
  return guarded([&] {
    SharedReceiveQueue& ours = SharedReceiveQueue::of(srq);
    if (ours.users() != 0) return refuse_call(EBUSY);
    delete &ours;
    return 0;
  });
}
