// Owners of libibverbs' objects.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace cepheus::mcast {

struct VerbsDeleter {
  void operator()(ibv_context* p) const { ibv_close_device(p); }
  void operator()(ibv_pd* p) const { ibv_dealloc_pd(p); }
  void operator()(ibv_comp_channel* p) const { ibv_destroy_comp_channel(p); }
  void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  void operator()(ibv_qp* p) const { ibv_destroy_qp(p); }
};

struct MrDeleter {
  std::atomic<std::uint64_t>* registered_bytes =
      nullptr;  // of the device, which outlives the region

  void operator()(ibv_mr* p) const {
    registered_bytes->fetch_sub(p->length, std::memory_order_relaxed);
    ibv_dereg_mr(p);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, VerbsDeleter>;
using PdHandle = std::unique_ptr<ibv_pd, VerbsDeleter>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, VerbsDeleter>;
using CqHandle = std::unique_ptr<ibv_cq, VerbsDeleter>;
using QpHandle = std::unique_ptr<ibv_qp, VerbsDeleter>;
using MrHandle = std::unique_ptr<ibv_mr, MrDeleter>;

}  // namespace cepheus::mcast
