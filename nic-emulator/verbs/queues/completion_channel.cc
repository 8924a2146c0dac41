// A linked list through the queues themselves, oldest first: notify() appends, take() removes the
// head. The descriptor is readable exactly while the list has a queue. take() holds the lock with
// cancellation disabled, and waits without it. withdraw() searches the list, whose length is the
// number of waiting queues.
#include "nic-emulator/verbs/queues/completion_channel.h"

#include <mutex>

#include "nic-emulator/verbs/cancellation.h"

namespace cepheus::verbs {

wire::Result<std::unique_ptr<CompletionChannel>> CompletionChannel::create() {
  auto ready = Readiness::create();
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<CompletionChannel>(new CompletionChannel(std::move(*ready)));
}

void CompletionChannel::notify(EventSource& source) {
  const std::scoped_lock lock(mutex_);
  if (source.waiting_) return;
  source.waiting_ = true;
  source.next_ = nullptr;
  if (tail_ == nullptr) {
    head_ = &source;
    ready_.set();
  } else {
    tail_->next_ = &source;
  }
  tail_ = &source;
}

void* CompletionChannel::take() {
  for (;;) {
    {
      const Uncancelled uncancelled;
      const std::scoped_lock lock(mutex_);
      if (EventSource* source = head_; source != nullptr) {
        unlink(*source);
        ++source->handed_out_;
        return source->owner_;
      }
    }
    if (!ready_.wait()) return nullptr;
  }
}

std::uint32_t CompletionChannel::withdraw(EventSource& source) {
  const std::scoped_lock lock(mutex_);
  if (source.waiting_) unlink(source);
  return source.handed_out_;
}

void CompletionChannel::on_forked() {
  new (&mutex_) InnerMutex;
  ready_.renew();
  while (head_ != nullptr) {
    EventSource* const source = head_;
    head_ = source->next_;
    source->waiting_ = false;
    source->next_ = nullptr;
  }
  tail_ = nullptr;
}

void CompletionChannel::unlink(EventSource& source) {
  EventSource* before = nullptr;
  // The process may have been forked while another thread was adding it: then it is not here.
  for (EventSource* at = head_; at != nullptr && at != &source; at = at->next_) before = at;
  (before == nullptr ? head_ : before->next_) = source.next_;
  if (tail_ == &source) tail_ = before;
  source.waiting_ = false;
  source.next_ = nullptr;
  if (head_ == nullptr) ready_.clear();
}

}  // namespace cepheus::verbs
