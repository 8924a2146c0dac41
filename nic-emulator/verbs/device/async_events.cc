// One list, oldest first; the descriptor is readable exactly while the list has an event. A bit for
// each type in AsyncSource keeps an object's second event of that type out.
//
// take() holds the lock with cancellation disabled and waits without it. In the child of a fork()
// the list is made anew and the old one leaks.
#include "nic-emulator/verbs/device/async_events.h"

#include "nic-emulator/verbs/cancellation.h"

namespace cepheus::verbs {
namespace {

std::uint32_t bit_of(const ibv_async_event& event) {
  return std::uint32_t{1} << static_cast<unsigned>(event.event_type);
}

}  // namespace

wire::Result<std::unique_ptr<AsyncEvents>> AsyncEvents::create() {
  auto ready = Readiness::create();
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<AsyncEvents>(new AsyncEvents(std::move(*ready)));
}

void AsyncEvents::post(const ibv_async_event& event, AsyncSource& source) {
  const std::scoped_lock lock(mutex_);
  if ((source.waiting_ & bit_of(event)) != 0) return;
  waiting_.push_back({event, &source});
  source.waiting_ |= bit_of(event);
  if (waiting_.size() == 1) ready_.set();
}

bool AsyncEvents::take(ibv_async_event& event) {
  for (;;) {
    {
      const Uncancelled uncancelled;
      const std::scoped_lock lock(mutex_);
      if (!waiting_.empty()) {
        event = waiting_.front().event;
        AsyncSource& source = *waiting_.front().source;
        ++source.handed_out_;
        source.waiting_ &= ~bit_of(event);
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

std::uint32_t AsyncEvents::withdraw(AsyncSource& source) {
  const std::scoped_lock lock(mutex_);
  const std::size_t removed =
      std::erase_if(waiting_, [&](const Waiting& each) { return each.source == &source; });
  source.waiting_ = 0;
  if (removed > 0 && waiting_.empty()) ready_.clear();
  return source.handed_out_;
}

}  // namespace cepheus::verbs
