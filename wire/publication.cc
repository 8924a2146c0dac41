#include "wire/publication.h"

#include "wire/byte_order.h"

namespace cepheus::wire {
namespace {

constexpr std::uint8_t kRegionRecord = 2;
constexpr std::size_t kBeforeRegions = MrpHeader::kSize + MrpMember::kSize;

}  // namespace

std::optional<Publication> Publication::parse(std::span<const std::uint8_t> data) {
  const auto header = MrpHeader::parse(data);
  if (!header || header->type != MrpType::kPublish || data.size() < kBeforeRegions ||
      data.size() != load_be16(data.data() + 10)) {
    return std::nullopt;
  }
  const auto member = MrpMember::parse(data.subspan(MrpHeader::kSize));
  const auto records = data.subspan(kBeforeRegions);
  if (!member || records.size() % MrpRegion::kSize != 0 ||
      records.size() / MrpRegion::kSize > kMaxRegions) {
    return std::nullopt;
  }
  std::optional<Publication> publication(std::in_place);
  publication->header = *header;
  publication->member = *member;
  for (std::size_t at = 0; at < records.size(); at += MrpRegion::kSize) {
    const std::uint8_t* p = records.data() + at;
    const MrpRegion region{load_be16(p + 2), load_be32(p + 24), load_be64(p + 8),
                           load_be64(p + 16)};
    const bool is_last = publication->count == 0 ||
                         publication->regions[publication->count - 1].number < region.number;
    const bool fits = region.virtual_address + region.length >= region.virtual_address;
    if (p[0] != kRegionRecord || p[1] != MrpRegion::kSize / 4 ||
        Ipv4(load_be32(p + 4)) != member->host || !is_last || !fits) {
      return std::nullopt;
    }
    publication->regions[publication->count++] = region;
  }
  return publication;
}

std::size_t Publication::emit(std::span<std::uint8_t> out) const {
  const std::size_t size = kBeforeRegions + count * MrpRegion::kSize;
  if (out.size() < size) return 0;
  header.emit(out.first<MrpHeader::kSize>());
  store_be16(out.data() + 10, static_cast<std::uint16_t>(size));
  member.emit(out.subspan<MrpHeader::kSize, MrpMember::kSize>());
  std::uint8_t* p = out.data() + kBeforeRegions;
  for (const MrpRegion& region : list()) {
    p[0] = kRegionRecord;
    p[1] = MrpRegion::kSize / 4;
    store_be16(p + 2, region.number);
    store_be32(p + 4, member.host.value());
    store_be64(p + 8, region.virtual_address);
    store_be64(p + 16, region.length);
    store_be32(p + 24, region.rkey);
    p += MrpRegion::kSize;
  }
  return size;
}

}  // namespace cepheus::wire
