// ibv_post_send, ibv_post_recv and ibv_post_srq_recv. A list is posted under one hold of the NIC's
// lock, in its order. At the first refusal `bad_wr` points to that request, and earlier ones stay
// posted.
//
// Requests are converted on the stack; nothing is allocated here. More pieces than any queue takes
// are refused with EINVAL, an operation that the engine lacks with EOPNOTSUPP. Without a free slot
// the error is ENOMEM, even if the engine has finished requests: slots return when the program
// polls.
#include <endian.h>

#include <algorithm>
#include <array>
#include <optional>

#include "nic-emulator/verbs/queues/address_handle.h"
#include "nic-emulator/verbs/queues/queue_pair.h"
#include "nic-emulator/verbs/queues/shared_receive_queue.h"

namespace cepheus::verbs {
namespace {

using SgeArray = std::array<Sge, std::max(kMaxCap.max_send_sge, kMaxCap.max_recv_sge)>;

// Empty if there are more than any queue takes.
std::optional<std::span<const Sge>> convert(const ibv_sge* list, int count, SgeArray& out) {
  if (count < 0 || static_cast<std::size_t>(count) > out.size()) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = Sge{list[i].addr, list[i].length, list[i].lkey};
  }
  return std::span<const Sge>(out.data(), static_cast<std::size_t>(count));
}

// By ibv_wr_opcode; empty for LOCAL_INV and BIND_MW.
constexpr std::array<std::optional<SendOp>, IBV_WR_SEND_WITH_INV + 1> kSendOps{
    SendOp::kWrite, SendOp::kWriteImm,      SendOp::kSend,     SendOp::kSendImm,
    SendOp::kRead,  SendOp::kCompareSwap,   SendOp::kFetchAdd, std::nullopt,
    std::nullopt,   SendOp::kSendInvalidate};
static_assert(kSendOps[IBV_WR_SEND_WITH_IMM] == SendOp::kSendImm &&
              kSendOps[IBV_WR_ATOMIC_FETCH_AND_ADD] == SendOp::kFetchAdd);

std::optional<SendOp> to_engine(ibv_wr_opcode opcode) {
  return opcode < kSendOps.size() ? kSendOps[opcode] : std::nullopt;
}

// Fields of this operation only: the rest of the caller's structure may be uninitialised.
void convert_operation(const ibv_send_wr& from, SendWr& to) {
  switch (to.op) {
    case SendOp::kSend:
      break;
    case SendOp::kSendInvalidate:
      to.invalidate_rkey = from.invalidate_rkey;
      break;
    case SendOp::kSendImm:
      to.imm = be32toh(from.imm_data);
      break;
    case SendOp::kWriteImm:
      to.imm = be32toh(from.imm_data);
      [[fallthrough]];
    case SendOp::kWrite:
    case SendOp::kRead:
      to.remote_address = from.wr.rdma.remote_addr;
      to.rkey = from.wr.rdma.rkey;
      break;
    case SendOp::kCompareSwap:
      to.swap = from.wr.atomic.swap;
      [[fallthrough]];
    case SendOp::kFetchAdd:
      to.compare_add = from.wr.atomic.compare_add;
      to.remote_address = from.wr.atomic.remote_addr;
      to.rkey = from.wr.atomic.rkey;
      break;
  }
}

// An errno, or 0.
int convert(const ibv_send_wr& from, ibv_qp_type type, SgeArray& sges, SendWr& to) {
  const auto op = to_engine(from.opcode);
  if (!op) return EOPNOTSUPP;
  const auto list = convert(from.sg_list, from.num_sge, sges);
  if (!list) return EINVAL;
  to.op = *op;
  to.wr_id = from.wr_id;
  to.signaled = (from.send_flags & IBV_SEND_SIGNALED) != 0;
  to.solicited = (from.send_flags & IBV_SEND_SOLICITED) != 0;
  to.inline_data = (from.send_flags & IBV_SEND_INLINE) != 0;
  to.fence = (from.send_flags & IBV_SEND_FENCE) != 0;
  to.sges = *list;
  if (type != IBV_QPT_UD) {
    convert_operation(from, to);
    return 0;
  }
  if (to.op != SendOp::kSend && to.op != SendOp::kSendImm) return 0;  // fails in its turn
  if (from.wr.ud.ah == nullptr) return EINVAL;
  if (to.op == SendOp::kSendImm) to.imm = be32toh(from.imm_data);
  to.destination = AddressHandle::of(from.wr.ud.ah).destination();
  to.remote_qpn = Qpn(from.wr.ud.remote_qpn);
  to.qkey = from.wr.ud.remote_qkey;
  return 0;
}

// Posts a list until one is refused; `bad_wr` points to that one.
template <typename Wr, typename PostOne>
int post_list(LiveNic& nic, Wr* wr, Wr** bad_wr, PostOne&& post_one) {
  *bad_wr = wr;
  if (nic.is_abandoned()) return refuse_call(ENODEV);
  const int error = guarded([&] {
    return nic.run([&](Nic& engine, Instant now, NicOutput& out) {
      for (; wr != nullptr; wr = wr->next) {
        *bad_wr = wr;
        const int failed = post_one(engine, now, *wr, out);
        if (failed != 0) return failed;
      }
      return 0;
    });
  });
  if (error != 0) errno = error;
  return error;
}

// The same for receives, which `post` takes as the engine's type.
template <typename Post>
int post_receives(LiveNic& nic, Slots& slots, ibv_recv_wr* wr, ibv_recv_wr** bad_wr, Post&& post) {
  return post_list(nic, wr, bad_wr,
                   [&](Nic& engine, Instant now, const ibv_recv_wr& each, NicOutput& out) {
                     SgeArray sges;
                     const auto list = convert(each.sg_list, each.num_sge, sges);
                     if (!list) return EINVAL;
                     if (!slots.has_free()) return ENOMEM;
                     const auto posted = post(engine, now, RecvWr{each.wr_id, *list}, out);
                     if (!posted) return to_errno(posted.error().code);
                     slots.take();
                     return 0;
                   });
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  QueuePair& ours = QueuePair::of(qp);
  Slots& slots = ours.slots().sends;
  return post_list(ours.nic(), wr, bad_wr,
                   [&](Nic& engine, Instant now, const ibv_send_wr& each, NicOutput& out) {
                     SgeArray sges;
                     SendWr converted;
                     const int error = convert(each, qp->qp_type, sges, converted);
                     if (error != 0) return error;
                     if (!slots.has_free()) return ENOMEM;
                     const auto posted = engine.post_send(now, ours.qpn(), converted, out);
                     if (!posted) return to_errno(posted.error().code);
                     slots.take();
                     return 0;
                   });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  QueuePair& ours = QueuePair::of(qp);
  // A QP on a shared receive queue has none of its own (IBTA 10.8.3.3).
  if (qp->srq != nullptr) {
    *bad_wr = wr;
    return refuse_call(EINVAL);
  }
  return post_receives(ours.nic(), ours.slots().receives, wr, bad_wr,
                       [&](Nic& engine, Instant now, const RecvWr& each, NicOutput& out) {
                         return engine.post_recv(now, ours.qpn(), each, out);
                       });
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  SharedReceiveQueue& ours = SharedReceiveQueue::of(srq);
  return post_receives(ours.nic(), ours.slots(), wr, bad_wr,
                       [&](Nic& engine, Instant, const RecvWr& each, NicOutput&) {
                         return engine.post_srq_recv(ours.id(), each);
                       });
}

}  // namespace cepheus::verbs
