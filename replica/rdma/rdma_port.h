// One device port of a volume's program: its context for groups, and beside it plain verbs for reads and copies.
#pragma once

#include <mcast/mcast.h>

#include <memory>
#include <span>
#include <string>

#include "libmcast/device.h"
#include "wire/result.h"

namespace cepheus::replica {

class RdmaPort {
 public:
  // `device` empty: as libmcast chooses.
  static wire::Result<std::unique_ptr<RdmaPort>> open(const std::string& device);
  ~RdmaPort();
  RdmaPort(const RdmaPort&) = delete;
  RdmaPort& operator=(const RdmaPort&) = delete;

  mcast_context_h groups() const { return groups_; }
  const mcast::Device& device() const { return *device_; }
  ibv_cq* queue() const { return queue_.get(); }
  // False: it never serves again, nor does what was made of it. Another one may be opened.
  bool is_up() const { return device_->is_up(); }

  // All that libmcast can do now, its control messages among it.
  void progress_groups();
  std::size_t poll(std::span<ibv_wc> out);

  // Readable when something completed on queue() since arm(); poll() once more after that.
  int event_fd() const { return channel_->fd; }
  void arm();

 private:
  struct ChannelDeleter {
    void operator()(ibv_comp_channel* p) const { ibv_destroy_comp_channel(p); }
  };

  RdmaPort() = default;

  mcast_context_h groups_ = nullptr;
  std::unique_ptr<mcast::Device> device_;
  std::unique_ptr<ibv_comp_channel, ChannelDeleter> channel_;
  mcast::CqHandle queue_;
  bool is_armed_ = false;
};

}  // namespace cepheus::replica
