// epoll(7) reports up to 64 descriptors at a time; the rest follows in the next wait. Each watch
// has a generation in its event's data. So an event for a descriptor that was forgotten, and
// perhaps reused since, runs no handler.
#include "switch-emulator/live/control/poller.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "switch-emulator/ports/epoll_wait.h"

namespace cepheus::live {

wire::Result<Poller> Poller::create() {
  fabric::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) {
    return wire::call_failed("can't make an epoll descriptor");
  }
  return Poller(std::move(epoll));
}

bool Poller::watch(int fd, std::uint32_t events, Handler handler) {
  const bool known = watches_.contains(fd);
  const std::uint32_t generation = ++generation_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd);
  if (epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watches_.insert_or_assign(fd, Watch{generation, std::move(handler)});
  return true;
}

void Poller::forget(int fd) {
  if (watches_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Poller::await(wire::Duration timeout) {
  const int ready = fabric::wait_for_events(epoll_.get(), events_, timeout);
  // A caller that took this for silence would never sleep again.
  if (ready < 0) throw std::system_error(errno, std::generic_category(), "can't wait for events");
  ready_ = static_cast<std::size_t>(ready);
}

void Poller::dispatch() {
  for (std::size_t i = 0; i < ready_; ++i) {
    const std::uint64_t key = events_[i].data.u64;
    const auto found = watches_.find(static_cast<int>(key & 0xFFFFFFFF));
    if (found == watches_.end() || found->second.generation != key >> 32) continue;
    const Handler handler = found->second.handler;  // copied, because it may remove itself
    handler(events_[i].events);
  }
  ready_ = 0;
}

}  // namespace cepheus::live
