// A group's end over libmcast itself: for any version of UCX, or none.
#pragma once

#include "collectives/group/channel.h"

namespace cepheus::coll {

class DirectChannel final : public Channel {
 public:
  // `arrival`: null for a bulk lane. The group is not registered yet, and outlives its use here.
  DirectChannel(mcast_group_h group, Arrival arrival, void* arg);

  Status send_small(mcast_pack_cb_t pack, void* arg) override;
  void release(void* data) override { mcast_recv_release(group_, data); }
  Status send(const void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;
  Status receive(void* data, std::size_t length, std::uint32_t tag, Transfer& transfer) override;

 private:
  static mcast_status_t on_small(void* arg, void* data, std::size_t length, std::uint32_t imm);

  mcast_group_h group_;
};

}  // namespace cepheus::coll
