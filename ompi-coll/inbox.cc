#include "ompi-coll/inbox.h"

#include <cstring>

#include "ompi-coll/agreement.h"

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
  static_cast<Inbox*>(arg)->queue_.push_back(std::move(arrived));
}

uint64_t Inbox::first_unit() const {
  EagerHeader header{};
  if (queue_.front().length < sizeof header) return kNoUnit;
  std::memcpy(&header, queue_.front().data, sizeof header);
  return header.unit;
}

std::optional<EagerHeader> Inbox::header_of(uint64_t unit) const {
  EagerHeader header{};
  if (queue_.empty() || queue_.front().length < sizeof header) return std::nullopt;
  std::memcpy(&header, queue_.front().data, sizeof header);
  return header.unit == unit ? std::optional(header) : std::nullopt;
}

void Inbox::drop_skipped() {
  while (!queue_.empty() && first_unit() < wanted_) pop().release();
}

Arrived Inbox::pop() {
  Arrived arrived = std::move(queue_.front());
  queue_.pop_front();
  return arrived;
}

void Inbox::salvage() {
  for (Arrived& each : queue_) {
    if (each.copy != nullptr) continue;
    auto copy = std::make_unique<std::byte[]>(each.length);
    std::memcpy(copy.get(), each.data, each.length);
    each.release();
    each.data = copy.get();
    each.copy = std::move(copy);
  }
}

void Inbox::clear() {
  for (Arrived& each : queue_) each.release();
  queue_.clear();
}

}  // namespace cepheus::coll
