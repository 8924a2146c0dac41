// poll_cq() empties the ring. If that finds nothing, it drives the NIC once from the program's
// thread and tries again. Arming a queue with a channel also wakes a NIC's thread that left the
// work to the program.
//
// An overrun raises one IBV_EVENT_CQ_ERR of the queue. Destruction waits for acknowledgements of
// fetched events, and is refused while a queue pair completes here (EBUSY). Limits: kMaxCqs queues
// of kMaxCqe entries, one completion vector.
#include "nic-emulator/verbs/queues/verbs_cq.h"

#include <endian.h>

#include <array>

#include "nic-emulator/verbs/device/report.h"
#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

// Ethernet has no service level, so NICs write a datagram's kind into that field. UCX takes a
// datagram for RoCE v1 without it.
constexpr std::uint8_t kRoceV2OverIpv4 = 2;

// By WcStatus.
constexpr std::array kStatuses{
    IBV_WC_SUCCESS,       IBV_WC_LOC_LEN_ERR,       IBV_WC_LOC_QP_OP_ERR,  IBV_WC_LOC_PROT_ERR,
    IBV_WC_WR_FLUSH_ERR,  IBV_WC_REM_INV_REQ_ERR,   IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
    IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_BAD_RESP_ERR,   IBV_WC_LOC_ACCESS_ERR};
static_assert(kStatuses.size() == static_cast<std::size_t>(WcStatus::kLocalAccess) + 1);

// By WcOpcode.
constexpr std::array kOpcodes{
    IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RECV,     IBV_WC_RECV_RDMA_WITH_IMM,
    IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD};
static_assert(kOpcodes.size() == static_cast<std::size_t>(WcOpcode::kFetchAdd) + 1);

ibv_wc to_verbs(const Completion& c) {
  ibv_wc wc{};
  wc.wr_id = c.wr_id;
  wc.status = kStatuses[static_cast<std::size_t>(c.status)];
  wc.opcode = kOpcodes[static_cast<std::size_t>(c.opcode)];
  wc.byte_len = c.byte_len;
  wc.qp_num = c.qpn.value();
  wc.src_qp = c.source_qpn.value();
  if (c.has_imm) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = htobe32(c.imm);
  }
  if (c.has_grh) {
    wc.wc_flags |= IBV_WC_GRH;
    wc.sl = kRoceV2OverIpv4;
  }
  return wc;
}

}  // namespace

VerbsChannel::VerbsChannel(Context& owner, std::unique_ptr<CompletionChannel> events)
    : ibv_comp_channel{}, context_(owner.shared_from_this()), events_(std::move(events)) {
  context = &owner.context;
  fd = events_->fd();
}

VerbsCq::VerbsCq(Context& owner, std::uint32_t entries, void* user_context,
                 ibv_comp_channel* its_channel)
    : ibv_cq_ex{},
      context_(owner.shared_from_this()),
      in_nic_(owner.nic().objects().queues),
      queue_(entries, its_channel == nullptr ? nullptr : &VerbsChannel::of(its_channel).events(),
             this, owner.nic().armed_queues()) {
  context = &owner.context;
  channel = its_channel;
  cq_context = user_context;
  handle = owner.next_handle();
  cqe = static_cast<int>(queue_.capacity());
  ::pthread_mutex_init(&mutex, nullptr);
  ::pthread_cond_init(&cond, nullptr);
  id_ = owner.nic().add_queue(queue_, *this);
  if (channel != nullptr) {
    ::pthread_mutex_lock(&context->mutex);
    ++channel->refcnt;
    ::pthread_mutex_unlock(&context->mutex);
  }
}

VerbsCq::~VerbsCq() {
  owner().nic().remove_queue(id_);
  const std::uint32_t fetched = queue_.retire();
  const std::uint32_t async_fetched = owner().async_events().withdraw(async_source_);
  await_acknowledgements(mutex, cond, [&] {
    return owner().nic().is_abandoned() ||  // the parent acknowledges its own
           (comp_events_completed == fetched && async_events_completed == async_fetched);
  });
  if (channel != nullptr) {
    ::pthread_mutex_lock(&context->mutex);
    --channel->refcnt;
    ::pthread_mutex_unlock(&context->mutex);
  }
}

void VerbsCq::on_event(ibv_event_type type) {
  log_verbose("completion queue overrun: completions are lost; create it with more entries");
  ibv_async_event event{};
  event.event_type = type;
  event.element.cq = as_cq();
  owner().async_events().post(event, async_source_);
}

