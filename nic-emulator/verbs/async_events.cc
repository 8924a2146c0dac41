#include "nic-emulator/verbs/async_events.h"

#include "nic-emulator/verbs/cancellation.h"

namespace cepheus::verbs {

wire::Result<std::unique_ptr<AsyncEvents>> AsyncEvents::create(
    std::atomic<std::uint64_t>& dropped) {
  auto ready = Readiness::create();
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<AsyncEvents>(new AsyncEvents(std::move(*ready), dropped));
}

void AsyncEvents::post(const ibv_async_event& event, std::uint32_t* handed_out) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.size() == kMost) {
    ++dropped_;
    return;
  }
  waiting_.push_back({event, handed_out});
  if (waiting_.size() == 1) ready_.set();
}

bool AsyncEvents::take(ibv_async_event& event) {
  for (;;) {
    {
      const Uncancelled uncancelled;
      const std::scoped_lock lock(mutex_);
      if (!waiting_.empty()) {
        event = waiting_.front().event;
        if (waiting_.front().handed_out != nullptr) ++*waiting_.front().handed_out;
        waiting_.pop_front();
        if (waiting_.empty()) ready_.clear();
        return true;
      }
    }
    if (!ready_.wait()) return false;
  }
}

void AsyncEvents::on_forked() {
  new (&mutex_) InnerMutex;
  new (&waiting_) std::deque<Waiting>;  // another thread may have been about to change the old one
  ready_.renew();
}

std::uint32_t AsyncEvents::withdraw(const std::uint32_t& handed_out) {
  const std::scoped_lock lock(mutex_);
  const std::size_t removed =
      std::erase_if(waiting_, [&](const Waiting& each) { return each.handed_out == &handed_out; });
  if (removed > 0 && waiting_.empty()) ready_.clear();
  return handed_out;
}

}  // namespace cepheus::verbs
