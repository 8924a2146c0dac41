// Frames on the links of a live fabric: what becomes of each there, and when it arrives.
//
// References: a frame passed in stays its caller's to release; what keeps it takes a reference of its
// own. No host's frames take all the room, of frames under way or of the queue before a slow link.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "net/link.h"
#include "switch-emulator/live/delay_line.h"
#include "switch-emulator/live/queue_share.h"
#include "switch-emulator/live/traffic.h"
#include "switch-emulator/ports/payload_pool.h"

namespace cepheus::live {

class Transit {
 public:
  static constexpr std::size_t kMaxFlights = 1 << 16;  // frames on all links

  class Arrivals {
   public:
    virtual void arrive(const Flight& flight, wire::Instant now) = 0;

   protected:
    ~Arrivals() = default;
  };
  Transit(fabric::PayloadPools& pools, std::size_t hosts, Arrivals& arrivals);

  // A link, by the number that is returned. Frames that no delay keeps arrive at once, within
  // carry(); those on a trunk do not, so that no switch is entered while another one's outputs are
  // read. `drops` counts its
  // losses.
  enum class Kind : std::uint8_t { kUplink, kDownlink, kTrunk };
  std::uint32_t add(const net::LinkConfig& config, Kind kind, LinkSideDrops& drops);
  net::Link& link(std::uint32_t number) { return links_[number].link; }
  const net::Link& link(std::uint32_t number) const { return links_[number].link; }
  Kind kind(std::uint32_t number) const { return links_[number].kind; }
  LinkSideDrops& drops(std::uint32_t number) { return *links_[number].drops; }
  // The link gets a queue of its own, which its caller keeps: these shares are the caller's then.
  std::unique_ptr<QueueShare> take_queue_share(std::uint32_t number) {
    return std::move(links_[number].queue);
  }

  // Puts a frame on its link; a pause frame before all others, and spared by faults.
  void carry(const Flight& flight, wire::Instant now);
  void carry_control(const Flight& flight, wire::Instant now);
  bool has_room(const Origin& origin) const;
  wire::Instant next_arrival() const { return delay_line_.next_arrival(); }
  // Precondition: something is under way.
  void land_next(wire::Instant now);

  // A frame that is to stay beside the link, with a reference of its own on its payload. False, and
  // counted, if there is no room for it.
  bool keep(std::uint32_t number, wire::Frame& frame);
  // ... stays no longer. The reference is its caller's to release.
  void let_go(std::uint32_t number, const wire::Frame& frame);

 private:
  struct DirectedLink {
    net::Link link;
    Kind kind;
    LinkSideDrops* drops;
    fabric::EgressShare under_way;
    std::unique_ptr<QueueShare> queue;  // null: nobody shares it, or its caller keeps it
  };
  net::Passage offer(const Flight& flight, wire::Instant now);
  void carry_corrupt(const Flight& flight, const net::Passage& passage, wire::Instant now);
  bool make_corrupt(const wire::Frame& frame, std::uint32_t bit, wire::Frame& damaged);
  void convey(const Flight& flight, wire::Instant arrival, wire::Instant now);
  void release(const wire::Frame& frame) {
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }

  fabric::PayloadPools& pools_;
  Arrivals& arrivals_;
  std::vector<DirectedLink> links_;
  DelayLine delay_line_{kMaxFlights};
  std::vector<wire::Share<std::size_t, 1>> flights_;  // under way, by host
  std::vector<std::uint8_t> contiguous_;
};

}  // namespace cepheus::live
