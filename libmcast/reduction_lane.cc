// start() copies a contribution into its units' slots and posts them at once. Each result is copied
// to the oldest operation, and its slot is posted again for the unit a window later. The first
// flushed receive ends all operations: results come in order, so none follows. A result that nobody
// waits for ends the group (fault()), and from then on nothing is copied out.
#include "libmcast/reduction_lane.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace cepheus::mcast {

Expected<std::unique_ptr<ReductionLane>> ReductionLane::create(
    const Device& device, PostedWork& work, QueuePair& pair, MemoryBudget& budget,
    std::uint32_t group, const wire::MrpReduction& reduction) {
  auto slab = Slab::create(device, budget, std::size_t{2} * reduction.window * reduction.unit);
  if (!slab) return tl::unexpected(slab.error());
  std::unique_ptr<ReductionLane> lane(
      new ReductionLane(work, pair, group, reduction, std::move(*slab)));
  for (std::uint32_t slot = 0; slot < reduction.window; ++slot) {
    if (!lane->post_receive(slot, lane->receive_buffer(slot))) {
      return fail(MCAST_ERR_NO_MEMORY, "the device refused a receive: lower reduction_window");
    }
  }
  return lane;
}

ReductionLane::ReductionLane(PostedWork& work, QueuePair& pair, std::uint32_t group,
                             const wire::MrpReduction& reduction, std::unique_ptr<Slab> slab)
    : Lane(work, pair, group), reduction_(reduction), slab_(std::move(slab)) {}

std::byte* ReductionLane::contribution_slot(std::uint32_t slot) const {
  return slab_->data() + std::size_t{slot} * reduction_.unit;
}

std::byte* ReductionLane::result_slot(std::uint32_t slot) const {
  return contribution_slot(reduction_.window + slot);
}

void ReductionLane::begin(std::uint16_t epoch) {
  const auto unit =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(reduction_.unit, work_.path_mtu()));
  units_.emplace(epoch, unit, reduction_.window);
  while (units_->next_receive()) units_->on_receive_posted();  // in create()
}

std::size_t ReductionLane::max_message() const {
  return MCAST_REDUCTION_PACKETS * std::size_t{work_.path_mtu()};
}

Expected<void> ReductionLane::check_length(std::size_t length) const {
  if (length <= max_message()) return {};
  return fail(MCAST_ERR_INVALID,
              "a result of " + std::to_string(length) + " bytes: at most " +
                  std::to_string(max_message()) + " are served, " +
                  std::to_string(MCAST_REDUCTION_PACKETS) +
                  " packets of the group's path MTU (max_message of mcast_group_query())");
}

Expected<void> ReductionLane::start(const ReductionUnits::Kind& kind, const Block& block,
                                    void* result, std::size_t length, mcast_op_t* op) {
  if (!units_->may_send_at_once(length)) {
    return fail(
        MCAST_ERR_AGAIN,
        "its packets don't fit into reduction_window beside those that are under way, or that "
        "the switch has not acknowledged: call mcast_progress()");
  }
  operations_.push_back({op, static_cast<std::byte*>(result), length});
  units_->start(0, kind, length);
  while (const auto part = units_->next_contribution()) {
    units_->on_contributed();
    if (!send(*part, block)) {
      operations_.pop_back();
      fault_ = "the device refused a contribution: set up again with fresh groups";
      return fail(MCAST_ERR_FABRIC, fault_);
    }
  }
  ++traffic_.messages_sent;
  traffic_.bytes_sent += length;
  return {};
}

bool ReductionLane::send(const ReductionUnits::Part& part, const Block& block) {
  std::byte* const slot = contribution_slot(part.slot);
  const auto place_of = [&](std::uint64_t offset) {
    return std::clamp<std::uint64_t>(offset, part.offset, part.offset + part.bytes) - part.offset;
  };
  const std::uint64_t begin = place_of(block.offset), end = place_of(block.offset + block.length);
  std::memset(slot, 0, begin);
  if (begin < end) {
    std::memcpy(slot + begin,
                static_cast<const std::byte*>(block.data) + (part.offset + begin - block.offset),
                end - begin);
  }
  std::memset(slot + end, 0, part.bytes - end);
  const Piece piece{slot, part.bytes, slab_->lkey()};
  if (!pair_.post_send(WorkId{group_, false, part.slot}.pack(), piece, part.imm)) return false;
  work_.on_send_posted(1);
  return true;
}

void ReductionLane::on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) {
  const bool is_receive = WorkId::unpack(wc.wr_id).is_receive;
  if (wc.status != IBV_WC_SUCCESS) {
    if (is_receive) cancel(failed, out);  // results come in order: no further one comes
  } else if (is_receive && fault_.empty()) {
    take_result(wc, failed, out);
    if (!fault_.empty()) cancel(MCAST_ERR_FABRIC, out);  // no further receive may come back
  } else if (!is_receive) {
    units_->on_send_done();
  }
}

void ReductionLane::take_result(const ibv_wc& wc, mcast_status_t failed, Events& out) {
  const std::uint32_t slot = WorkId::unpack(wc.wr_id).slot;
  const std::uint32_t imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
  const auto part = units_->on_result(imm, wc.byte_len);
  if (!part) {
    fault_ = part.error().text;
    return;
  }
  assert(part->slot == slot);
  Operation& operation = operations_.front();
  if (part->bytes > 0) {
    std::memcpy(operation.result + part->offset, result_slot(slot), part->bytes);
  }
  if (part->is_last) {
    ++traffic_.messages_received;
    traffic_.bytes_received += operation.length;
    Event event;
    event.op = operation.op;
    event.length = operation.length;
    operations_.pop_front();
    out.push_back(std::move(event));
  }
  if (failed != MCAST_OK) return;  // not all devices flush what is posted from now on
  if (!post_receive(slot, receive_buffer(slot))) {
    fault_ = "the device refused a receive: set up again with fresh groups";
    return;
  }
  units_->on_receive_posted();
}

void ReductionLane::cancel(mcast_status_t status, Events& out) {
  for (const Operation& each : operations_) {
    Event event;
    event.op = each.op;
    event.status = status;
    out.push_back(std::move(event));
  }
  operations_.clear();
}

}  // namespace cepheus::mcast
