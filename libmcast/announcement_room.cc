#include "libmcast/announcement_room.h"

namespace cepheus::mcast {

Expected<std::unique_ptr<AnnouncementRoom>> AnnouncementRoom::create(const Device& device,
                                                                     std::uint32_t most) {
  const std::size_t slot_size = device.path_mtu();
  auto pages = OwnPages::create(device, slot_size * most, 0);  // the device only reads it
  if (!pages) return tl::unexpected(pages.error());
  return std::unique_ptr<AnnouncementRoom>(
      new AnnouncementRoom(slot_size, most, std::move(*pages)));
}

Piece AnnouncementRoom::take(std::span<const wire::AnnouncedTarget> targets) {
  const std::span<std::byte> bytes = pages_->bytes().subspan(next_ * slot_size_, slot_size_);
  const std::span slot(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  next_ = (next_ + 1) % most_;
  ++under_way_;
  return {slot.data(), wire::Announcement::emit(targets, slot), pages_->lkey()};
}

}  // namespace cepheus::mcast
