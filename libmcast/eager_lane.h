// Small messages: copied into a bounded ring of send buffers, received into buffers that are always
// posted.
//
// One registered slab holds both. A send buffer is in use until every member has acknowledged it; a
// receive buffer until the application has given it back.
#pragma once

#include <memory>

#include "libmcast/lane.h"
#include "libmcast/memory.h"
#include "libmcast/slots.h"

namespace cepheus::mcast {

struct EagerConfig {
  std::uint32_t group = 0;  // its number, for WorkId
  std::size_t max_message = 8192;
  QueueDepths depths;
};

class EagerLane final : public Lane {
 public:
  static Expected<std::unique_ptr<EagerLane>> create(const Device& device, PostedWork& work,
                                                     QueuePair& pair, MemoryBudget& budget,
                                                     const EagerConfig& config);

  // Bytes of the slab for one group.
  static std::size_t memory_needed(const EagerConfig& config);

  bool can_send() const { return !send_slots_.is_empty(); }
  // A send buffer of max_message bytes, to be filled and then posted or given back. Precondition:
  // can_send().
  std::uint32_t take_send_buffer() { return send_slots_.take(); }
  std::byte* send_buffer(std::uint32_t slot) const;
  void give_back_send_buffer(std::uint32_t slot) { send_slots_.give_back(slot); }
  bool post(std::uint32_t slot, std::size_t length, std::uint32_t imm);

  // A send that perhaps not every member has received.
  struct Sent {
    std::uint32_t slot = 0;
    std::uint32_t imm = 0;
    std::size_t length = 0;
  };
  // Oldest first; sends that failed stay. `index` < unacknowledged().
  unsigned unacknowledged() const { return sent_count_; }
  const Sent& sent(unsigned index) const { return sent_[(sent_first_ + index) % sent_.size()]; }

  // The data in a receive buffer; MCAST_RECV_HEADROOM bytes before it are the application's.
  std::byte* receive_data(std::uint32_t slot) const;
  // Takes a delivered buffer back. Posts it again if `is_usable`: a failed group's device may never
  // complete later receives. kNotDelivered: the application did not hold it.
  enum class Release { kDone, kNotDelivered, kRefused };
  Release release(std::uint32_t slot, bool is_usable);
  // The slot whose receive_data is `data`; the number of slots if none.
  std::uint32_t slot_of(const void* data) const;

  void on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) override;
  std::size_t max_message() const override { return config_.max_message; }
  // Sends complete in order.
  std::size_t sent_length(std::uint32_t) const override { return sent(0).length; }

 private:
  // kDelivered: the application holds the buffer, from the completion on.
  enum class Receive : std::uint8_t { kPosted, kDelivered, kIdle };

  EagerLane(PostedWork& work, QueuePair& pair, const EagerConfig& config,
            std::unique_ptr<Slab> slab);
  Piece receive_buffer(std::uint32_t slot) const override {
    return {receive_data(slot), config_.max_message, slab_->lkey()};
  }
  bool post_receive(std::uint32_t slot);

  const EagerConfig config_;
  std::unique_ptr<Slab> slab_;
  std::vector<Receive> receives_;
  Slots send_slots_;
  // A ring, in the order posted, which is the order in which sends complete.
  std::vector<Sent> sent_;
  unsigned sent_first_ = 0;
  unsigned sent_count_ = 0;
};

}  // namespace cepheus::mcast
