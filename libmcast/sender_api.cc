// <mcast/senders.h>, and with it how any group gets its leader. Records are converted between
// network byte order and the engine's types. An array that is too short is refused, and `count` is
// then the number of regions. Addresses and keys are not checked here.
#include <mcast/senders.h>

#include <utility>
#include <vector>

#include "libmcast/api.h"

using namespace cepheus::mcast;
namespace mrp = cepheus::mrp;
namespace wire = cepheus::wire;

namespace {

mcast_region_t region_of(const wire::MrpRegion::Record& r) {
  return {target_of(r.host, r.region.rkey, r.region.virtual_address, r.region.length),
          htons(r.region.number),
          {}};
}
wire::MrpRegion::Record region_of(const mcast_region_t& r) {
  const mcast_target_t& t = r.target;
  return {wire::Ipv4(ntohl(t.ipv4)),
          {ntohs(r.number), ntohl(t.rkey), be64toh(t.address), be64toh(t.length)}};
}

}  // namespace

mcast_status_t mcast_group_regions(mcast_group_h group, mcast_region_t* out, size_t* count) {
  if (count == nullptr || (out == nullptr && *count > 0)) return invalid("out, or count, is null");
  return with(from(group), [&](Group& g) {
    const auto regions = g.named_regions();
    if (!regions) return set_last_error(regions.error());
    const size_t most = std::exchange(*count, regions->size());
    if (most < *count) return invalid("the array is shorter than the number of published regions");
    for (size_t i = 0; i < *count; ++i) out[i] = region_of((*regions)[i]);
    return MCAST_OK;
  });
}

mcast_status_t mcast_group_lead_regions(mcast_group_h group, const mcast_member_t* members,
                                        size_t count, const mcast_region_t* regions,
                                        size_t region_count) {
  if (group == nullptr) return invalid("the group is null");
  if (members == nullptr && count > 0) return invalid("members is null");
  if (regions == nullptr && region_count > 0) return invalid("regions is null");
  return with(&from(group)->context(), [&](Context& c) {
    std::vector<mrp::MrpMember> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) list.push_back(member_of(members[i]));
    std::vector<wire::MrpRegion::Record> named;
    named.reserve(region_count);
    for (size_t i = 0; i < region_count; ++i) named.push_back(region_of(regions[i]));
    return status_of(c.lead(*from(group), list, named));
  });
}
