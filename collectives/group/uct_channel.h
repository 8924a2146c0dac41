// A group's end over rc_mcast, UCX's transport for groups, where the UCT plug-in interface is
// known.
#pragma once

#include <mcast/uct.h>

#include <memory>
#include <string>

#include "collectives/group/channel.h"

extern "C" {
// Exported by libucs, declared in a header that libucx-dev does not install.
ucs_status_t ucs_async_context_create(ucs_async_mode_t mode, ucs_async_context_t** async);
void ucs_async_context_destroy(ucs_async_context_t* async);
}

namespace cepheus::coll {

class UctChannel;

// The process's way into rc_mcast: its component, memory domain and worker.
class UctDomain {
 public:
  // Null: why not.
  static std::unique_ptr<UctDomain> open(const char* device, std::string& why);
  ~UctDomain();
  UctDomain(const UctDomain&) = delete;
  UctDomain& operator=(const UctDomain&) = delete;

  // See DirectChannel's constructor. Null: `why` has the reason.
  std::unique_ptr<Channel> open_channel(mcast_group_h group, Channel::Arrival arrival, void* arg,
                                        std::string& why);

 private:
  UctDomain() = default;

  rc_mcast_open_t open_interface_ = nullptr;
  uct_md_h md_ = nullptr;
  ucs_async_context_t* async_ = nullptr;
  uct_worker_h worker_ = nullptr;
};

class UctChannel final : public Channel {
 public:
  UctChannel(uct_iface_h iface, Arrival arrival, void* arg)
      : Channel(arrival, arg), iface_(iface) {}
  ~UctChannel() override;

  // The sending end, and the handler of small messages.
  ucs_status_t connect();
  Status send_small(mcast_pack_cb_t pack, void* arg) override;
  void release(void* data) override { uct_iface_release_desc(data); }
  Status send(const void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;
  Status receive(void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;

 private:
  static ucs_status_t on_small(void* arg, void* data, std::size_t length, unsigned flags);

  uct_iface_h iface_;
  uct_ep_h ep_ = nullptr;
};

}  // namespace cepheus::coll
