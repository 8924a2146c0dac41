// The frames that the gates of a switch hold, of all groups together: a bounded store. Its memory is
// allocated once, so a group that has held frames keeps none of it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/path.h"
#include "switch-emulator/engine/group/payload_store.h"
#include "wire/roce.h"
#include "wire/share.h"

namespace cepheus::fabric {

class HeldFrames {
 public:
  static constexpr std::size_t kMost = 512;
  // A gate's frames are a list: each one names the place of the next.
  using Place = std::uint16_t;
  static constexpr Place kNone = 0xFFFF;
  struct Held {
    Frame frame;
    wire::RoceHeaders headers;
    HeldPayload payload;
    PortId port;  // by which it came
    Place next = kNone;
  };

  explicit HeldFrames(std::size_t ports) : shares_(ports) { frames_.reserve(kMost); }

  // kNone: the store is full, or frames that came by this port have their share of it.
  Place add(const Frame& frame, const wire::RoceHeaders& headers, HeldPayload payload,
            PortId port) {
    auto& share = shares_[port.value()];
    if (!share.has_space(kMost - used_)) return kNone;
    Place place = free_;
    Held held{frame, headers, std::move(payload), port};
    if (place == kNone) {
      place = static_cast<Place>(frames_.size());
      frames_.push_back(std::move(held));
    } else {
      free_ = std::exchange(frames_[place], std::move(held)).next;
    }
    share.add();
    ++used_;
    return place;
  }
  Held& operator[](Place place) { return frames_[place]; }
  // Returns the frame's payload, and the place of the frame behind it.
  std::pair<HeldPayload, Place> remove(Place place) {
    Held& held = frames_[place];
    shares_[held.port.value()].remove();
    --used_;
    std::pair<HeldPayload, Place> found{std::move(held.payload), held.next};
    held.next = std::exchange(free_, place);
    return found;
  }
  std::size_t used() const { return used_; }

 private:
  std::vector<Held> frames_;  // never moves
  Place free_ = kNone;
  std::size_t used_ = 0;
  std::vector<wire::Share<Place>> shares_;  // by port
};

}  // namespace cepheus::fabric
