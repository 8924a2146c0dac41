#include "libmcast/eager_lane.h"

#include <arpa/inet.h>

#include <cassert>

namespace cepheus::mcast {
namespace {

constexpr std::size_t kCacheLine = 64;
static_assert(MCAST_RECV_HEADROOM % kCacheLine == 0);  // data stays aligned behind it

std::size_t aligned(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}
std::size_t receive_stride(const EagerConfig& c) {
  return MCAST_RECV_HEADROOM + aligned(c.max_message);
}

}  // namespace

std::size_t EagerLane::memory_needed(const EagerConfig& config) {
  return config.depths.receive * receive_stride(config) +
         config.depths.send * aligned(config.max_message);
}

Expected<std::unique_ptr<EagerLane>> EagerLane::create(const Device& device, PostedWork& work,
                                                       QueuePair& pair, MemoryBudget& budget,
                                                       const EagerConfig& config) {
  auto slab = Slab::create(device, budget, memory_needed(config));
  if (!slab) return tl::unexpected(slab.error());
  std::unique_ptr<EagerLane> lane(new EagerLane(work, pair, config, std::move(*slab)));
  for (std::uint32_t slot = 0; slot < config.depths.receive; ++slot) {
    if (!lane->post_receive(slot)) {
      return fail(MCAST_ERR_NO_MEMORY, "the device refused an eager receive: lower recv_depth");
    }
  }
  return lane;
}

EagerLane::EagerLane(PostedWork& work, QueuePair& pair, const EagerConfig& config,
                     std::unique_ptr<Slab> slab)
    : Lane(work, pair, config.group),
      config_(config),
      slab_(std::move(slab)),
      receives_(config.depths.receive, Receive::kIdle),
      send_slots_(config.depths.send),
      sent_(config.depths.send) {}

std::byte* EagerLane::receive_data(std::uint32_t slot) const {
  return slab_->data() + slot * receive_stride(config_) + MCAST_RECV_HEADROOM;
}

std::byte* EagerLane::send_buffer(std::uint32_t slot) const {
  return slab_->data() + config_.depths.receive * receive_stride(config_) +
         slot * aligned(config_.max_message);
}

std::uint32_t EagerLane::slot_of(const void* data) const {
  const auto first = reinterpret_cast<std::uintptr_t>(receive_data(0));
  const auto wanted = reinterpret_cast<std::uintptr_t>(data);
  if (wanted < first || (wanted - first) % receive_stride(config_) != 0) {
    return config_.depths.receive;
  }
  const std::uintptr_t slot = (wanted - first) / receive_stride(config_);
  return slot < config_.depths.receive ? static_cast<std::uint32_t>(slot) : config_.depths.receive;
}

bool EagerLane::post_receive(std::uint32_t slot) {
  if (!Lane::post_receive(slot, receive_buffer(slot))) return false;
  receives_[slot] = Receive::kPosted;
  return true;
}

bool EagerLane::post(std::uint32_t slot, std::size_t length, std::uint32_t imm) {
  const Piece piece{send_buffer(slot), length, slab_->lkey()};
  if (!pair_.post_send(WorkId{group_, false, slot}.pack(), piece, imm)) {
    send_slots_.give_back(slot);
    return false;
  }
  sent_[(sent_first_ + sent_count_++) % sent_.size()] = {slot, imm, length};
  ++traffic_.messages_sent;
  traffic_.bytes_sent += length;
  return true;
}

EagerLane::Release EagerLane::release(std::uint32_t slot, bool is_usable) {
  if (slot >= receives_.size() || receives_[slot] != Receive::kDelivered) {
    return Release::kNotDelivered;
  }
  receives_[slot] = Receive::kIdle;
  return !is_usable || post_receive(slot) ? Release::kDone : Release::kRefused;
}

void EagerLane::on_completion(const ibv_wc& wc, mcast_status_t, Events& out) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (!id.is_receive) {
    if (wc.status != IBV_WC_SUCCESS) return;  // recovery may read its data
    assert(sent(0).slot == id.slot);
    sent_first_ = (sent_first_ + 1) % static_cast<unsigned>(sent_.size());
    --sent_count_;
    send_slots_.give_back(id.slot);
    return;
  }
  assert(receives_[id.slot] == Receive::kPosted);
  if (wc.status != IBV_WC_SUCCESS) {
    receives_[id.slot] = Receive::kIdle;
    return;
  }
  receives_[id.slot] = Receive::kDelivered;
  ++traffic_.messages_received;
  traffic_.bytes_received += wc.byte_len;
  Event event;
  event.slot = id.slot;
  event.length = wc.byte_len;
  event.imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
  out.push_back(std::move(event));  // the group fills its name in
}

}  // namespace cepheus::mcast
