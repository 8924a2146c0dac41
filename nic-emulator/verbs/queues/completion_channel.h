// Completion events of many queues behind one descriptor that programs may poll (IBTA 11.4.2.2).
//
// A queue waits here at most once: before the program has fetched a queue's event, a second one
// has no new information. So the list is bounded by the number of queues, and nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>

#include "nic-emulator/verbs/device/inner_mutex.h"
#include "nic-emulator/verbs/device/readiness.h"
#include "wire/result.h"

namespace cepheus::verbs {

class CompletionChannel;

// A part of a completion queue that can wait in a channel. The channel's lock guards its fields.
class EventSource {
 public:
  explicit EventSource(void* owner) : owner_(owner) {}
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  void* owner() const { return owner_; }

 private:
  friend class CompletionChannel;
  void* const owner_;
  EventSource* next_ = nullptr;
  bool waiting_ = false;
  std::uint32_t handed_out_ = 0;
};

// Thread-safe. Its lock is taken last (live_nic.h states the order).
class CompletionChannel {
 public:
  static wire::Result<std::unique_ptr<CompletionChannel>> create();

  int fd() const { return ready_.fd(); }
  void notify(EventSource& source);
  // The owner of the next event. Waits, unless the program made the descriptor non-blocking; null
  // with errno EAGAIN or EINTR. The wait is a cancellation point.
  void* take();
  // Drops the source's waiting event; returns how many of its events take() has handed out.
  std::uint32_t withdraw(EventSource& source);
  // In the child of a fork(): unlocks, and drops all events.
  void on_forked();

 private:
  explicit CompletionChannel(Readiness ready) : ready_(std::move(ready)) {}
  void unlink(EventSource& source);

  Readiness ready_;
  InnerMutex mutex_;
  EventSource* head_ = nullptr;
  EventSource* tail_ = nullptr;
};

}  // namespace cepheus::verbs
