// Address handles: checked and kept. Nothing sends by them until the NIC has UD queue pairs.
#include <algorithm>

#include "soft-roce/verbs/memory.h"
#include "soft-roce/verbs/next_library.h"

namespace cepheus::rnic {
namespace {

class AddressHandle final : public ibv_ah {
 public:
  explicit AddressHandle(ProtectionDomain& domain) : ibv_ah{}, in_domain_(domain.users()) {
    context = domain.context;
    pd = &domain;
    handle = domain.owner().next_handle();
  }

 private:
  Reference in_domain_;
};

bool is_reachable(const ibv_ah_attr& a) {
  return a.is_global != 0 && a.grh.sgid_index == 0 && a.port_num <= kPort &&
         address_of(a.grh.dgid).has_value();
}

}  // namespace
}  // namespace cepheus::rnic

using namespace cepheus::rnic;

CEPHEUS_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  if (!is_ours(pd->context)) {
    return call_next<decltype(ibv_create_ah)>("ibv_create_ah", pd, attributes);
  }
  return guarded([&]() -> ibv_ah* {
    ProtectionDomain& domain = ProtectionDomain::of(pd);
    if (domain.owner().nic().is_abandoned()) return refuse(ENODEV);
    if (!is_reachable(*attributes)) return refuse(EINVAL);
    return new AddressHandle(domain);
  });
}

CEPHEUS_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                             std::uint8_t port) {
  if (!is_ours(pd->context)) {
    return call_next<decltype(ibv_create_ah_from_wc)>("ibv_create_ah_from_wc", pd, wc, grh, port);
  }
  return refuse(EOPNOTSUPP);
}

CEPHEUS_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  if (!is_ours(ah->context)) return call_next<decltype(ibv_destroy_ah)>("ibv_destroy_ah", ah);
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
  if (!is_reachable(*attributes)) return refuse_call(EINVAL);
  // Every packet goes to the switch, which knows the rest.
  const cepheus::wire::Mac& gateway = Context::of(context).nic().identity().gateway;
  std::copy(gateway.octets.begin(), gateway.octets.end(), mac);
  if (vlan != nullptr) *vlan = 0xFFFF;  // none
  return 0;
}
