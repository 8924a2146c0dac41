// parse() refuses regions that are not in strictly rising order of their numbers, so none is there
// twice. Besides, each must name the publishing member and lie below 2^64. A MEMBER record comes
// first, and no other kind of record may be there.
#include "wire/publication.h"

#include "wire/byte_order.h"

namespace cepheus::wire {

constexpr std::size_t kBeforeRegions = MrpHeader::kSize + MrpMember::kSize;

std::optional<MrpRegion::Record> MrpRegion::parse(std::span<const std::uint8_t> data) {
  if (data.size() < kSize || data[0] != kRecordType || data[1] != kSize / 4) return std::nullopt;
  const std::uint8_t* p = data.data();
  const MrpRegion region{load_be16(p + 2), load_be32(p + 24), load_be64(p + 8), load_be64(p + 16)};
  if (region.virtual_address + region.length < region.virtual_address) return std::nullopt;
  return Record{Ipv4(load_be32(p + 4)), region};
}

void MrpRegion::emit(std::span<std::uint8_t, kSize> out, Ipv4 host) const {
  std::uint8_t* p = out.data();
  p[0] = kRecordType;
  p[1] = kSize / 4;
  store_be16(p + 2, number);
  store_be32(p + 4, host.value());
  store_be64(p + 8, virtual_address);
  store_be64(p + 16, length);
  store_be32(p + 24, rkey);
}

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
    const auto read = MrpRegion::parse(records.subspan(at));
    if (!read || read->host != member->host) return std::nullopt;
    const MrpRegion& region = read->region;
    const bool is_last = publication->count == 0 ||
                         publication->regions[publication->count - 1].number < region.number;
    if (!is_last) return std::nullopt;
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
    region.emit(std::span<std::uint8_t, MrpRegion::kSize>(p, MrpRegion::kSize), member.host);
    p += MrpRegion::kSize;
  }
  return size;
}

}  // namespace cepheus::wire
