// start() copies a contribution into its units' slots and posts them at once. start_long() and each
// completion post what credit, window and send queue admit. Each result is of the oldest operation
// without all its results.
//
// The first flushed receive ends all operations: results come in order, so none follows. A long one,
// and those behind it, wait until all posted work has come back. A result that nobody waits for ends
// the group (fault()), and from then on nothing is copied out.
#include "libmcast/reduction_lane.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace cepheus::mcast {
namespace {

constexpr const char* kRefusedReceive =
    "the device refused a receive: set up again with fresh groups";

}  // namespace

Expected<std::unique_ptr<ReductionLane>> ReductionLane::create(
    const Device& device, PostedWork& work, QueuePair& pair, MemoryBudget& budget,
    std::uint32_t group, const wire::MrpReduction& reduction) {
  auto slab = Slab::create(device, budget, std::size_t{2} * reduction.window * reduction.unit);
  if (!slab) return tl::unexpected(slab.error());
  std::unique_ptr<ReductionLane> lane(
      new ReductionLane(device, work, pair, group, reduction, std::move(*slab)));
  for (std::uint32_t slot = 0; slot < reduction.window; ++slot) {
    if (!lane->post_receive(slot, lane->receive_buffer(slot))) {
      return fail(MCAST_ERR_NO_MEMORY, "the device refused a receive: lower reduction_window");
    }
  }
  return lane;
}

ReductionLane::ReductionLane(const Device& device, PostedWork& work, QueuePair& pair,
                             std::uint32_t group, const wire::MrpReduction& reduction,
                             std::unique_ptr<Slab> slab)
    : Lane(work, pair, group), device_(device), reduction_(reduction), slab_(std::move(slab)) {
  static_assert(ReductionUnits::kMostListed <= QueuePair::kMostListed);
  list_.reserve(ReductionUnits::kMostListed);
}

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

bool ReductionLane::is_long(std::size_t length) const {
  const std::size_t longest = work_.window().longest();
  const std::size_t bytes = longest * work_.path_mtu();
  return length > max_message() || (longest > 0 && length > bytes);
}

