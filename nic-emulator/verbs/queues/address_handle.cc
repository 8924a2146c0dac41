// ibv_create_ah and related calls. A handle is a copy of the destination and never changes. The
// sender of a datagram is the IPv4 header in its GRH's second half (IBTA Annex A17). A completion
// without a GRH, or without a valid header there, is refused with EINVAL.
//
// Limits: kMaxAhs handles of a NIC (ENOMEM). The MAC of every destination is the gateway's.
#include "nic-emulator/verbs/queues/address_handle.h"

#include <algorithm>

#include "nic-emulator/verbs/device/report.h"
#include "nic-emulator/verbs/next_library.h"
#include "nic-emulator/verbs/queues/address_vector.h"
#include "wire/ipv4_header.h"

namespace cepheus::verbs {
namespace {

ibv_ah* create(ibv_pd* pd, const ibv_ah_attr& attributes) {
  return guarded([&]() -> ibv_ah* {
    ProtectionDomain& domain = ProtectionDomain::of(pd);
    if (domain.owner().nic().is_abandoned()) return refuse(ENODEV);
    AddressVector destination;
    if (const char* problem = to_engine(attributes, destination); problem != nullptr) {
      log_verbose(std::string("create ah: ") + problem);
      return refuse(EINVAL);
    }
    if (is_at_limit(domain.owner().nic().objects().handles, kMaxAhs)) return refuse(ENOMEM);
    return new AddressHandle(domain, destination);
  });
}

// The address of a datagram's sender: the second half of the GRH has its IPv4 header.
bool address_sender(const ibv_wc& wc, const ibv_grh& grh, std::uint8_t port, ibv_ah_attr& out) {
  if ((wc.wc_flags & IBV_WC_GRH) == 0) return false;
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(&grh), sizeof grh);
  const auto header = wire::Ipv4Header::parse(bytes.last<wire::Ipv4Header::kSize>());
  if (!header) return false;
  out = {};
  out.is_global = 1;
  out.port_num = port;
  out.grh.dgid = gid_of(header->source);
  out.grh.traffic_class = header->tos;
  out.grh.hop_limit = 0xFF;
  return true;
}

}  // namespace
}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_create_ah, pd, attributes);
  return create(pd, *attributes);
}

CEPHEUS_EXPORT int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc,
                                       ibv_grh* grh, ibv_ah_attr* attributes) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_init_ah_from_wc, context, port, wc, grh, attributes);
  return address_sender(*wc, *grh, port, *attributes) ? 0 : refuse_query(EINVAL);
}

CEPHEUS_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                             std::uint8_t port) {
  CEPHEUS_PASS_ON_UNLESS_OURS(pd->context, ibv_create_ah_from_wc, pd, wc, grh, port);
  ibv_ah_attr attributes;
  if (!address_sender(*wc, *grh, port, attributes)) return refuse(EINVAL);
  return create(pd, attributes);
}

CEPHEUS_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  CEPHEUS_PASS_ON_UNLESS_OURS(ah->context, ibv_destroy_ah, ah);
  delete static_cast<AddressHandle*>(ah);
  return 0;
}

CEPHEUS_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attributes,
                                               std::uint8_t mac[ETHERNET_LL_SIZE],
                                               std::uint16_t* vlan) {
  if (!is_ours(context)) {
    return call_next<int(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*)>(
        "ibv_resolve_eth_l2_from_gid", context, attributes, mac, vlan);
  }
  AddressVector unused;
  if (to_engine(*attributes, unused) != nullptr) return refuse_call(EINVAL);
  // Every packet goes to the switch, which routes it.
  const cepheus::wire::Mac& gateway = Context::of(context).nic().identity().gateway;
  std::copy(gateway.octets.begin(), gateway.octets.end(), mac);
  if (vlan != nullptr) *vlan = 0xFFFF;  // none
  return 0;
}
