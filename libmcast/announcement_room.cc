#include "libmcast/announcement_room.h"

namespace cepheus::mcast {

Expected<std::unique_ptr<AnnouncementRoom>> AnnouncementRoom::create(const Device& device,
                                                                     std::uint32_t most) {
  std::unique_ptr<AnnouncementRoom> room(new AnnouncementRoom(device.path_mtu(), most));
  // The device only reads it.
  auto region = device.register_memory(room->memory_.data(), room->memory_.size(), 0);
  if (!region) return tl::unexpected(region.error());
  room->region_ = std::move(*region);
  return room;
}

Piece AnnouncementRoom::take(std::span<const wire::AnnouncedTarget> targets) {
  const auto slot = std::span(memory_).subspan(next_ * slot_size_, slot_size_);
  next_ = (next_ + 1) % most_;
  ++under_way_;
  return {slot.data(), wire::Announcement::emit(targets, slot), region_->lkey};
}

}  // namespace cepheus::mcast
