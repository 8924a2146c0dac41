// Multicast WRITE behind UCT's put calls. `remote_addr` is an offset in the region of number
// `rkey`, as in mcast_region_publish(). No key needs to be packed or unpacked. zcopy takes one
// piece of the program's memory. bcopy packs into a bounce buffer, which is busy until the WRITE
// ends; without a free one it returns UCS_ERR_NO_RESOURCE. A put without bytes sends nothing.
#include <mcast/write.h>

#include "ucx-transport/memory_domain.h"
#include "ucx-transport/operation.h"

namespace cepheus::uct {
namespace {

constexpr uct_rkey_t kLargestRegion = UINT16_MAX;

void bcopy_done(mcast_op_t* op, mcast_status_t status, size_t, uint32_t) {
  auto* operation = static_cast<Operation*>(op->user);
  operation->state->bounces.give_back(operation->bounce);
  complete(operation, status);
}

// The data of a put, and its place.
struct Source {
  const void* data;
  size_t length;
  mcast_mem_h memory;
};

ucs_status_t write(Operation* operation, const Source& source, uint64_t offset, uct_rkey_t rkey) {
  const mcast_status_t status =
      mcast_write(operation->state->group, source.data, source.length, source.memory,
                  static_cast<uint16_t>(rkey), offset, nullptr, &operation->op);
  if (status != MCAST_INPROGRESS) give_back(operation);
  return to_ucs(status);
}

}  // namespace

ucs_status_t ep_put_zcopy(uct_ep_h ep, const uct_iov_t* iov, size_t iovcnt, uint64_t remote_addr,
                          uct_rkey_t rkey, uct_completion_t* comp) {
  InterfaceState& state = *interface_of(ep)->state;
  if (iovcnt != 1 || iov->count > 1 || rkey > kLargestRegion) return UCS_ERR_INVALID_PARAM;
  const size_t length = iov->count * iov->length;
  if (length > state.max_message) return UCS_ERR_INVALID_PARAM;
  if (length == 0) return UCS_OK;
  if (const ucs_status_t may = check_may_send(state); may != UCS_OK) return may;
  Operation* operation = take_operation(state);
  if (operation == nullptr) return UCS_ERR_NO_MEMORY;
  operation->op.done = on_done;
  operation->comp = comp;
  const Source source{iov->buffer, length,
                      mem_for(static_cast<MemoryHandle*>(iov->memh), state.context)};
  return write(operation, source, remote_addr, rkey);
}

ssize_t ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void* arg, uint64_t remote_addr,
                     uct_rkey_t rkey) {
  InterfaceState& state = *interface_of(ep)->state;
  if (rkey > kLargestRegion) return UCS_ERR_INVALID_PARAM;
  if (const ucs_status_t may = check_may_send(state); may != UCS_OK) return may;
  BounceBuffers::Number number = 0;
  const mcast_status_t taken = state.bounces.take(state.context, &number);
  if (taken != MCAST_OK) return to_ucs(taken);
  const Source source{state.bounces.address(number), pack(state.bounces.address(number), arg),
                      state.bounces.memory()};
  ucs_status_t status = UCS_OK;
  if (source.length != 0) {
    Operation* operation = take_operation(state);
    if (operation != nullptr) {
      operation->op.done = bcopy_done;
      operation->comp = nullptr;
      operation->bounce = number;
      status = write(operation, source, remote_addr, rkey);
    } else {
      status = UCS_ERR_NO_MEMORY;
    }
  }
  if (status == UCS_INPROGRESS) return static_cast<ssize_t>(source.length);
  state.bounces.give_back(number);
  return status == UCS_OK ? 0 : static_cast<ssize_t>(status);
}

}  // namespace cepheus::uct