void VerbsCq::on_forked() {
  renew_after_fork(mutex);
  new (&poll_lock_) PollLock(poll_lock_.is_needed());
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* completions) {
  VerbsCq& ours = VerbsCq::of(cq);
  ibv_wc* at = completions;
  const auto append = [&](const Completion& c) { *at++ = to_verbs(c); };
  if (const int taken = ours.queue().take(most, append); taken > 0) return taken;
  LiveNic& nic = ours.owner().nic();
  if (nic.is_abandoned()) return refuse_query(ENODEV);
  const int error = guarded([&] {
    nic.poll();
    return 0;
  });
  return error != 0 ? -1 : ours.queue().take(most, append);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  VerbsCq& ours = VerbsCq::of(cq);
  LiveNic& nic = ours.owner().nic();
  if (nic.is_abandoned()) return refuse_call(ENODEV);
  const Uncancelled uncancelled;
  ours.queue().arm(solicited_only != 0);
  if (ours.channel != nullptr) nic.on_armed();
  return 0;
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_create_comp_channel, context);
  return guarded([&]() -> ibv_comp_channel* {
    Context& ours = Context::of(context);
    if (ours.nic().is_abandoned()) return refuse(ENODEV);
    auto events = CompletionChannel::create();
    if (!events) return refuse(EMFILE);
    return new VerbsChannel(ours, std::move(*events));
  });
}

CEPHEUS_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  CEPHEUS_PASS_ON_UNLESS_OURS(channel->context, ibv_destroy_comp_channel, channel);
  ::pthread_mutex_lock(&channel->context->mutex);
  const bool in_use = channel->refcnt != 0;
  ::pthread_mutex_unlock(&channel->context->mutex);
  if (in_use) return refuse_call(EBUSY);
  const Uncancelled uncancelled;
  delete &VerbsChannel::of(channel);
  return 0;
}

CEPHEUS_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                     ibv_comp_channel* channel, int comp_vector) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_create_cq, context, cqe, cq_context, channel,
                              comp_vector);
  return guarded([&]() -> ibv_cq* {
    Context& ours = Context::of(context);
    if (ours.nic().is_abandoned()) return refuse(ENODEV);
    if (cqe < 1 || static_cast<std::uint32_t>(cqe) > kMaxCqe || comp_vector < 0 ||
        comp_vector >= context->num_comp_vectors) {
      return refuse(EINVAL);
    }
    if (is_at_limit(ours.nic().objects().queues, kMaxCqs)) return refuse(ENOMEM);
    return (new VerbsCq(ours, static_cast<std::uint32_t>(cqe), cq_context, channel))->as_cq();
  });
}

CEPHEUS_EXPORT int ibv_resize_cq(ibv_cq* cq, int cqe) {
  CEPHEUS_PASS_ON_UNLESS_OURS(cq->context, ibv_resize_cq, cq, cqe);
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > kMaxCqe) return refuse_call(EINVAL);
  return guarded([&] {
    VerbsCq& ours = VerbsCq::of(cq);
    if (!ours.queue().resize(static_cast<std::uint32_t>(cqe))) return refuse_call(EINVAL);
    cq->cqe = static_cast<int>(ours.queue().capacity());
    return 0;
  });
}

CEPHEUS_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  CEPHEUS_PASS_ON_UNLESS_OURS(cq->context, ibv_destroy_cq, cq);
  return guarded([&] {
    VerbsCq& ours = VerbsCq::of(cq);
    if (ours.users() != 0) return refuse_call(EBUSY);
    delete &ours;
    return 0;
  });
}

CEPHEUS_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  CEPHEUS_PASS_ON_UNLESS_OURS(channel->context, ibv_get_cq_event, channel, cq, cq_context);
  ::pthread_testcancel();
  auto* const ours = static_cast<VerbsCq*>(VerbsChannel::of(channel).events().take());
  if (ours == nullptr) return -1;
  *cq = ours->as_cq();
  *cq_context = ours->cq_context;
  return 0;
}

CEPHEUS_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned events) {
  CEPHEUS_PASS_ON_UNLESS_OURS(cq->context, ibv_ack_cq_events, cq, events);
  ::pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += events;
  ::pthread_cond_signal(&cq->cond);
  ::pthread_mutex_unlock(&cq->mutex);
}
