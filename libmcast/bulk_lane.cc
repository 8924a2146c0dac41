// A send takes a slot of `sends_` until its completion, which the device delivers in the order of
// posting. A WRITE longer than longest_part() goes in parts, at most kMostParts at once: the last
// one carries the operation's slot and its immediate data. A failed part ends the whole operation.
// An announced WRITE is a silent announcement and the WRITE, posted together. A full queue is
// MCAST_ERR_AGAIN; what can't be posted fails the group.
#include "libmcast/bulk_lane.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>

namespace cepheus::mcast {

Expected<std::unique_ptr<AnnouncementMemory>> AnnouncementMemory::create(const Device& device,
                                                                         std::size_t slot_size,
                                                                         std::uint32_t most) {
  auto pages = OwnPages::create(device, slot_size * most, 0);  // the device only reads it
  if (!pages) return tl::unexpected(pages.error());
  return std::unique_ptr<AnnouncementMemory>(
      new AnnouncementMemory(slot_size, most, std::move(*pages)));
}

Piece AnnouncementMemory::take(std::span<const wire::AnnouncedTarget> targets) {
  const std::span<std::byte> bytes = pages_->bytes().subspan(next_ * slot_size_, slot_size_);
  const std::span slot(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  next_ = (next_ + 1) % most_;
  ++under_way_;
  return {slot.data(), wire::Announcement::emit(targets, slot), pages_->lkey()};
}

BulkLane::BulkLane(const Device& device, PostedWork& work, QueuePair& pair, std::uint32_t group,
                   QueueDepths depths)
    : Lane(work, pair, group),
      device_(device),
      sends_(depths.send),
      receives_(depths.receive),
      send_slots_(depths.send),
      receive_slots_(depths.receive) {}

Expected<void> Buffer::register_on(const Device& device, std::size_t most) {
  auto own = device.register_memory(address_, std::min(length_, most), access_);
  if (!own) return tl::unexpected(own.error());
  own_ = std::move(*own);
  return {};
}

Expected<Piece> Buffer::piece(const Device& device, std::size_t length) const {
  if (length == 0) return Piece{address_, 0, 0};
  if (own_) return Piece{address_, length, own_->lkey};
  if (&memory_->device() != &device || !memory_->covers(address_, length)) {
    return fail(MCAST_ERR_INVALID,
                "the buffer is not inside the registered memory passed: register all of it with "
                "the group's context, or pass none");
  }
  if ((access_ & IBV_ACCESS_LOCAL_WRITE) != 0 && !memory_->is_writable()) {
    return fail(MCAST_ERR_INVALID, "the registered memory passed can't be written to");
  }
  return Piece{address_, length, memory_->lkey()};
}

Expected<void> BulkLane::send(Buffer& buffer, std::uint32_t imm, mcast_op_t* op) {
  return start_send(buffer, op, [&](std::uint64_t id, const Piece& piece) {
    return pair_.post_send(id, piece, imm);
  });
}

Expected<void> BulkLane::write(Buffer& buffer, const RegionPlace& place,
                               std::optional<std::uint32_t> imm, mcast_op_t* op) {
  if (announcements_ != nullptr) {
    return fail(MCAST_ERR_INVALID, "a group with per_request has no regions: use mcast_write_to()");
  }
  const bool is_in_parts = buffer.length() > longest_part();
  if (is_in_parts && parts_under_way_ == kMostParts) {
    return fail(MCAST_ERR_AGAIN,
                "as many parts of WRITEs as one group sends at once are under way: "
                "call mcast_progress()");
  }
  return start_send(buffer, op, [&](std::uint64_t id, const Piece& piece) {
    if (!is_in_parts) return pair_.post_write(id, piece, place, imm);
    parts_ = Parts{WorkId::unpack(id).slot, piece, place, imm};
    return post_parts();
  });
}

bool BulkLane::post_parts() {
  while (parts_) {
    const bool is_last = parts_->rest.length <= longest_part();
    const Piece part{parts_->rest.address, std::min(parts_->rest.length, longest_part()),
                     parts_->rest.lkey};
    const std::uint64_t packets = packets_of(part.length);
    if (!work_.window().admits(packets)) return true;
    if (!is_last && parts_under_way_ == kMostParts) return true;
    const std::uint32_t slot = is_last ? parts_->slot : WorkId::kPart;
    const auto imm = is_last ? parts_->imm : std::nullopt;
    if (!pair_.post_write(WorkId{group_, false, slot}.pack(), part, parts_->place, imm)) {
      return false;
    }
    work_.on_send_posted(packets);
    if (is_last) {
      parts_.reset();
    } else {
      ++parts_under_way_;
      ++parts_->under_way;
      parts_->rest.address = static_cast<const std::byte*>(part.address) + part.length;
      parts_->rest.length -= part.length;
      parts_->place.offset += part.length;
    }
  }
  return true;
}

// The operation of a WRITE that has failed halfway ends here, because its last part is not posted.
// It ends with a part of its own: the operations before have ended then.
void BulkLane::end_part(bool ok, mcast_status_t failed, Events& out) {
  const bool is_own = parts_ && parts_->under_way == parts_under_way_;
  --parts_under_way_;
  if (!parts_) return;
  if (is_own) --parts_->under_way;
  if (ok && !is_refused_) {
    if (post_parts()) return;
    is_refused_ = true;
  }
  if (!is_own) return;
  const std::uint32_t slot = parts_->slot;
  parts_.reset();
  Event event;
  event.op = sends_[slot].op;
  event.status = ok ? MCAST_ERR_FABRIC : failed;
  event.region = std::move(sends_[slot].region);
  sends_[slot] = {};
  send_slots_.give_back(slot);
  out.push_back(std::move(event));
}

std::uint64_t BulkLane::packets_of(std::size_t length) const {
  const std::uint64_t mtu = work_.path_mtu();
  const std::uint64_t announcements = is_announced() ? 1 : 0;
  return announcements + std::max<std::uint64_t>(1, (length + mtu - 1) / mtu);
}

Expected<void> BulkLane::write_to(Buffer& buffer, std::span<const wire::AnnouncedTarget> targets,
                                  std::optional<std::uint32_t> imm, mcast_op_t* op) {
  if (announcements_ == nullptr) {
    return fail(MCAST_ERR_INVALID,
                "this group's WRITEs go to regions: create it with per_request to name addresses");
  }
  const std::size_t most = wire::Announcement::most_members(work_.path_mtu());
  if (targets.size() > most) {
    return fail(MCAST_ERR_INVALID, std::to_string(targets.size()) +
                                       " targets: a packet of this path MTU names at most " +
                                       std::to_string(most) +
                                       ", use a larger one or smaller groups");
  }
  if (announcements_->is_full()) {
    return fail(MCAST_ERR_AGAIN,
                "as many announced WRITEs as switches keep are unacknowledged: "
                "call mcast_progress()");
  }
  std::optional<std::uint32_t> slot;
  const auto started = start_send(buffer, op, [&](std::uint64_t id, const Piece& piece) {
    slot = WorkId::unpack(id).slot;
    const std::uint64_t silent = WorkId{group_, false, WorkId::kMarker}.pack();
    return pair_.post_announced_write(silent, announcements_->take(targets), id, piece, imm);
  });
  if (started && slot) sends_[*slot].is_announced = true;
  return started;
}

template <typename Post>
Expected<void> BulkLane::start_send(Buffer& buffer, mcast_op_t* op, Post&& post) {
  const std::size_t length = buffer.length();
  if (length > max_message()) {
    return fail(MCAST_ERR_INVALID, "a message of " + std::to_string(length) +
                                       " bytes: the device sends at most " +
                                       std::to_string(max_message()) + ", send it in parts");
  }
  if (parts_) {
    return fail(MCAST_ERR_AGAIN,
                "a WRITE goes in parts, and not all of them are sent: "
                "call mcast_progress()");
  }
  if (send_slots_.is_empty()) {
    return fail(MCAST_ERR_AGAIN, "send_depth messages are unacknowledged: call mcast_progress()");
  }
  if (buffer.lacks_region()) return {};
  const auto piece = buffer.piece(device_, length);
  if (!piece) return tl::unexpected(piece.error());
  const std::uint32_t slot = send_slots_.take();
  const std::uint32_t before = parts_under_way_;
  if (!post(WorkId{group_, false, slot}.pack(), *piece)) {
    send_slots_.give_back(slot);
    parts_.reset();
    return fail(MCAST_ERR_FABRIC, "the device refused a send: set up again with fresh groups");
  }
  const bool is_in_parts = parts_under_way_ > before;
  if (!is_in_parts) work_.on_send_posted(packets_of(length));
  sends_[slot] = {op,      length, is_in_parts ? (length - 1) % longest_part() + 1 : length,
                  ++turn_, *piece, buffer.take_region()};
  return {};
}

Expected<void> BulkLane::receive(Buffer& buffer, mcast_op_t* op) {
  if (receive_slots_.is_empty()) {
    return fail(MCAST_ERR_AGAIN, "recv_depth receives are posted: call mcast_progress()");
  }
  if (buffer.lacks_region()) return {};
  const std::size_t length = std::min(buffer.length(), max_message());
  const auto piece = buffer.piece(device_, length);
  if (!piece) return tl::unexpected(piece.error());
  const std::uint32_t slot = receive_slots_.take();
  if (!post_receive(slot, *piece)) {
    receive_slots_.give_back(slot);
    return fail(MCAST_ERR_FABRIC, "the device refused a receive: set up again with fresh groups");
  }
  receives_[slot] = {op, length, 0, ++turn_, *piece, buffer.take_region()};
  return {};
}

void BulkLane::on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (!id.is_receive && id.slot == WorkId::kPart) {
    return end_part(wc.status == IBV_WC_SUCCESS, failed, out);
  }
  Operation& operation = (id.is_receive ? receives_ : sends_)[id.slot];
  assert(operation.op != nullptr);
  const bool ok = wc.status == IBV_WC_SUCCESS;
  Event event;
  event.op = operation.op;
  event.status = ok ? MCAST_OK : failed;
  if (ok && id.is_receive) {
    event.length = wc.byte_len;
    event.imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
    ++traffic_.messages_received;
    traffic_.bytes_received += event.length;
  } else if (ok) {
    event.length = operation.length;
    ++traffic_.messages_sent;
    traffic_.bytes_sent += event.length;
  }
  if (operation.is_announced) announcements_->give_back();
  event.region = std::move(operation.region);
  operation = {};
  (id.is_receive ? receive_slots_ : send_slots_).give_back(id.slot);
  out.push_back(std::move(event));
}

// In the order of posting.
void BulkLane::cancel(mcast_status_t status, Events& out) {
  parts_.reset();
  parts_under_way_ = 0;
  std::vector<Operation*> open;
  for (std::vector<Operation>* const list : {&sends_, &receives_}) {
    for (Operation& each : *list) {
      if (each.op != nullptr) open.push_back(&each);
    }
  }
  std::ranges::sort(open, {}, &Operation::turn);
  for (Operation* const each : open) {
    Event event;
    event.op = each->op;
    event.status = status;
    event.region = std::move(each->region);
    out.push_back(std::move(event));
    *each = {};
  }
}

}  // namespace cepheus::mcast
