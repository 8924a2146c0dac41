// One device port of a volume's program: its context for groups, also used for reads and copies.
#pragma once

#include <infiniband/verbs.h>
#include <mcast/mcast.h>
#include <mcast/query.h>
#include <mcast/verbs.h>

#include <memory>
#include <span>
#include <string>

#include "wire/result.h"

namespace cepheus::replica {

class RdmaPort {
 public:
  // `device` empty: libmcast's choice.
  static wire::Result<std::unique_ptr<RdmaPort>> open(const std::string& device);
  ~RdmaPort();

  mcast_context_h groups() const { return groups_; }
  const mcast_verbs_t& verbs() const { return verbs_; }
  const mcast_context_attr_t& attributes() const { return attributes_; }
  ibv_cq* queue() const { return queue_.get(); }
  // False: the port and all objects made from it have failed for ever. Another one may be opened.
  bool is_up() const;

  std::size_t poll(std::span<ibv_wc> out);

  // Readable when work completed on queue() since arm(); then call poll() once more.
  int event_fd() const { return channel_->fd; }
  void arm();

 private:
  struct Deleter {
    void operator()(ibv_comp_channel* p) const { ibv_destroy_comp_channel(p); }
    void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  };

  RdmaPort() = default;

  mcast_context_h groups_ = nullptr;
  mcast_verbs_t verbs_ = MCAST_VERBS_INIT;
  mcast_context_attr_t attributes_ = MCAST_CONTEXT_ATTR_INIT;
  std::unique_ptr<ibv_comp_channel, Deleter> channel_;
  std::unique_ptr<ibv_cq, Deleter> queue_;
  bool is_armed_ = false;
};

struct MemoryDeleter {
  void operator()(mcast_mem* p) const { mcast_mem_deregister(p); }
};
using MemoryHandle = std::unique_ptr<mcast_mem, MemoryDeleter>;

}  // namespace cepheus::replica
