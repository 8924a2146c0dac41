// A box on virtual time: a server with cepheus-switch on one port of a network. Its NIC has rings
// that are shorter than a switch's queues, and manners that switches lack.
//
//     frames of all cables -> receive ring -> the core: SwitchNode -> transmit ring -> cables
//
// Not for switches with lossless links: a box can't pause its neighbours.
#pragma once

#include <array>
#include <deque>

#include "fabric-sim/core/cable.h"
#include "fabric-sim/core/random.h"
#include "wire/share.h"

namespace cepheus::sim {

// The defaults are a switch's manners: no box.
struct BoxManners {
  // Frames that wait for the core, data and feedback alike; 0: the core takes each at once.
  // Source: ethtool -g of mlx5, ice and bnxt: 1,024 and 2,048 by default.
  std::uint32_t receive_ring = 0;
  wire::Duration per_frame{0};  // the core's time for a frame that it takes
  // Copies that wait for the port, of all receivers together; 0: they go to the cables at once.
  std::uint32_t transmit_ring = 0;
  wire::Duration per_copy{0};  // the port's time for a copy
  // The core takes no frame while the transmit ring may lack space for its copies.
  bool waits_for_space = true;
  // A thread that moves between cores changes the transmit queue, so copies overtake each other.
  // Source: netdev_pick_tx of Linux, Documentation/networking/scaling.rst.
  bool swaps_copies = false;
  // The NIC's RoCE engine takes packets to UDP port 4791; the box sees none of them.
  // Source: Linux commit 0de60af64953 (enable_roce).
  bool swallows_roce = false;
  // Longer frames are dropped without a count. 0: none is too long.
  // Source: counters.rst of mlx5 (rx_oversize_pkts_phy); DPDK drops at rxmode.mtu.
  std::uint32_t longest_frame = 0;

  // Data packets that wait here without a loss: one user's share, as in a live box.
  std::uint32_t data_slots() const {
    return static_cast<std::uint32_t>(wire::Share<std::uint32_t>::of_one(receive_ring));
  }
  bool is_box() const {
    return receive_ring != 0 || transmit_ring != 0 || swaps_copies || swallows_roce ||
           longest_frame != 0;
  }
};

class Box final : public Actor {
 public:
  // Takes over one reference to the frame's buffer.
  class Core {
   public:
    virtual ~Core() = default;
    virtual void take_from_box(Instant now, wire::PortId port, const wire::Frame& frame) = 0;
  };

  // `ports`: the most copies of a frame. A transmit ring has space for them.
  Box(Simulator& simulator, BufferPool& pool, Core& core, const BoxManners& manners,
      std::size_t ports, std::uint64_t seed);

  // Both take over one reference to the frame's buffer.
  void receive(Instant now, wire::PortId port, const wire::Frame& frame);
  void transmit(Instant now, Cable& cable, const wire::Frame& frame);

  struct Drops {
    std::uint64_t receive_ring = 0, transmit_ring = 0, swallowed = 0, too_long = 0;
  };
  const Drops& drops() const { return drops_; }
  std::size_t frames() const { return received_.size() + waiting(); }

  void on_event(Instant now, std::uint64_t what) override;

 private:
  enum What : std::uint64_t { kTake, kSend };
  struct Received {
    wire::PortId port;
    wire::Frame frame;
  };
  struct Copy {
    Cable* cable;
    wire::Frame frame;
  };

  std::size_t waiting() const { return copies_[0].size() + copies_[1].size(); }
  bool has_space() const { return ring_ == 0 || waiting() + ports_ <= ring_; }
  void drop(std::uint64_t& count, const wire::Frame& frame);
  void arrange_take(Instant now);
  void arrange_send(Instant now);

  Simulator& simulator_;
  BufferPool& pool_;
  Core& core_;
  const BoxManners manners_;
  const std::uint32_t ports_;
  const std::uint32_t ring_;  // slots for copies; 0: no ring
  Random random_;
  std::deque<Received> received_;
  std::array<std::deque<Copy>, 2> copies_;  // the second one only if copies are swapped
  std::size_t turn_ = 0;                    // the queue that sends next
  Instant core_free_at_{}, port_free_at_{};
  bool takes_ = false, sends_ = false;  // an event is on its way
  Drops drops_;
};

}  // namespace cepheus::sim