Expected<void> ReductionLane::check_length(std::size_t length) const {
  if (length <= max_message()) return {};
  return fail(MCAST_ERR_INVALID,
              "a gather of " + std::to_string(length) + " bytes: at most " +
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
  operations_.push_back({op, length, {}, {result, length, 0}});
  units_->start(ended_ + operations_.size() - 1, kind, length);
  operations_.back().end = units_->end();
  const auto copied = [&](const ReductionUnits::Part& part) { return copy_to_slot(part, block); };
  if (!send_due(true, copied)) {
    operations_.pop_back();
    return fail(MCAST_ERR_FABRIC, fault_);
  }
  ++traffic_.messages_sent;
  traffic_.bytes_sent += length;
  return {};
}

Expected<void> ReductionLane::start_long(const ReductionUnits::Kind& kind, Buffer& contribution,
                                         Buffer& result, mcast_op_t* op) {
  if (operations_.size() >= units_->window()) {
    return fail(MCAST_ERR_AGAIN,
                "as many reductions as reduction_window are under way: call mcast_progress()");
  }
  if (contribution.lacks_region() || result.lacks_region()) return {};
  const std::size_t length = contribution.length();
  const auto from = contribution.piece(device_, length);
  if (!from) return tl::unexpected(from.error());
  const bool is_in_place = result.length() == 0;
  const auto to = result.piece(device_, result.length());
  if (!to) return tl::unexpected(to.error());
  operations_.push_back({op, length, *from, {to->address, length, to->lkey}});
  Operation& started = operations_.back();
  if (is_in_place) started.result.address = from->address;
  started.contribution_region = contribution.take_region();
  started.result_region = result.take_region();
  units_->start(ended_ + operations_.size() - 1, kind, length,
                is_in_place ? ReductionUnits::Place::kInPlace : ReductionUnits::Place::kApart);
  started.end = units_->end();
  ++traffic_.messages_sent;
  traffic_.bytes_sent += length;
  send_due_of_long();  // from now on it ends by done(): a refusal fails the group
  return {};
}

Piece ReductionLane::copy_to_slot(const ReductionUnits::Part& part, const Block& block) const {
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
  return {slot, part.bytes, slab_->lkey()};
}

template <typename PieceOf>
bool ReductionLane::send_due(bool has_window, PieceOf piece_of) {
  for (;;) {
    list_.clear();
    std::uint32_t last = 0;
    const std::uint64_t most = units_->most_listed();
    const std::size_t may = has_window ? most : std::min(most, work_.window().space());
    while (list_.size() < may) {
      const auto part = units_->next_contribution();
      if (!part) break;
      units_->on_contributed();
      last = part->send;
      list_.push_back(
          {WorkId{group_, false, WorkId::kMarker}.pack(), piece_of(*part), part->imm, false});
    }
    if (list_.empty()) return true;
    list_.back().wr_id = WorkId{group_, false, last}.pack();
    list_.back().is_signaled = true;
    if (pair_.post_sends(list_) < list_.size()) {
      // Those before it are unsignaled: no completion but a flush would count them.
      fault_ = "the device refused a contribution: set up again with fresh groups";
      return false;
    }
    const auto sends = static_cast<unsigned>(list_.size());
    work_.on_send_posted(sends, sends);
  }
}

bool ReductionLane::send_due_of_long() {
  return send_due(false, [this](const ReductionUnits::Part& part) -> Piece {
    const Piece& all = operation(part.operation).contribution;
    return {static_cast<const std::byte*>(all.address) + part.offset, part.bytes, all.lkey};
  });
}

bool ReductionLane::post_due_receives() {
  if (!units_->are_receives_due()) return true;
  for (;;) {
    list_.clear();
    while (list_.size() < ReductionUnits::kMostListed) {
      const auto next = units_->next_receive();
      if (!next) break;
      units_->on_receive_posted();
      Piece piece = receive_buffer(next->slot);
      if (next->is_direct) {
        const Piece& all = operation(next->operation).result;
        piece = {static_cast<const std::byte*>(all.address) + next->offset, next->bytes, all.lkey};
      }
      list_.push_back({WorkId{group_, true, next->slot}.pack(), piece});
    }
    if (list_.empty()) return true;
    const std::size_t posted = pair_.post_receives(list_);
    work_.on_receive_posted(static_cast<unsigned>(posted));
    if (posted < list_.size()) return false;
  }
}

// Receives first: they are this member's credit.
void ReductionLane::go_on() {
  if (!post_due_receives()) {
    fault_ = kRefusedReceive;
  } else if (units_->contributed() < units_->end()) {
    send_due_of_long();
  }
}

void ReductionLane::on_completion(const ibv_wc& wc, mcast_status_t failed, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  const bool is_good = wc.status == IBV_WC_SUCCESS;
  if (!id.is_receive) {
    units_->on_sends_done(id.slot);
  } else if (!is_good) {
    failed_ = failed;
  } else if (failed_ == MCAST_OK && fault_.empty()) {
    take_result(wc);
  }
  // Not all devices flush what is posted once the group has failed.
  if (failed == MCAST_OK && failed_ == MCAST_OK && fault_.empty()) go_on();
  const Flow& flow = work_.flow();
  if (failed != MCAST_OK && flow.receives_posted + flow.sends_outstanding == 0) failed_ = failed;
  if (!fault_.empty()) failed_ = MCAST_ERR_FABRIC;  // no further receive may come back
  end_operations(out);
}

void ReductionLane::take_result(const ibv_wc& wc) {
  const std::uint32_t slot = WorkId::unpack(wc.wr_id).slot;
  const std::uint32_t imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
  const auto part = units_->on_result(imm, wc.byte_len);
  if (!part) {
    fault_ = part.error().text;
    return;
  }
  assert(part->slot == slot);
  Operation& own = operation(part->operation);
  if (part->bytes > 0 && !part->is_direct) {
    auto* const result = static_cast<std::byte*>(const_cast<void*>(own.result.address));
    std::memcpy(result + part->offset, result_slot(slot), part->bytes);
  }
  if (!part->is_last) return;
  own.has_result = true;
  ++traffic_.messages_received;
  traffic_.bytes_received += own.length;
}

// The device may be at work on a long operation's memory, until its sends are done, or until a failed
// queue pair has returned all its work.
void ReductionLane::end_operations(Events& out) {
  const Flow& flow = work_.flow();
  while (!operations_.empty()) {
    const Operation& oldest = operations_.front();
    const bool is_free = !oldest.is_long() || units_->sends_done() >= oldest.end ||
                         (failed_ != MCAST_OK && flow.sends_outstanding == 0);
    const bool is_whole = oldest.has_result;
    const bool may_be_written = oldest.is_long() && flow.receives_posted > 0;
    if (!is_free || (!is_whole && (failed_ == MCAST_OK || may_be_written))) return;
    end_oldest(is_whole ? MCAST_OK : failed_, out);
  }
}

void ReductionLane::end_oldest(mcast_status_t status, Events& out) {
  Operation& oldest = operations_.front();
  Event event;
  event.op = oldest.op;
  event.status = status;
  if (status == MCAST_OK) event.length = oldest.length;
  event.region = std::move(oldest.contribution_region);
  event.result_region = std::move(oldest.result_region);
  operations_.pop_front();
  ++ended_;
  out.push_back(std::move(event));
}

void ReductionLane::cancel(mcast_status_t status, Events& out) {
  while (!operations_.empty()) {
    end_oldest(operations_.front().has_result ? MCAST_OK : status, out);
  }
}

}  // namespace cepheus::mcast
