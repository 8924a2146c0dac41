// open() registers the replica's memory with a port. join() makes connection and group anew for one
// writer's generation. fence() ends both: after it no packet of that writer stores a byte. A port
// that is down is replaced at the next open(). A join that fails halfway leaves neither group nor
// connection. A device that stores by DMA is refused for a mapped file, as a flush would miss its
// data.
#include "replica/server/data_path.h"

#include <mcast/senders.h>
#include <mcast/verbs.h>
#include <mcast/wait.h>

#include <cstring>

namespace cepheus::replica {

wire::Result<void> DataPath::open() {
  if (port_ && port_->is_up()) return {};
  fence();
  memory_.reset();
  port_.reset();
  auto port = RdmaPort::open(device_);
  if (!port) return tl::unexpected(port.error());
  if (maps_file_ && (*port)->verbs().stores_in_process == 0) {
    return wire::invalid(std::string((*port)->attributes().device) +
                         " stores data by DMA, which makes no page of a mapped file dirty: a flush "
                         "would miss data. Serve the replica with --cache direct");
  }
  mcast_mem_h memory = nullptr;
  if (mcast_mem_register_shared((*port)->groups(), data_.data(), data_.size(), &memory) !=
      MCAST_OK) {
    return wire::unavailable(mcast_last_error());
  }
  port_ = std::move(*port);
  memory_.reset(memory);
  return {};
}

wire::Result<JoinReply> DataPath::join(const RcName& writer, Multicast multicast) {
  fence();
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  auto connection = RcConnection::create(*port_, 0);
  if (!connection) return tl::unexpected(connection.error());
  if (auto connected = (*connection)->connect(writer); !connected) {
    return tl::unexpected(connected.error());
  }
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.send_depth = params.recv_depth = 1;
  params.sender_group = multicast == Multicast::kMcRdma ? 1 : 0;
  mcast_member_t member;
  mcast_region_t region{};
  size_t regions = 1;
  if (mcast_group_create(port_->groups(), &params, &group_) != MCAST_OK ||
      mcast_region_publish_part(group_, kDataRegion, memory_.get(), 0, data_.size()) != MCAST_OK ||
      mcast_group_member(group_, &member) != MCAST_OK ||
      (params.sender_group != 0 && mcast_group_regions(group_, &region, &regions) != MCAST_OK)) {
    const std::string why = mcast_last_error();
    fence();
    return wire::unavailable(why);
  }
  connection_ = std::move(*connection);
  // No completions come here, so the queue stays armed: a NIC in user space must not leave packets
  // to a program that polls rarely.
  port_->arm();
  JoinReply reply;
  static_assert(sizeof reply.member == sizeof member);
  std::memcpy(reply.member.data(), &member, sizeof member);
  static_assert(sizeof reply.region == sizeof region);
  std::memcpy(reply.region.data(), &region, sizeof region);
  reply.rc = connection_->name();
  reply.rkey = mcast_mem_verbs(memory_.get())->rkey;
  reply.address = reinterpret_cast<std::uintptr_t>(data_.data());
  return reply;
}

void DataPath::fence() {
  connection_.reset();
  if (group_ != nullptr) mcast_group_destroy(group_);
  group_ = nullptr;
}

bool DataPath::is_registering() const {
  return group_ != nullptr && mcast_group_test(group_) == MCAST_INPROGRESS;
}

void DataPath::progress() {
  if (port_) mcast_progress_all(port_->groups());
}

std::string DataPath::state() const {
  if (group_ == nullptr) return "none";
  const mcast_status_t status = mcast_group_test(group_);
  return status == MCAST_OK           ? "member"
         : status == MCAST_INPROGRESS ? "joining"
                                      : mcast_status_string(status);
}

}  // namespace cepheus::replica
