// A frame goes whole into reserve and share, or whole into the headroom; while the headroom holds
// anything, further frames go there, too. Released bytes leave the headroom first. The threshold
// shrinks as the shared part fills, so a port can be above it without a new frame. Source:
// wire/share.h.
#include "net/shared_buffer.h"

#include <algorithm>
#include <cassert>

#include "wire/share.h"

namespace cepheus::net {

using wire::Bytes;
using wire::PortId;

SharedBuffer::SharedBuffer(const BufferConfig& config, const std::vector<Bytes>& headroom)
    : config_(config), shared_(config.bytes) {
  for (const Bytes own : headroom) {
    ports_.push_back({.headroom = own});
    if (own == 0) continue;
    assert(shared_ >= own + config.reserve);
    shared_ -= own + config.reserve;
  }
}

Bytes SharedBuffer::threshold() const {
  return wire::dynamic_threshold(config_.share, shared_ - shared_used_);
}

// Into its reserve and its share. A frame is never split between these and the headroom.
bool SharedBuffer::fits(const Port& port, Bytes bytes) const {
  return port.in_headroom == 0 && port.used + bytes <= config_.reserve + threshold();
}

bool SharedBuffer::has_space(PortId port, Bytes bytes) const {
  const Port& in = at(port);
  return fits(in, bytes) || in.in_headroom + bytes <= in.headroom;
}

void SharedBuffer::take(PortId port, Bytes bytes) {
  Port& in = at(port);
  if (fits(in, bytes)) {
    shared_used_ -= shared_of(in);
    in.used += bytes;
    shared_used_ += shared_of(in);
  } else {
    assert(in.in_headroom + bytes <= in.headroom);
    in.in_headroom += bytes;
  }
  used_ += bytes;
}

// Headroom first: it must be free before the neighbour resumes.
void SharedBuffer::release(PortId port, Bytes bytes) {
  Port& in = at(port);
  const Bytes from_headroom = std::min(bytes, in.in_headroom);
  in.in_headroom -= from_headroom;
  assert(in.used >= bytes - from_headroom);
  shared_used_ -= shared_of(in);
  in.used -= bytes - from_headroom;
  shared_used_ += shared_of(in);
  used_ -= bytes;
}

bool SharedBuffer::wants_pause(PortId port) const {
  const Port& in = at(port);
  if (in.in_headroom > 0) return true;
  const Bytes shared = shared_of(in);
  if (shared == 0) return false;
  const Bytes above = in.paused ? config_.hysteresis : 0;
  return shared + above >= threshold();
}

void SharedBuffer::check_consistent() const {
  [[maybe_unused]] Bytes shared = 0, all = 0;
  for (const Port& port : ports_) {
    shared += shared_of(port);
    all += port.used + port.in_headroom;
    assert(port.in_headroom <= port.headroom);
  }
  assert(shared == shared_used_ && all == used_ && shared_used_ <= shared_);
}

}  // namespace cepheus::net
