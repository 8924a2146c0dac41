// Converts between ibv_qp_attr and the engine's attributes.
#pragma once

#include "nic-emulator/engine/verbs_types.h"
#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/engine_names.h"

namespace cepheus::verbs {

struct QpChange {
  QpAttr attributes;
  std::uint32_t mask = 0;  // QpAttrMask
};

// The attributes in `mask` (ibv_qp_attr_mask), for a QP of `type` that is now in `from`. Refuses,
// with a text that names it, any attribute that the engine lacks: other ports, P_Keys and GIDs,
// alternate paths, attributes of other services.
wire::Result<QpChange> to_engine(const ibv_qp_attr& attributes, int mask, QpState from,
                                 QpType type);
// Writes the engine's attributes into `attributes`.
void to_verbs(const QpAttr& from, ibv_qp_attr& attributes);
ibv_mtu mtu_code(std::uint32_t bytes);  // the largest up to `bytes`
ibv_qp_cap to_verbs(const QpCap& cap);
QpCap to_engine(const ibv_qp_cap& cap);

}  // namespace cepheus::verbs
