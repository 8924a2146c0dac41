// ibv_post_send and ibv_post_recv.
#include <endian.h>

#include <algorithm>
#include <array>
#include <optional>

#include "soft-roce/verbs/queue_pair.h"

namespace cepheus::rnic {
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

// An errno, or 0.
int convert(const ibv_send_wr& from, SgeArray& sges, SendWr& to) {
  switch (from.opcode) {
    case IBV_WR_SEND:
      to.op = SendOp::kSend;
      break;
    case IBV_WR_SEND_WITH_IMM:
      to.op = SendOp::kSendImm;
      break;
    case IBV_WR_RDMA_WRITE:
      to.op = SendOp::kWrite;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      to.op = SendOp::kWriteImm;
      break;
    default:
      return EOPNOTSUPP;
  }
  const auto list = convert(from.sg_list, from.num_sge, sges);
  if (!list) return EINVAL;
  to.wr_id = from.wr_id;
  to.signaled = (from.send_flags & IBV_SEND_SIGNALED) != 0;
  to.solicited = (from.send_flags & IBV_SEND_SOLICITED) != 0;
  to.inline_data = (from.send_flags & IBV_SEND_INLINE) != 0;
  // Only what the opcode has: the rest of the caller's structure may be uninitialised.
  if (to.op == SendOp::kSendImm || to.op == SendOp::kWriteImm) to.imm = be32toh(from.imm_data);
  if (to.op == SendOp::kWrite || to.op == SendOp::kWriteImm) {
    to.remote_address = from.wr.rdma.remote_addr;
    to.rkey = from.wr.rdma.rkey;
  }
  to.sges = *list;
  return 0;
}

int send_one(Nic& engine, Instant now, Qpn qpn, const ibv_send_wr& wr, Actions& out) {
  SgeArray sges;
  SendWr converted;
  if (const int error = convert(wr, sges, converted); error != 0) return error;
  const auto posted = engine.post_send(now, qpn, converted, out);
  return posted ? 0 : to_errno(posted.error().code);
}

int recv_one(Nic& engine, Instant now, Qpn qpn, const ibv_recv_wr& wr, Actions& out) {
  SgeArray sges;
  const auto list = convert(wr.sg_list, wr.num_sge, sges);
  if (!list) return EINVAL;
  const auto posted = engine.post_recv(now, qpn, RecvWr{wr.wr_id, *list}, out);
  return posted ? 0 : to_errno(posted.error().code);
}

// Posts a list until one is refused; that one is told by `bad_wr`.
template <typename Wr, typename PostOne>
int post_list(ibv_qp* qp, Wr* wr, Wr** bad_wr, PostOne&& post_one) {
  *bad_wr = wr;
  QueuePair& ours = QueuePair::of(qp);
  LiveNic& nic = ours.nic();
  if (nic.is_abandoned()) return refuse_call(ENODEV);
  const int error = guarded([&] {
    return nic.run([&](Nic& engine, Instant now, Actions& out) {
      for (; wr != nullptr; wr = wr->next) {
        *bad_wr = wr;
        const int failed = post_one(engine, now, ours.qpn(), *wr, out);
        if (failed != 0) return failed;
      }
      return 0;
    });
  });
  if (error != 0) errno = error;
  return error;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  return post_list(qp, wr, bad_wr, send_one);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return post_list(qp, wr, bad_wr, recv_one);
}

}  // namespace cepheus::rnic
