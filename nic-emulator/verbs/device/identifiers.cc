// The port's tables. They have one GID, the IPv4 address as RoCE v2 maps it (IBTA Annex A17), and
// one P_Key, the default. Any other port or index is refused with EINVAL. In the child of a fork()
// the GID is refused with ENODEV.
//
// Inline functions of verbs.h call those with an underscore. copy_answer() writes no more bytes
// than the caller's structure has.
#include <endian.h>

#include "nic-emulator/verbs/device/context.h"
#include "nic-emulator/verbs/next_library.h"

namespace cepheus::verbs {
namespace {

// An errno, or 0 and the entry.
int find_gid(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry& entry) {
  const LiveNic& nic = Context::of(context).nic();
  if (nic.is_abandoned()) return ENODEV;
  if (port != kPort || index != 0) return EINVAL;
  entry = {};
  entry.gid = gid_of(nic.identity().address);
  entry.port_num = kPort;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  return 0;
}

}  // namespace
}  // namespace cepheus::verbs

using namespace cepheus::verbs;

// Type query of libibverbs' own utilities; not in its public header.
enum class SysfsGidType : int { kIbOrRoceV1, kRoceV2 };

CEPHEUS_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_query_gid, context, port, index, gid);
  ibv_gid_entry entry;
  const int error = find_gid(context, port, static_cast<std::uint32_t>(index), entry);
  if (error != 0) return refuse_query(error);
  *gid = entry.gid;
  return 0;
}

CEPHEUS_EXPORT int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                                      SysfsGidType* type) {
  if (!is_ours(context)) {
    return call_next<int(ibv_context*, std::uint8_t, unsigned, SysfsGidType*)>(
        "ibv_query_gid_type", context, port, index, type);
  }
  ibv_gid_entry entry;
  if (const int error = find_gid(context, port, index, entry); error != 0) {
    return refuse_query(error);
  }
  *type = SysfsGidType::kRoceV2;
  return 0;
}

CEPHEUS_EXPORT int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                     ibv_gid_entry* entry, std::uint32_t flags,
                                     std::size_t entry_size) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, _ibv_query_gid_ex, context, port, index, entry, flags,
                              entry_size);
  if (flags != 0) return refuse_call(EOPNOTSUPP);
  ibv_gid_entry found;
  if (const int error = find_gid(context, port, index, found); error != 0) {
    return refuse_call(error);
  }
  copy_answer(found, entry, entry_size);
  return 0;
}

CEPHEUS_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                            std::size_t max_entries, std::uint32_t flags,
                                            std::size_t entry_size) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, _ibv_query_gid_table, context, entries, max_entries, flags,
                              entry_size);
  if (max_entries < 1) return -EINVAL;
  const int error = _ibv_query_gid_ex(context, kPort, 0, entries, flags, entry_size);
  return error != 0 ? -error : 1;
}

CEPHEUS_EXPORT int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index,
                                  __be16* pkey) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_query_pkey, context, port, index, pkey);
  if (port != kPort || index != 0) return refuse_query(EINVAL);
  *pkey = htobe16(kDefaultPkey);
  return 0;
}

CEPHEUS_EXPORT int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  CEPHEUS_PASS_ON_UNLESS_OURS(context, ibv_get_pkey_index, context, port, pkey);
  return port == kPort && pkey == htobe16(kDefaultPkey) ? 0 : refuse_query(EINVAL);
}
