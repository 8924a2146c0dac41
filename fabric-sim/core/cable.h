// One direction of a link on virtual time: net::Link determines the delay and the faults of each
// frame, the cable delivers it.
//
// A cable out of a switch may have its own queue before it, with classes and marks. Without one,
// frames leave in the order of their arrival, and their waiting times are computed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric-sim/core/buffer_pool.h"
#include "fabric-sim/core/simulator.h"
#include "net/egress_queue.h"
#include "net/ingress_books.h"
#include "net/link.h"

namespace cepheus::sim {

// The far end of a cable.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Takes over one reference to the frame's buffer.
  virtual void receive(Instant now, wire::PortId port, const wire::Frame& frame) = 0;
};

// The near end of a cable with a queue: is called when a waiting copy is sent or lost.
class CopyWatch {
 public:
  virtual ~CopyWatch() = default;
  virtual void on_copy_left(Instant now, net::IngressBooks::EntryId entry) = 0;
};

class Cable final : public Actor {
 public:
  Cable(Simulator& simulator, BufferPool& pool, std::string name, const net::LinkConfig& link,
        FrameSink& to, wire::PortId port);

  // Before the first frame. Precondition: the link has a rate. `watch` may be null.
  void add_queue(CopyWatch* watch) {
    queue_ = std::make_unique<Queue>(link_.config());
    watch_ = watch;
  }

  // Takes over one reference to the frame's buffer. Copies a payload that is outside both the frame
  // and the pool. True if the frame has to wait. A waiting frame with an entry in the near end's
  // books is lossless: it ignores the queue's limit, and `watch` is called for it. A frame
  // with `is_reserved` has space of its own, and is lossless too.
  bool send(Instant now, const wire::Frame& frame,
            net::IngressBooks::EntryId entry = net::IngressBooks::kNone, bool is_reserved = false);
  // A pause frame has arrived from the far end.
  void on_pause(Instant now, const wire::Frame& frame);
  const net::PauseState* pause() const { return queue_ == nullptr ? nullptr : &queue_->pause(); }
  void set_faults(double loss, double duplicate, double reorder, double corrupt) {
    link_.set_faults(loss, duplicate, reorder, corrupt);
  }
  // Frames that are on their way still arrive.
  void set_up(bool up) { link_.set_up(up); }
  const net::LinkConfig& config() const { return link_.config(); }
  Instant free_at() const { return link_.free_at(); }

  // Frames offered + duplicates = delivered + dropped by a named reason + in flight.
  const net::LinkCounters& link_counters() const { return link_.counters(); }
  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t dropped_unreadable() const {
    return dropped_unreadable_;
  }  // damaged in their lengths
  std::size_t in_flight() const { return under_way() + waiting(); }
  // Whether a packet of a queue pair is under way, or any frame waits.
  bool carries_roce() const;
  std::size_t waiting() const { return queue_ == nullptr ? 0 : queue_->items(); }
  // All 0 without a queue.
  net::QueueCounters queue_counters() const {
    return queue_ == nullptr ? net::QueueCounters() : queue_->counters();
  }
  bool is_balanced() const;
  const std::string& name() const { return name_; }

  void on_event(Instant now, std::uint64_t slot) override;

 private:
  struct Waiting {
    wire::Frame frame;
    net::IngressBooks::EntryId entry;
  };
  using Queue = net::EgressQueue<Waiting>;
  // Frames that arrive in the order of sending need one event for all: that of the first.
  static constexpr std::uint64_t kFirst = ~std::uint64_t{0};
  static constexpr std::uint64_t kTransmit = kFirst - 1;  // the link is free for a waiting frame

  bool enqueue(Instant now, const wire::Frame& frame, net::IngressBooks::EntryId entry,
               bool is_reserved);
  void transmit(Instant now);
  void arrange_transmission(Instant now);
  void put_on_link(Instant now, const wire::Frame& frame);
  std::size_t under_way() const { return count_ + delayed_.size() - free_.size(); }
  void deliver_at(Instant at, const wire::Frame& frame);
  void grow();
  bool damage(wire::Frame& frame, std::uint32_t bit);

  // Members that every frame touches come first.
  Simulator& simulator_;
  BufferPool& pool_;
  FrameSink& to_;
  const wire::PortId port_;
  std::uint32_t first_ = 0, count_ = 0;
  std::uint64_t delivered_ = 0;
  Instant last_arrival_{};
  std::unique_ptr<Queue> queue_;
  CopyWatch* watch_ = nullptr;
  Instant transmit_at_ = wire::kNever;  // earliest transmission requested
  // A ring of 2^n slots, as two arrays.
  std::vector<Instant> arrivals_;
  std::vector<wire::Frame> line_;
  net::Link link_;
  std::vector<wire::Frame> delayed_;  // delayed or duplicated frames: each has its own event
  std::vector<std::uint32_t> free_;   // of their slots
  std::uint64_t dropped_unreadable_ = 0;
  const std::string name_;
};

}  // namespace cepheus::sim
