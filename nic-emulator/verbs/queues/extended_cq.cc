// ibv_create_cq_ex and the ibv_start_poll family (ibv_create_cq_ex(3)). A poll takes one completion
// at a time into the queue's `current`, which the read calls return. The poll lock is held from a
// successful start to ibv_end_poll, unless the program has promised a single thread.
//
// Refused: completion flags beyond the standard ones, such as timestamps, and masks that this file
// does not know (EOPNOTSUPP); sizes out of range (EINVAL).
#include "nic-emulator/verbs/queues/extended.h"
#include "nic-emulator/verbs/queues/verbs_cq.h"

namespace cepheus::verbs {
namespace {

VerbsCq& of(ibv_cq_ex* cq) { return *static_cast<VerbsCq*>(cq); }
const ibv_wc& current(ibv_cq_ex* cq) { return of(cq).current(); }

int next_poll(ibv_cq_ex* cq) {
  VerbsCq& ours = of(cq);
  const int taken = poll_cq(ours.as_cq(), 1, &ours.current());
  if (taken < 0) return errno;
  if (taken == 0) return ENOENT;
  cq->wr_id = ours.current().wr_id;
  cq->status = ours.current().status;
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  of(cq).poll_lock().lock();
  const int error = next_poll(cq);
  // ibv_end_poll ends only a poll that has begun.
  if (error != 0) of(cq).poll_lock().unlock();
  return error;
}

void set_operations(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = [](ibv_cq_ex* c) { of(c).poll_lock().unlock(); };
  cq.read_opcode = [](ibv_cq_ex* c) { return current(c).opcode; };
  cq.read_vendor_err = [](ibv_cq_ex* c) { return current(c).vendor_err; };
  cq.read_byte_len = [](ibv_cq_ex* c) { return current(c).byte_len; };
  cq.read_imm_data = [](ibv_cq_ex* c) { return current(c).imm_data; };
  cq.read_qp_num = [](ibv_cq_ex* c) { return current(c).qp_num; };
  cq.read_src_qp = [](ibv_cq_ex* c) { return current(c).src_qp; };
  cq.read_wc_flags = [](ibv_cq_ex* c) { return current(c).wc_flags; };
  cq.read_slid = [](ibv_cq_ex* c) -> std::uint32_t { return current(c).slid; };
  cq.read_sl = [](ibv_cq_ex* c) { return current(c).sl; };
  cq.read_dlid_path_bits = [](ibv_cq_ex* c) { return current(c).dlid_path_bits; };
}

// An errno, or 0.
int check(const ibv_context& context, const ibv_cq_init_attr_ex& init) {
  if ((init.comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0) return EOPNOTSUPP;
  const bool flags_given = (init.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  if (flags_given && (init.flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) {
    return EOPNOTSUPP;
  }
  if ((init.wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0) return EOPNOTSUPP;
  if (init.cqe < 1 || init.cqe > kMaxCqe) return EINVAL;
  if (init.comp_vector >= static_cast<std::uint32_t>(context.num_comp_vectors)) return EINVAL;
  return 0;
}

}  // namespace

ibv_cq_ex* create_extended_cq(ibv_context* context, ibv_cq_init_attr_ex* init) {
  return guarded([&]() -> ibv_cq_ex* {
    Context& ours = Context::of(context);
    if (ours.nic().is_abandoned()) return refuse(ENODEV);
    if (const int error = check(*context, *init); error != 0) return refuse(error);
    if (is_at_limit(ours.nic().objects().queues, kMaxCqs)) return refuse(ENOMEM);
    auto* const cq = new VerbsCq(ours, init->cqe, init->cq_context, init->channel);
    set_operations(*cq);
    if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 &&
        (init->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0) {
      cq->poll_lock().promise_one_thread();
    }
    return cq;
  });
}

}  // namespace cepheus::verbs
