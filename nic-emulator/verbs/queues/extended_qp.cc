// ibv_create_qp_ex and the ibv_wr_* builder: requests are collected between start and complete,
// then posted as one (ibv_wr_post(3)). The batch's mutex is held from ibv_wr_start to
// ibv_wr_complete or ibv_wr_abort.
//
// Builder calls return nothing, so the first error is kept and ibv_wr_complete returns it. Inline
// data is copied at once. The batch's vectors keep their memory for the next batch.
//
// Refused at creation: operations that the type of queue pair lacks, creation flags, unknown masks.
#include <endian.h>

#include "nic-emulator/verbs/next_library.h"
#include "nic-emulator/verbs/queues/address_handle.h"
#include "nic-emulator/verbs/queues/extended.h"
#include "nic-emulator/verbs/queues/queue_pair.h"

namespace cepheus::verbs {
namespace {

constexpr std::uint64_t kDatagramOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUnreliableOps =
    kDatagramOps | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kReliableOps =
    kUnreliableOps | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

std::uint64_t operations_of(ibv_qp_type type) {
  if (type == IBV_QPT_UD) return kDatagramOps;
  return type == IBV_QPT_UC ? kUnreliableOps : kReliableOps;
}

QueuePair& of(ibv_qp_ex* qp) { return *static_cast<QueuePair*>(qp); }

SendWr& new_request(ibv_qp_ex* qp, SendOp op) {
  RequestBatch& batch = of(qp).batch();
  RequestBatch::Request& request = batch.requests.emplace_back();
  request.wr.op = op;
  request.wr.wr_id = qp->wr_id;
  request.wr.signaled = (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  request.wr.solicited = (qp->wr_flags & IBV_SEND_SOLICITED) != 0;
  request.wr.fence = (qp->wr_flags & IBV_SEND_FENCE) != 0;
  request.first_sge = batch.sges.size();
  request.first_byte = batch.inline_data.size();
  return request.wr;
}

// Runs one builder call; wr_complete reports its errors.
template <typename Body>
void build(ibv_qp_ex* qp, Body&& body) {
  RequestBatch& batch = of(qp).batch();
  const int error = guarded([&] {
    body(batch);
    return 0;
  });
  if (error != 0 && batch.error == 0) batch.error = error;
}

// The same for calls about the request begun last.
template <typename Body>
void amend(ibv_qp_ex* qp, Body&& body) {
  build(qp, [&](RequestBatch& batch) {
    if (batch.requests.empty()) {
      batch.error = EINVAL;
    } else {
      body(batch, batch.requests.back());
    }
  });
}

void wr_start(ibv_qp_ex* qp) {
  RequestBatch& batch = of(qp).batch();
  batch.mutex.lock();
  batch.requests.clear();
  batch.sges.clear();
  batch.inline_data.clear();
  batch.error = 0;
}

// Fills `wrs`. The other vectors grow no more, so requests may point into them.
void resolve(RequestBatch& batch) {
  // Behind the requests' own pieces, one for each that has inline data.
  for (RequestBatch::Request& request : batch.requests) {
    if (!request.wr.inline_data) continue;
    const auto* data = batch.inline_data.data() + request.first_byte;
    request.first_sge = batch.sges.size();
    request.sges = 1;
    batch.sges.push_back(
        {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(request.bytes), 0});
  }
  batch.wrs.clear();
  for (const RequestBatch::Request& request : batch.requests) {
    SendWr& wr = batch.wrs.emplace_back(request.wr);
    wr.sges = {batch.sges.data() + request.first_sge, request.sges};
  }
}

int wr_complete(ibv_qp_ex* qp) {
  QueuePair& ours = of(qp);
  RequestBatch& batch = ours.batch();
  const std::unique_lock lock(batch.mutex, std::adopt_lock);
  if (ours.nic().is_abandoned()) return ENODEV;
  if (batch.error != 0) return batch.error;
  return guarded([&] {
    resolve(batch);
    return ours.nic().run([&](Nic& engine, Instant now, NicOutput& out) {
      Slots& slots = ours.slots().sends;
      if (!slots.has_free(batch.wrs.size())) return ENOMEM;
      const auto posted = engine.post_sends(now, ours.qpn(), batch.wrs, out);
      if (!posted) return to_errno(posted.error().code);
      slots.take(batch.wrs.size());
      return 0;
    });
  });
}

// Adds a request of `op`, which `complete` completes.
template <typename Complete>
void add(ibv_qp_ex* qp, SendOp op, Complete complete) {
  build(qp, [&](RequestBatch&) { complete(new_request(qp, op)); });
}

template <typename Complete>
void add_remote(ibv_qp_ex* qp, SendOp op, std::uint32_t rkey, std::uint64_t address,
                Complete complete) {
  add(qp, op, [&](SendWr& wr) {
    wr.rkey = rkey;
    wr.remote_address = address;
    complete(wr);
  });
}

constexpr auto kAsItIs = [](SendWr&) {};

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn,
                    std::uint32_t remote_qkey) {
  amend(qp, [&](RequestBatch& batch, RequestBatch::Request& request) {
    if (ah == nullptr) {
      batch.error = EINVAL;
      return;
    }
    request.wr.destination = AddressHandle::of(ah).destination();
    request.wr.remote_qpn = Qpn(remote_qpn);
    request.wr.qkey = remote_qkey;
  });
}

void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  amend(qp, [&](RequestBatch& batch, RequestBatch::Request& request) {
    for (std::size_t i = 0; i < count; ++i) {
      batch.sges.push_back(Sge{list[i].addr, list[i].length, list[i].lkey});
    }
    request.sges = count;
  });
}

void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  amend(qp, [&](RequestBatch& batch, RequestBatch::Request& request) {
    request.wr.inline_data = true;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* data = static_cast<const std::uint8_t*>(list[i].addr);
      batch.inline_data.insert(batch.inline_data.end(), data, data + list[i].length);
      request.bytes += list[i].length;
    }
  });
}

}  // namespace

