#include "collectives/group/inbox.h"

#include <cstring>

#include "collectives/core/agreement.h"

namespace cepheus::coll {

void Arrived::release() {
  if (copy == nullptr && data != nullptr) channel->release(data);
  copy.reset();
  data = nullptr;
}

void Inbox::on_message(void* arg, Channel* channel, void* data, size_t length) {
  Arrived arrived;
  arrived.channel = channel;
  arrived.data = data;
  arrived.length = length;
  static_cast<Inbox*>(arg)->queue_.push(std::move(arrived));
}

uint64_t Inbox::first_unit() const {
  EagerHeader header{};
  if (queue_.front().length < sizeof header) return kNoUnit;
  std::memcpy(&header, queue_.front().data, sizeof header);
  return header.unit;
}

std::optional<EagerHeader> Inbox::header_of(uint64_t unit) const {
  EagerHeader header{};
  if (queue_.is_empty() || queue_.front().length < sizeof header) return std::nullopt;
  std::memcpy(&header, queue_.front().data, sizeof header);
  return header.unit == unit ? std::optional(header) : std::nullopt;
}

void Inbox::drop_skipped() {
  while (!queue_.is_empty() && first_unit() < wanted_) pop().release();
}

void Inbox::keep() {
  queue_.each([](Arrived& each) {
    if (each.copy != nullptr) return;
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
