// A member over rc_mcast, UCX's transport for groups, where the UCT plug-in interface is known. It is
// a module of its own.
#pragma once

#include <mcast/uct.h>

#include <memory>
#include <string>
#include <vector>

#include "collectives/group/uct_domain.h"

extern "C" {
// Exported by libucs, declared in headers that libucx-dev does not install.
ucs_status_t ucs_async_context_create(ucs_async_mode_t mode, ucs_async_context_t** async);
void ucs_async_context_destroy(ucs_async_context_t* async);
void ucs_debug_disable_signals(void);
}

namespace cepheus::coll {

// The process's way into rc_mcast: its component, memory domain and worker.
class OpenUctDomain final : public UctDomain {
 public:
  OpenUctDomain() = default;
  ~OpenUctDomain() override;
  OpenUctDomain(const OpenUctDomain&) = delete;
  OpenUctDomain& operator=(const OpenUctDomain&) = delete;

  bool load(const std::string& directory, std::string& why);
  ucs_status_t make(const char* device);
  mcast_status_t open_context(const mcast_context_params_t& params, mcast_context_h* out) override;
  std::unique_ptr<Channel> open_channel(const mcast_group_params_t& params,
                                        Channel::Arrival arrival, void* arg,
                                        mcast_status_t& status) override;

 private:
  // Variables of UCX_RC_MCAST_*.
  bool set(const char* name, const std::string& value);

  uct_component_h component_ = nullptr;
  rc_mcast_context_t context_of_ = nullptr;
  rc_mcast_group_t group_of_ = nullptr;
  uct_md_h md_ = nullptr;
  ucs_async_context_t* async_ = nullptr;
  uct_worker_h worker_ = nullptr;
  uct_iface_config_t* config_ = nullptr;
};

class UctChannel final : public Channel {
 public:
  UctChannel(uct_iface_h iface, mcast_group_h group, Arrival arrival, void* arg)
      : Channel(arrival, arg), iface_(iface), group_(group) {}
  ~UctChannel() override;

  // Sets the handler of small messages.
  ucs_status_t prepare();
  mcast_group_h group() const override { return group_; }
  mcast_status_t join() override;
  mcast_status_t lead(const std::vector<mcast_member_t>& members) override;
  Status send_small(mcast_pack_cb_t pack, void* arg) override;
  void release(void* data) override { uct_iface_release_desc(data); }
  Status send(const void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;
  Status receive(void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;

 private:
  static ucs_status_t on_small(void* arg, void* data, std::size_t length, unsigned flags);
  mcast_status_t connect(const std::vector<mcast_member_t>& members);

  uct_iface_h iface_;
  mcast_group_h group_;
  uct_ep_h ep_ = nullptr;
};

}  // namespace cepheus::coll