void set_extended_operations(QueuePair& qp) {
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = [](ibv_qp_ex* q) { of(q).batch().mutex.unlock(); };
  qp.wr_send = [](ibv_qp_ex* q) { add(q, SendOp::kSend, kAsItIs); };
  qp.wr_send_imm = [](ibv_qp_ex* q, __be32 imm) {
    add(q, SendOp::kSendImm, [=](SendWr& wr) { wr.imm = be32toh(imm); });
  };
  qp.wr_send_inv = [](ibv_qp_ex* q, std::uint32_t rkey) {
    add(q, SendOp::kSendInvalidate, [=](SendWr& wr) { wr.invalidate_rkey = rkey; });
  };
  qp.wr_rdma_write = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t address) {
    add_remote(q, SendOp::kWrite, rkey, address, kAsItIs);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
    add_remote(q, SendOp::kWriteImm, rkey, address, [=](SendWr& wr) { wr.imm = be32toh(imm); });
  };
  qp.wr_rdma_read = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t address) {
    add_remote(q, SendOp::kRead, rkey, address, kAsItIs);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t address,
                            std::uint64_t compare, std::uint64_t swap) {
    add_remote(q, SendOp::kCompareSwap, rkey, address, [=](SendWr& wr) {
      wr.compare_add = compare;
      wr.swap = swap;
    });
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t address,
                              std::uint64_t addend) {
    add_remote(q, SendOp::kFetchAdd, rkey, address, [=](SendWr& wr) { wr.compare_add = addend; });
  };
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_set_sge = [](ibv_qp_ex* q, std::uint32_t lkey, std::uint64_t address,
                     std::uint32_t length) {
    const ibv_sge sge{address, length, lkey};
    wr_set_sge_list(q, 1, &sge);
  };
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_set_inline_data = [](ibv_qp_ex* q, void* address, std::size_t length) {
    const ibv_data_buf buffer{address, length};
    wr_set_inline_data_list(q, 1, &buffer);
  };
}

ibv_qp* create_extended_qp(ibv_context*, ibv_qp_init_attr_ex* init) {
  return guarded([&]() -> ibv_qp* {
    const std::uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if ((init->comp_mask & ~known) != 0) return refuse(EOPNOTSUPP);
    if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return refuse(EINVAL);
    if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0) {
      return refuse(EOPNOTSUPP);
    }
    if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
        (init->send_ops_flags & ~operations_of(init->qp_type)) != 0) {
      return refuse(EOPNOTSUPP);
    }
    // The extended structure begins with the plain one.
    ibv_qp_init_attr plain{init->qp_context, init->send_cq, init->recv_cq,   init->srq,
                           init->cap,        init->qp_type, init->sq_sig_all};
    QueuePair* const qp = create_queue_pair(ProtectionDomain::of(init->pd), plain);
    if (qp == nullptr) return nullptr;
    init->cap = plain.cap;
    return &qp->qp_base;
  });
}

}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  CEPHEUS_PASS_ON_UNLESS_OURS(qp->context, ibv_qp_to_qp_ex, qp);
  return &QueuePair::of(qp);
}
