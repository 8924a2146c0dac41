#include "ucx-transport/transport_fixture.h"

#include <thread>

namespace cepheus::uct {

FakeLibrary lib;
unsigned ucx_major = UCT_VERNO_MAJOR, ucx_minor = UCT_VERNO_MINOR;

}  // namespace cepheus::uct

using namespace cepheus::uct;

#define EXPORTED extern "C" __attribute__((visibility("default"), used))

EXPORTED const char* mcast_last_error() { return "the test says so"; }
EXPORTED mcast_status_t mcast_context_create(const mcast_context_params_t* params,
                                             mcast_context_h* out) {
  if (lib.opening != MCAST_OK) return lib.opening;
  const auto text = [](const char* from) { return std::string(from != nullptr ? from : ""); };
  lib.contexts.push_back({text(params->device), text(params->key_file), *params});
  *out = reinterpret_cast<mcast_context_h>(&lib.contexts.back());
  return MCAST_OK;
}
EXPORTED void mcast_context_destroy(mcast_context_h) { lib.contexts.pop_back(); }
EXPORTED mcast_status_t mcast_group_create(mcast_context_h, const mcast_group_params_t* params,
                                           mcast_group_h* out) {
  if (lib.creation != MCAST_OK) return lib.creation;
  lib.params = *params;
  lib.attr.lane = params->lane;
  lib.exists = true;
  *out = kGroup;
  return MCAST_OK;
}
EXPORTED void mcast_group_destroy(mcast_group_h) {
  lib.exists = false;
  while (!lib.ops.empty()) {
    mcast_op_t* const op = lib.ops.front();
    lib.ops.pop_front();
    op->done(op, MCAST_ERR_CANCELED, 0, 0);
  }
}
EXPORTED mcast_status_t mcast_group_lead(mcast_group_h, const mcast_member_t* members,
                                         size_t count) {
  if (lib.leading != MCAST_OK) return lib.leading;
  for (size_t i = 0; i < count; ++i) lib.led.push_back(members[i].qpn);
  return MCAST_OK;
}
EXPORTED mcast_status_t mcast_group_member(mcast_group_h, mcast_member_t* out) {
  *out = kMember;
  return MCAST_OK;
}
EXPORTED mcast_status_t mcast_group_query(mcast_group_h, mcast_group_attr_t* out) {
  *out = lib.attr;
  return MCAST_OK;
}
EXPORTED mcast_status_t mcast_group_set_recv(mcast_group_h, mcast_recv_cb_t callback, void* arg) {
  lib.recv_cb = callback;
  lib.recv_arg = arg;
  return MCAST_OK;
}
EXPORTED mcast_status_t mcast_group_test(mcast_group_h) { return lib.test; }
EXPORTED unsigned mcast_group_outstanding(mcast_group_h) { return lib.outstanding; }
EXPORTED unsigned mcast_progress(mcast_context_h) {
  ++lib.progressed;
  return 0;
}
EXPORTED mcast_status_t mcast_send_eager_pack(mcast_group_h, mcast_pack_cb_t pack, void* arg,
                                              std::uint32_t imm, size_t* length) {
  if (lib.send != MCAST_OK) return lib.send;
  std::vector<char> memory(lib.attr.max_message);
  *length = pack(memory.data(), arg);
  lib.sent.push_back({std::string(memory.data(), *length), imm});
  return MCAST_OK;
}
EXPORTED mcast_status_t mcast_send(mcast_group_h, const void* data, size_t length, mcast_mem_h mem,
                                   std::uint32_t imm, mcast_op_t* op) {
  if (lib.send != MCAST_OK) return lib.send;
  lib.sent.push_back({std::string(static_cast<const char*>(data), length), imm});
  lib.mems.push_back(mem);
  lib.ops.push_back(op);
  return MCAST_INPROGRESS;
}
EXPORTED mcast_status_t mcast_write(mcast_group_h, const void* data, size_t length, mcast_mem_h mem,
                                    std::uint16_t region, std::uint64_t offset,
                                    const std::uint32_t* imm, mcast_op_t* op) {
  if (lib.send != MCAST_OK) return lib.send;
  lib.written.push_back(
      {std::string(static_cast<const char*>(data), length), region, offset, imm != nullptr});
  lib.mems.push_back(mem);
  lib.ops.push_back(op);
  return MCAST_INPROGRESS;
}
EXPORTED mcast_status_t mcast_recv(mcast_group_h, void*, size_t, mcast_mem_h mem, mcast_op_t* op) {
  if (lib.recv != MCAST_INPROGRESS) return lib.recv;
  lib.mems.push_back(mem);
  lib.ops.push_back(op);
  return MCAST_INPROGRESS;
}
EXPORTED void mcast_recv_release(mcast_group_h, void* data) { lib.released.push_back(data); }
EXPORTED mcast_status_t mcast_mem_register(mcast_context_h, void*, size_t, mcast_mem_h* out) {
  if (lib.registration != MCAST_OK) return lib.registration;
  std::this_thread::yield();  // another thread may come now
  ++lib.registered;
  *out = kMem;
  return MCAST_OK;
}
EXPORTED void mcast_mem_deregister(mcast_mem_h) { --lib.registered; }

// libucp's.
EXPORTED void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = ucx_major;
  *minor = ucx_minor;
  *release = 0;
}
