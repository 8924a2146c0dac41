// A group's end over libmcast itself: for any version of UCX, or none.
#pragma once

#include <memory>

#include "collectives/group/channel.h"

namespace cepheus::coll {

class DirectChannel final : public Channel {
 public:
  // `arrival`: null for a bulk lane.
  static std::unique_ptr<Channel> open(mcast_context_h context, const mcast_group_params_t& params,
                                       Arrival arrival, void* arg, mcast_status_t& status);
  ~DirectChannel() override { mcast_group_destroy(group_); }

  mcast_group_h group() const override { return group_; }
  mcast_status_t join() override { return MCAST_OK; }
  mcast_status_t lead(const std::vector<mcast_member_t>& members) override {
    return mcast_group_lead(group_, members.data(), members.size());
  }
  Status send_small(mcast_pack_cb_t pack, void* arg) override;
  void release(void* data) override { mcast_recv_release(group_, data); }
  Status send(const void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;
  Status receive(void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;

 private:
  DirectChannel(mcast_group_h group, Arrival arrival, void* arg);
  static mcast_status_t on_small(void* arg, void* data, std::size_t length, std::uint32_t imm);

  mcast_group_h group_;
};

}  // namespace cepheus::coll
