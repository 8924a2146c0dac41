// reserve() looks for entries in the existing queues, in their order. Otherwise it makes a queue
// without the state lock, for kUsualReservations or the request if that is larger. Queues live as
// long as the context.
//
// poll() begins at another queue than the last call ended with, so a busy one does not starve the
// others. arm() fetches old events first, and requests one event of each queue at most.
#include "libmcast/completion_queues.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "wire/nonblocking.h"

namespace cepheus::mcast {

constexpr std::uint32_t kUsualReservations = 4096;

namespace {

// Null if it would block.
ChannelHandle open_channel(ibv_context* context) {
  ChannelHandle channel(ibv_create_comp_channel(context));
  if (channel && !wire::set_nonblocking(channel->fd)) channel.reset();
  return channel;
}

}  // namespace

CompletionQueues::CompletionQueues(const Device& device, std::mutex& state)
    : device_(device), state_(state), channel_(open_channel(device.context())) {}

ibv_cq* CompletionQueues::find_entries(std::uint32_t entries) {
  for (Queue& q : queues_) {
    if (q.capacity - q.reserved < entries) continue;
    q.reserved += entries;
    return q.handle.get();
  }
  return nullptr;
}

Expected<std::unique_ptr<CompletionQueues::Reservation>> CompletionQueues::reserve(
    std::uint32_t entries) {
  {
    const std::lock_guard lock(state_);
    if (ibv_cq* const queue = find_entries(entries)) {
      return std::make_unique<Reservation>(*this, queue, entries);
    }
  }
  const std::uint32_t most = device_.max_completions() / 2;
  if (entries > most) {
    return fail(MCAST_ERR_INVALID, "send_depth and recv_depth, or reduction_window, need " +
                                       std::to_string(entries) +
                                       " entries of a completion queue, and the device's have " +
                                       std::to_string(most) + ": lower them");
  }
  const std::uint32_t capacity = std::max(entries, std::min(kUsualReservations, most));
  CqHandle handle(
      ibv_create_cq(device_.context(), static_cast<int>(2 * capacity), nullptr, channel_.get(), 0));
  if (!handle) return fail(MCAST_ERR_NO_MEMORY, errno_text("no completion queue", errno));
  const std::lock_guard lock(state_);
  queues_.push_back({std::move(handle), capacity, entries});
  return std::make_unique<Reservation>(*this, queues_.back().handle.get(), entries);
}

void CompletionQueues::release(ibv_cq* queue, std::uint32_t entries) {
  const std::lock_guard lock(state_);
  const auto at = std::find_if(queues_.begin(), queues_.end(),
                               [&](const Queue& q) { return q.handle.get() == queue; });
  assert(at != queues_.end() && at->reserved >= entries);
  at->reserved -= entries;
}

std::size_t CompletionQueues::poll(std::span<ibv_wc> out) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < queues_.size() && found < out.size(); ++i) {
    next_ = next_ + 1 < queues_.size() ? next_ + 1 : 0;
    const int n = ibv_poll_cq(queues_[next_].handle.get(), static_cast<int>(out.size() - found),
                              out.data() + found);
    if (n > 0) found += static_cast<std::size_t>(n);
  }
  return found;
}

int CompletionQueues::arm() {
  if (!channel_) return -1;
  ibv_cq* fired = nullptr;
  void* unused = nullptr;
  while (ibv_get_cq_event(channel_.get(), &fired, &unused) == 0) {
    ibv_ack_cq_events(fired, 1);
    for (Queue& q : queues_) {
      if (q.handle.get() == fired) q.is_armed = false;
    }
  }
  for (Queue& q : queues_) {
    if (!q.is_armed) q.is_armed = ibv_req_notify_cq(q.handle.get(), 0) == 0;
  }
  return channel_->fd;
}

}  // namespace cepheus::mcast
