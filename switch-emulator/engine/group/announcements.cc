#include "switch-emulator/engine/group/announcements.h"

#include <algorithm>

#include "wire/situation.h"

namespace cepheus::fabric {

// Position of that member's queue, present or not.
std::size_t Announcements::place_of(PortId port) const {
  const auto at = std::ranges::lower_bound(queues_, port, {}, &Queue::port);
  return static_cast<std::size_t>(at - queues_.begin());
}

const Announcements::Queue* Announcements::find_queue(PortId port) const {
  const std::size_t at = place_of(port);
  return at < queues_.size() && queues_[at].port == port ? &queues_[at] : nullptr;
}

bool Announcements::note(PortId port, const Announced& announced, std::int64_t acked) {
  const std::size_t at = place_of(port);
  if (at == queues_.size() || queues_[at].port != port) {
    Queue queue;
    queue.port = port;
    queues_.insert(queues_.begin() + static_cast<std::ptrdiff_t>(at), queue);
  }
  Queue& queue = queues_[at];
  const auto begin = queue.entries.begin(), end = begin + queue.size;
  const auto kept = std::remove_if(begin, end, [&](const Announced& each) {
    return each.first <= acked || each.first == announced.first;
  });
  queue.size = static_cast<std::uint16_t>(kept - begin);
  if (begin + queue.size != end)
    CEPHEUS_SITUATION("an announcement replaces one that is served or repeated");
  if (queue.size == kMost) return false;
  queue.newest = queue.size;
  queue.entries[queue.size++] = announced;
  return true;
}

const Announced* Announcements::find(PortId port, std::int64_t first) const {
  const Queue* const queue = find_queue(port);
  if (queue == nullptr) return nullptr;
  for (std::size_t i = 0; i < queue->size; ++i) {
    if (queue->entries[i].first == first) return &queue->entries[i];
  }
  return nullptr;
}

const Announced* Announcements::newest(PortId port) const {
  const Queue* const queue = find_queue(port);
  return queue != nullptr && queue->size > 0 ? &queue->entries[queue->newest] : nullptr;
}

void Announcements::remove(PortId port) {
  std::erase_if(queues_, [port](const Queue& queue) { return queue.port == port; });
}

void Announcements::clear() {
  for (Queue& queue : queues_) queue.size = 0;
}

}  // namespace cepheus::fabric
