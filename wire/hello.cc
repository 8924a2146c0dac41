// parse() refuses a length other than the header states, a number that is not below the total, and
// any other record than a switch's. Reserved bytes of a record are not looked at. emit() writes at
// most kMaxSwitches records; callers divide a longer list.
#include "wire/hello.h"

#include "wire/byte_order.h"

namespace cepheus::wire {

constexpr std::uint8_t kSwitchRecord = 3;
constexpr std::uint16_t kReceives = 1;  // MrpHeader::flags

std::optional<Hello> Hello::parse(std::span<const std::uint8_t> data) {
  const auto header = MrpHeader::parse(data);
  if (!header || header->type != MrpType::kHello) return std::nullopt;
  if (data.size() != load_be16(data.data() + 10) || header->seq >= header->total) {
    return std::nullopt;
  }
  std::optional<Hello> hello(std::in_place);
  hello->receives = (header->flags & kReceives) != 0;
  hello->stamp = header->instance;
  hello->seq = header->seq;
  hello->total = header->total;
  const auto records = data.subspan(MrpHeader::kSize);
  if (records.size() % kRecord != 0 || records.size() / kRecord > kMaxSwitches) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < records.size(); at += kRecord) {
    const std::uint8_t* p = records.data() + at;
    if (p[0] != kSwitchRecord || p[1] != kRecord / 4) return std::nullopt;
    hello->unreachable[hello->count++] = Ipv4(load_be32(p + 4));
  }
  return hello;
}

std::size_t Hello::emit(std::span<std::uint8_t> out) const {
  const std::size_t size = MrpHeader::kSize + count * kRecord;
  if (out.size() < size) return 0;
  MrpHeader header;
  header.type = MrpType::kHello;
  header.flags = receives ? kReceives : 0;
  header.instance = stamp;
  header.seq = seq;
  header.total = total;
  header.emit(out.first<MrpHeader::kSize>());
  store_be16(out.data() + 10, static_cast<std::uint16_t>(size));
  std::uint8_t* p = out.data() + MrpHeader::kSize;
  for (const Ipv4 one : list()) {
    p[0] = kSwitchRecord;
    p[1] = kRecord / 4;
    store_be16(p + 2, 0);
    store_be32(p + 4, one.value());
    p += kRecord;
  }
  return size;
}

}  // namespace cepheus::wire
