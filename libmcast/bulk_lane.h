// Large messages, straight between the callers' buffers; each operation is called back once, in the
// order posted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libmcast/lane.h"
#include "libmcast/memory.h"
#include "libmcast/slots.h"
#include "wire/announcement.h"

namespace cepheus::mcast {

// A buffer of the caller's. Memory that the caller has not registered is registered for one
// operation.
class Buffer {
 public:
  // `access` as ibv_reg_mr.
  Buffer(const void* address, std::size_t length, const Memory* memory, int access)
      : address_(const_cast<void*>(address)), length_(length), memory_(memory), access_(access) {}

  std::size_t length() const { return length_; }
  bool lacks_region() const { return length_ > 0 && memory_ == nullptr && !own_; }
  // May take long (100 ms a gigabyte where pages are pinned), and needs no lock. At most the longest
  // message of the device.
  Expected<void> register_on(const Device& device) {
    return register_on(device, device.max_message());
  }
  Expected<void> register_on(const Device& device, std::size_t most);
  // The first `length` bytes as `device` sees them. MCAST_ERR_INVALID: the memory does not cover
  // them, or allows no such access. Not if it lacks a region.
  Expected<Piece> piece(const Device& device, std::size_t length) const;
  MrHandle take_region() { return std::move(own_); }

 private:
  void* address_;
  std::size_t length_;
  const Memory* memory_;
  int access_;
  MrHandle own_;
};

// Our own memory for the announcements of WRITEs under way (wire/announcement.h). The device reads
// an announcement until it is acknowledged. Announcements end in the order of their beginning.
class AnnouncementMemory {
 public:
  // For `most` of them, of one packet each, which has at most `slot_size` bytes.
  static Expected<std::unique_ptr<AnnouncementMemory>> create(const Device& device,
                                                              std::size_t slot_size,
                                                              std::uint32_t most);

  bool is_full() const { return under_way_ == most_; }
  // Writes one down. Precondition: not full, and no more targets than a packet holds.
  Piece take(std::span<const wire::AnnouncedTarget> targets);
  // The oldest is over.
  void give_back() { --under_way_; }

 private:
  AnnouncementMemory(std::size_t slot_size, std::uint32_t most, std::unique_ptr<OwnPages> pages)
      : slot_size_(slot_size), most_(most), pages_(std::move(pages)) {}

  const std::size_t slot_size_;
  const std::uint32_t most_;
  const std::unique_ptr<OwnPages> pages_;
  std::uint32_t next_ = 0, under_way_ = 0;
};

class BulkLane final : public Lane {
 public:
  BulkLane(const Device& device, PostedWork& work, QueuePair& pair, std::uint32_t group,
           QueueDepths depths);

  // MCAST_ERR_AGAIN while the queue is full; MCAST_ERR_INVALID: too long, or not covered by its
  // memory. If the buffer lacks a region nothing is posted: all else is right, and the caller
  // registers the buffer without the state lock, then calls again.
  Expected<void> send(Buffer& buffer, std::uint32_t imm, mcast_op_t* op);
  // The same, into members' regions. Without `imm` no receive completes at members. A WRITE longer
  // than longest_part() goes in parts of that length, of which only the last has `imm`.
  Expected<void> write(Buffer& buffer, const RegionPlace& place, std::optional<std::uint32_t> imm,
                       mcast_op_t* op);
  // The same, into one of the `targets` at each member. A packet before the WRITE announces them.
  // Only if there is memory for announcements.
  Expected<void> write_to(Buffer& buffer, std::span<const wire::AnnouncedTarget> targets,
                          std::optional<std::uint32_t> imm, mcast_op_t* op);
  void set_announcements(std::unique_ptr<AnnouncementMemory> memory) {
    announcements_ = std::move(memory);
  }
  // A packet before each WRITE announces it.
  bool is_announced() const { return announcements_ != nullptr; }
  Expected<void> receive(Buffer& buffer, mcast_op_t* op);
  // Of a message, its announcement included.
  std::uint64_t packets_of(std::size_t length) const;
  // Bytes of a message that keeps a narrow way busy (SendWindow::portion); 0: any number.
  std::size_t portion() const { return work_.window().portion() * std::size_t{work_.path_mtu()}; }
  // Of a WRITE's work request.
  std::size_t longest_part() const {
    const std::uint32_t packets = work_.window().longest_part();
    return packets == 0 ? max_message() : packets * std::size_t{work_.path_mtu()};
  }
  // Parts under way, beside the send depth. Two of the longest do not fill a large window.
  static constexpr std::uint32_t kMostParts = 8;

  void on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) override;
  std::string_view fault() const override {
    if (!is_refused_) return {};
    return "the device refused a part of a WRITE: set up again with fresh groups";
  }
  void cancel(mcast_status_t status, Events& out) override;
  std::size_t max_message() const override { return device_.max_message(); }
  std::size_t sent_length(std::uint32_t slot) const override {
    return slot == WorkId::kPart ? longest_part() : sends_[slot].last;
  }

 private:
  struct Operation {
    mcast_op_t* op = nullptr;
    std::size_t length = 0;
    std::size_t last = 0;    // bytes of its last work request
    std::uint64_t turn = 0;  // order of posting
    Piece piece;             // the posted part
    MrHandle region;         // if registered for this operation
    bool is_announced = false;
  };

  // A WRITE of which not all parts have been posted. One of its own at least is under way, so that
  // an end of a part posts the next. Up to kMostParts are, with those of the WRITEs before.
  struct Parts {
    std::uint32_t slot = 0;  // of its operation
    Piece rest;
    RegionPlace place;
    std::optional<std::uint32_t> imm;
    std::uint32_t under_way = 0;  // parts; they end after those of the WRITEs before
  };
  Piece receive_buffer(std::uint32_t slot) const override { return receives_[slot].piece; }
  // As many as the window admits. False: the device refuses one.
  bool post_parts();
  void end_part(bool ok, mcast_status_t failed, Events& out);

  // `post(wr_id, piece)` hands it to the device.
  template <typename Post>
  Expected<void> start_send(Buffer& buffer, mcast_op_t* op, Post&& post);

  const Device& device_;
  std::vector<Operation> sends_, receives_;
  Slots send_slots_, receive_slots_;
  std::uint64_t turn_ = 0;
  std::optional<Parts> parts_;
  std::uint32_t parts_under_way_ = 0;
  bool is_refused_ = false;                            // a part; the group fails
  std::unique_ptr<AnnouncementMemory> announcements_;  // null: WRITEs are not announced
};

}  // namespace cepheus::mcast
