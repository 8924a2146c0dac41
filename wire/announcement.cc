// parse() requires the exact length for the stated number of members, and a reserved field of 0.
// Records are read where they lie, each time anew; find() goes through them in order and takes the
// first one of a host. A host named twice is not refused.
#include "wire/announcement.h"

#include <limits>

#include "wire/byte_order.h"

namespace cepheus::wire {

std::optional<Announcement> Announcement::parse(std::span<const std::uint8_t> payload) {
  if (payload.size() < kHeaderSize || load_be16(payload.data() + 2) != 0 ||
      payload.size() != size_of(load_be16(payload.data()))) {
    return std::nullopt;
  }
  return Announcement(payload.subspan(kHeaderSize));
}

std::size_t Announcement::emit(std::span<const AnnouncedTarget> targets,
                               std::span<std::uint8_t> out) {
  const std::size_t size = size_of(targets.size());
  if (targets.size() > std::numeric_limits<std::uint16_t>::max() || out.size() < size) return 0;
  store_be16(out.data(), static_cast<std::uint16_t>(targets.size()));
  store_be16(out.data() + 2, 0);
  std::uint8_t* p = out.data() + kHeaderSize;
  for (const AnnouncedTarget& target : targets) {
    store_be32(p, target.host.value());
    store_be32(p + 4, target.rkey);
    store_be64(p + 8, target.virtual_address);
    store_be64(p + 16, target.length);
    p += AnnouncedTarget::kSize;
  }
  return size;
}

AnnouncedTarget Announcement::operator[](std::size_t i) const {
  const std::uint8_t* p = records_.data() + i * AnnouncedTarget::kSize;
  return {Ipv4(load_be32(p)), load_be32(p + 4), load_be64(p + 8), load_be64(p + 16)};
}

std::optional<AnnouncedTarget> Announcement::find(Ipv4 host) const {
  for (std::size_t i = 0; i < count(); ++i) {
    const AnnouncedTarget target = (*this)[i];
    if (target.host != host) continue;
    const bool wraps = target.virtual_address + target.length < target.virtual_address;
    return wraps ? std::nullopt : std::optional(target);
  }
  return std::nullopt;
}

}  // namespace cepheus::wire
