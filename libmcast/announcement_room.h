// Where the announcements of WRITEs lie that are under way (wire/announcement.h): memory of our own,
// which the device reads until they are acknowledged. They end in the order in which they began.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "libmcast/device.h"
#include "libmcast/memory.h"
#include "libmcast/queue_pair.h"
#include "wire/announcement.h"

namespace cepheus::mcast {

class AnnouncementRoom {
 public:
  // For `most` of them, of one packet each.
  static Expected<std::unique_ptr<AnnouncementRoom>> create(const Device& device,
                                                            std::uint32_t most);

  std::size_t most_members() const { return wire::Announcement::most_members(slot_size_); }
  bool is_full() const { return under_way_ == most_; }
  // Writes one down. Precondition: there is room, and no more targets than most_members().
  Piece take(std::span<const wire::AnnouncedTarget> targets);
  // The oldest is over.
  void give_back() { --under_way_; }

 private:
  AnnouncementRoom(std::size_t slot_size, std::uint32_t most, std::unique_ptr<OwnPages> pages)
      : slot_size_(slot_size), most_(most), pages_(std::move(pages)) {}

  const std::size_t slot_size_;
  const std::uint32_t most_;
  const std::unique_ptr<OwnPages> pages_;
  std::uint32_t next_ = 0, under_way_ = 0;
};

}  // namespace cepheus::mcast
