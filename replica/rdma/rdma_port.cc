#include "replica/rdma/rdma_port.h"

#include <fcntl.h>

#include <algorithm>

namespace cepheus::replica {
namespace {

constexpr int kCompletions = 4096;
// libmcast looks at its control messages in every 64th call.
constexpr int kControlTurn = 64;
// A group that does not move for so long is made anew: the volume has another way to find out who is to blame.
constexpr unsigned kGroupPatienceMs = 1000;

}  // namespace

wire::Result<std::unique_ptr<RdmaPort>> RdmaPort::open(const std::string& device) {
  std::unique_ptr<RdmaPort> port(new RdmaPort);
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.device = device.empty() ? nullptr : device.c_str();
  params.progress_timeout_ms = kGroupPatienceMs;
  if (mcast_context_create(&params, &port->groups_) != MCAST_OK) {
    port->groups_ = nullptr;
    return wire::fail(wire::ErrorCode::kUnavailable, mcast_last_error());
  }
  mcast_context_attr_t attr;
  mcast_context_query(port->groups_, &attr);
  auto opened = mcast::Device::open({attr.device, attr.gid_index, attr.path_mtu});
  if (!opened) return wire::fail(wire::ErrorCode::kUnavailable, opened.error().text);
  port->device_ = std::move(*opened);
  const auto refused = [&](const char* what) {
    return wire::fail(wire::ErrorCode::kUnavailable, port->device_->name() + " gives no " + what);
  };
  port->channel_.reset(ibv_create_comp_channel(port->device_->context()));
  if (!port->channel_) return refused("completion channel");
  fcntl(port->channel_->fd, F_SETFL, fcntl(port->channel_->fd, F_GETFL) | O_NONBLOCK);
  const int entries = std::min(kCompletions, static_cast<int>(port->device_->max_completions()));
  port->queue_.reset(
      ibv_create_cq(port->device_->context(), entries, nullptr, port->channel_.get(), 0));
  if (!port->queue_) return refused("completion queue");
  return port;
}

RdmaPort::~RdmaPort() {
  queue_.reset();
  channel_.reset();
  device_.reset();
  if (groups_ != nullptr) mcast_context_destroy(groups_);
}

void RdmaPort::progress_groups() {
  for (int i = 0; i < kControlTurn; ++i) mcast_progress(groups_);
}

std::size_t RdmaPort::poll(std::span<ibv_wc> out) {
  const int n = ibv_poll_cq(queue_.get(), static_cast<int>(out.size()), out.data());
  return static_cast<std::size_t>(std::max(n, 0));
}

void RdmaPort::arm() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &unused) == 0) {
    ibv_ack_cq_events(queue, 1);
    is_armed_ = false;
  }
  if (is_armed_) return;
  is_armed_ = ibv_req_notify_cq(queue_.get(), 0) == 0;
}

}  // namespace cepheus::replica
