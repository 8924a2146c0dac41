// The bulk lane behind UCT's tag calls: users' buffers are posted to the group's queue pair as they
// are. The tag's low 32 bits travel as immediate data. Receives match in the order of posting, not
// by tag. A receive whose tag does not fit completes with UCS_ERR_NO_MESSAGE. Immediate data of the
// program, more than one piece, and cancelling a receive are refused.
#include "ucx-transport/memory_domain.h"
#include "ucx-transport/operation.h"

namespace cepheus::uct {

namespace {

void recv_done(mcast_op_t* op, mcast_status_t status, size_t length, uint32_t imm) {
  auto* operation = static_cast<Operation*>(op->user);
  uct_tag_context_t* ctx = operation->ctx;
  const uct_tag_t low = 0xFFFFFFFFu;
  const uct_tag_t sender_tag = (operation->tag & ~low) | imm;
  ucs_status_t ucs = to_ucs(status);
  if (status == MCAST_OK && ((imm ^ operation->tag) & operation->mask & low) != 0) {
    ucs = UCS_ERR_NO_MESSAGE;  // members disagree on the order of operations: the data is another
                               // message's
  }
  if (!end(operation, status)) return;
  if (ucs == UCS_OK) ctx->tag_consumed_cb(ctx);
  ctx->completed_cb(ctx, sender_tag, 0, length, nullptr, ucs);
}

}  // namespace

ucs_status_t ep_tag_eager_zcopy(uct_ep_h ep, uct_tag_t tag, uint64_t imm, const uct_iov_t* iov,
                                size_t iovcnt, unsigned, uct_completion_t* comp) {
  InterfaceState& state = *interface_of(ep)->state;
  if (imm != 0) return UCS_ERR_UNSUPPORTED;  // the wire's immediate data carries the tag
  if (iovcnt != 1 || iov->count > 1) return UCS_ERR_INVALID_PARAM;
  const size_t length = iov->count * iov->length;
  if (length > state.max_message) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t may = check_may_send(state); may != UCS_OK) return may;
  Operation* operation = take_operation(state);
  if (operation == nullptr) return UCS_ERR_NO_MEMORY;
  operation->op.done = on_done;
  operation->comp = comp;
  const mcast_status_t status =
      mcast_send(state.group, iov->buffer, length,
                 mem_for(static_cast<MemoryHandle*>(iov->memh), state.context),
                 static_cast<uint32_t>(tag), &operation->op);
  if (status != MCAST_INPROGRESS) give_back(operation);
  return to_ucs(status);
}

ucs_status_t iface_tag_recv_zcopy(uct_iface_h iface, uct_tag_t tag, uct_tag_t mask,
                                  const uct_iov_t* iov, size_t iovcnt, uct_tag_context_t* ctx) {
  InterfaceState& state = *interface_of(iface)->state;
  if (iovcnt != 1 || iov->count > 1) return UCS_ERR_INVALID_PARAM;
  if (state.group == nullptr) return UCS_ERR_CANCELED;
  Operation* operation = take_operation(state);
  if (operation == nullptr) return UCS_ERR_NO_MEMORY;
  operation->op.done = recv_done;
  operation->ctx = ctx;
  operation->tag = tag;
  operation->mask = mask;
  const mcast_status_t status =
      mcast_recv(state.group, iov->buffer, iov->count * iov->length,
                 mem_for(static_cast<MemoryHandle*>(iov->memh), state.context), &operation->op);
  if (status != MCAST_INPROGRESS) {
    give_back(operation);
    return status == MCAST_ERR_AGAIN ? UCS_ERR_EXCEEDS_LIMIT : to_ucs(status);
  }
  return UCS_OK;
}

ucs_status_t iface_tag_recv_cancel(uct_iface_h, uct_tag_context_t*, int) {
  return UCS_ERR_UNSUPPORTED;  // a posted receive can't be taken back from a queue pair
}

}  // namespace cepheus::uct
