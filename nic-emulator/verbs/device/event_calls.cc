// ibv_get_async_event and ibv_ack_async_event. Each queue pair, completion queue and shared receive
// queue counts its acknowledged events under its own mutex, and its destruction waits for that
// count. Events of the port have no count. Getting an event is a cancellation point; acknowledging
// never waits.
#include "nic-emulator/verbs/device/context.h"
#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond, std::uint32_t& completed) {
  ::pthread_mutex_lock(&mutex);
  ++completed;
  ::pthread_cond_signal(&cond);
  ::pthread_mutex_unlock(&mutex);
}

const ibv_context* context_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq->context;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp->context;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return event.element.srq->context;
    case IBV_EVENT_WQ_FATAL:
      return event.element.wq->context;
    default:
      return nullptr;  // about a port or device, without a count of acknowledgements
  }
}

}  // namespace
}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_get_async_event, context, event);
  ::pthread_testcancel();
  return Context::of(context).async_events().take(*event) ? 0 : -1;
}

CEPHEUS_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  const ibv_context* context = context_of(*event);
  if (context == nullptr) return;
  if (!is_ours(context)) {
    call_next<decltype(ibv_ack_async_event)>("ibv_ack_async_event", event);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq& cq = *event->element.cq;
    acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
  } else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
    ibv_srq& srq = *event->element.srq;
    acknowledge(srq.mutex, srq.cond, srq.events_completed);
  } else {
    ibv_qp& qp = *event->element.qp;
    acknowledge(qp.mutex, qp.cond, qp.events_completed);
  }
}
