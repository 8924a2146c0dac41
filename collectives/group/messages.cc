// test() looks at messages in the order of their start and stops at the first incomplete one.
// forget() cancels receives and hands copied sends to Kept, where they wait for the host. Freeing a
// request may destroy communicators, so free_completed() calls the host without its mutex.
#include "collectives/group/messages.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "collectives/core/parameters.h"

namespace cepheus::coll {

// Sends of communicators that have ended. Their copies stay until the host has taken them. Never
// destroyed.
struct Messages::Kept {
  std::mutex mutex;
  std::vector<Pending> sends;
};

Messages::Kept& Messages::kept() {
  static auto& kept = *new Kept;
  return kept;
}

// Frees none: that may destroy communicators, which the caller's locks may not allow.
void Messages::keep(Pending pending) {
  const std::lock_guard<std::mutex> guard(kept().mutex);
  kept().sends.push_back(std::move(pending));
}

// A request may be the last that holds its communicator: that one's messages are forgotten, and kept
// here, as it is freed.
void Messages::free_completed() {
  std::vector<Pending> completed;
  {
    const std::lock_guard<std::mutex> guard(kept().mutex);
    std::vector<Pending>& sends = kept().sends;
    const auto end = std::partition(sends.begin(), sends.end(), [](const Pending& each) {
      return !host::is_complete(*each.request);
    });
    completed.assign(std::make_move_iterator(end), std::make_move_iterator(sends.end()));
    sends.erase(end, sends.end());
  }
  for (const Pending& each : completed) host::free(each.request);
}

void Messages::forget() {
  for (; tested_ < started_; ++tested_) {
    Pending& pending = pending_[tested_];
    if (pending.is_copied && !host::is_complete(*pending.request)) {
      keep(std::exchange(pending, {}));
      continue;
    }
    if (!host::is_complete(*pending.request)) host::cancel(*pending.request);
    host::free(pending.request);
  }
  started_ = tested_ = 0;
  error_ = Code::kDone;
}

Messages::Pending& Messages::next() {
  if (started_ == pending_.size()) pending_.emplace_back();
  return pending_[started_];
}

Code Messages::start(const void* data, std::size_t size, int to, Tag tag, const Team& team,
                     Pending& out) {
  out.is_receive = false;
  out.size = size;
  if (out.is_copied) {
    const std::size_t bytes = std::max<std::size_t>(size, 1);
    if (out.capacity < bytes) {
      out.copy = std::make_unique<std::byte[]>(bytes);
      out.capacity = bytes;
    }
    if (size > 0) std::memcpy(out.copy.get(), data, size);
    data = out.copy.get();
  }
  return host::send(team.comm(), data, size, team.rank_of(to), team.tag(tag), out.request);
}

Code Messages::send(const void* data, std::size_t size, int to, Tag tag, const Team& team,
                    bool as_is) {
  Pending& pending = next();
  pending.is_copied = !as_is && size <= std::max(kCopied, parameters().copied_bytes);
  const Code rc = start(data, size, to, tag, team, pending);
  if (rc == Code::kDone) ++started_;
  return rc;
}

Code Messages::post(const void* data, std::size_t size, int to, Tag tag, const Team& team) {
  Pending pending;
  pending.is_copied = true;
  const Code rc = start(data, size, to, tag, team, pending);
  if (rc == Code::kDone) keep(std::move(pending));
  return rc;
}

Code Messages::receive(void* data, std::size_t size, int from, Tag tag, const Team& team) {
  Pending& pending = next();
  pending.is_receive = true;
  pending.is_copied = false;
  pending.size = size;
  const Code rc =
      host::receive(team.comm(), data, size, team.rank_of(from), team.tag(tag), pending.request);
  if (rc == Code::kDone) ++started_;
  return rc;
}

bool Messages::test(Code& error) {
  for (; tested_ < started_; ++tested_) {
    const Pending& pending = pending_[tested_];
    if (!host::is_complete(*pending.request)) return false;
    const host::Received received = host::received(*pending.request);
    Code error_here = received.error;
    if (error_here == Code::kDone && pending.is_receive && received.bytes != pending.size)
      error_here = received.bytes == 0 ? Code::kEmpty : Code::kTruncated;
    if (error_ == Code::kDone) error_ = error_here;
    host::free(pending.request);
  }
  started_ = tested_ = 0;
  error = std::exchange(error_, Code::kDone);
  return true;
}

}  // namespace cepheus::coll
