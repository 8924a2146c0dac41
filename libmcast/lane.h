// A group's lane, and how it uses the queue pair: eager, bulk or reductions, for the group's life.
//
// Under the context's state lock. A lane makes no callback, but notes an event. The callback comes
// later, with no lock held.
#pragma once

#include <mcast/mcast.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "libmcast/engine/posted_work.h"
#include "libmcast/queue_pair.h"

namespace cepheus::mcast {

class EagerLane;
class Group;

// Work requests name their group by number, not by address: a completion may outlive its group.
//   | group number: 32 | receive: 1 | slot: 31 |
struct WorkId {
  std::uint32_t group;
  bool is_receive;
  std::uint32_t slot;

  // No slot: QueuePair::halt(), and requests that complete only if they fail: announcements, and
  // contributions that are not the last ones of their lists.
  static constexpr std::uint32_t kMarker = 0x7FFFFFFF;
  // A part of a WRITE that is not its last one.
  static constexpr std::uint32_t kPart = kMarker - 1;

  std::uint64_t pack() const {
    return std::uint64_t{group} << 32 | std::uint64_t{is_receive} << 31 | slot;
  }
  static WorkId unpack(std::uint64_t wr_id) {
    return {static_cast<std::uint32_t>(wr_id >> 32), (wr_id >> 31 & 1) != 0,
            static_cast<std::uint32_t>(wr_id & 0x7FFFFFFF)};
  }
};

// A callback to be made.
struct Event {
  mcast_op_t* op = nullptr;  // bulk, reductions: done(op, status, length, imm)
  Group* group = nullptr;    // eager: the receive callback with `slot`'s data
  std::uint32_t slot = 0;
  mcast_status_t status = MCAST_OK;
  std::uint32_t imm = 0;
  std::size_t length = 0;
  // Of an operation's own memory: deregistered before its callback, without locks.
  MrHandle region, result_region;

  void deregister() {
    region.reset();
    result_region.reset();
  }
};
using Events = std::vector<Event>;

struct Traffic {
  std::uint64_t messages_sent = 0, bytes_sent = 0, messages_received = 0, bytes_received = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;

  // A work request of this lane has completed. `failed`: the status of its operation unless it
  // succeeded.
  virtual void on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) = 0;
  // Why the group can't go on after a completion; empty: it can.
  virtual std::string_view fault() const { return {}; }
  // Ends all outstanding operations: no completion will end them. Eager lanes have none.
  virtual void cancel(mcast_status_t, Events&) {}
  virtual std::size_t max_message() const = 0;
  // Bytes of the outstanding send of this slot, or of kPart.
  virtual std::size_t sent_length(std::uint32_t slot) const = 0;
  // Outstanding sends that end with that of this slot: those of a list.
  virtual unsigned sends_of(std::uint32_t) const { return 1; }
  // The queue pair went through RESET: posts the receive of that slot again. False: the device
  // refuses it.
  bool post_again(std::uint32_t slot) {
    return pair_.post_receive(WorkId{group_, true, slot}.pack(), receive_buffer(slot));
  }

  const Traffic& traffic() const { return traffic_; }

 protected:
  Lane(PostedWork& work, QueuePair& pair, std::uint32_t group)
      : work_(work), pair_(pair), group_(group) {}

  // The memory of that slot's receive.
  virtual Piece receive_buffer(std::uint32_t slot) const = 0;
  // False: the device refuses it. A halted queue pair gets it later.
  bool post_receive(std::uint32_t slot, const Piece& piece) {
    const std::uint64_t id = WorkId{group_, true, slot}.pack();
    if (!work_.sync().keeps(id) && !pair_.post_receive(id, piece)) return false;
    work_.on_receive_posted();
    return true;
  }

  PostedWork& work_;
  QueuePair& pair_;
  const std::uint32_t group_;  // its number
  Traffic traffic_;
};

}  // namespace cepheus::mcast
