// Owners of libibverbs' objects.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace cepheus::mcast {

struct VerbsDeleter {
  void operator()(ibv_context* p) const { ibv_close_device(p); }
  void operator()(ibv_pd* p) const { ibv_dealloc_pd(p); }
  void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  void operator()(ibv_qp* p) const { ibv_destroy_qp(p); }
  void operator()(ibv_mr* p) const { ibv_dereg_mr(p); }
};

using ContextHandle = std::unique_ptr<ibv_context, VerbsDeleter>;
using PdHandle = std::unique_ptr<ibv_pd, VerbsDeleter>;
using CqHandle = std::unique_ptr<ibv_cq, VerbsDeleter>;
using QpHandle = std::unique_ptr<ibv_qp, VerbsDeleter>;
using MrHandle = std::unique_ptr<ibv_mr, VerbsDeleter>;

}  // namespace cepheus::mcast
