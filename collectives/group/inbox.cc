#include "collectives/group/inbox.h"

#include <cstring>

#include "wire/situation.h"

namespace cepheus::coll {

void Arrived::release() {
  if (copy == nullptr && data != nullptr) channel->release(data);
  copy.reset();
  data = nullptr;
}

void Inbox::on_message(void* arg, Channel* channel, void* data, size_t length) {
  static_cast<Inbox*>(arg)->queue_.push({channel, data, length, nullptr});
}

std::optional<EagerHeader> Inbox::front() const {
  EagerHeader header{};
  if (queue_.is_empty() || queue_.front().length < sizeof header) return std::nullopt;
  std::memcpy(&header, queue_.front().data, sizeof header);
  return header;
}

void Inbox::keep() {
  queue_.each([](Arrived& each) {
    if (each.copy != nullptr) return;
    CEPHEUS_SITUATION("a lane ends with a message that no broadcast has taken");
    auto copy = std::make_unique<std::byte[]>(each.length);
    std::memcpy(copy.get(), each.data, each.length);
    each.release();
    each.data = copy.get();
    each.copy = std::move(copy);
  });
}

void Inbox::clear() {
  while (!queue_.is_empty()) pop().release();
}

}  // namespace cepheus::coll
