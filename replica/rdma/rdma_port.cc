// open() makes libmcast's context, and on its device a completion channel and one queue of at most
// kCompletions entries. A group without progress fails after kGroupTimeLimitMs, because the volume
// finds the cause by its own pings. arm() takes waiting events away first, and requests one
// notification at most.
#include "replica/rdma/rdma_port.h"

#include <algorithm>

#include "wire/nonblocking.h"

namespace cepheus::replica {

constexpr int kCompletions = 4096;
// A group without progress for this long is formed anew: the volume finds the cause in another way.
constexpr unsigned kGroupTimeLimitMs = 1000;

wire::Result<std::unique_ptr<RdmaPort>> RdmaPort::open(const std::string& device) {
  std::unique_ptr<RdmaPort> port(new RdmaPort);
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.device = device.empty() ? nullptr : device.c_str();
  params.progress_timeout_ms = kGroupTimeLimitMs;
  if (mcast_context_create(&params, &port->groups_) != MCAST_OK) {
    port->groups_ = nullptr;
    return wire::unavailable(mcast_last_error());
  }
  mcast_context_query(port->groups_, &port->attributes_);
  mcast_context_verbs(port->groups_, &port->verbs_);
  ibv_context* const context = port->verbs_.context;
  const auto refused = [&](const char* what) {
    return wire::unavailable(std::string(port->attributes_.device) + " lacks " + what);
  };
  ibv_device_attr limits{};
  if (ibv_query_device(context, &limits) != 0) return refused("limits");
  port->channel_.reset(ibv_create_comp_channel(context));
  if (!port->channel_ || !wire::set_nonblocking(port->channel_->fd)) {
    return refused("completion channel");
  }
  const int entries = std::min(kCompletions, std::max(limits.max_cqe, 1));
  port->queue_.reset(ibv_create_cq(context, entries, nullptr, port->channel_.get(), 0));
  if (!port->queue_) return refused("completion queue");
  return port;
}

RdmaPort::~RdmaPort() {
  queue_.reset();
  channel_.reset();
  if (groups_ != nullptr) mcast_context_destroy(groups_);
}

bool RdmaPort::is_up() const {
  mcast_context_attr_t now = MCAST_CONTEXT_ATTR_INIT;
  return mcast_context_query(groups_, &now) == MCAST_OK && now.is_up != 0;
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
