// The program's buffer of a call: contiguous memory that the NIC may read, or anything else, which MPI
// packs and unpacks as a whole.
#pragma once

#include <cstddef>
#include <memory>

#include "collectives/reduction_call.h"
#include "collectives/units/payload.h"
#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

using Elements = coll::Elements<Datatype>;

// The arguments of a broadcast, and the bytes of its data.
struct BroadcastCall {
  Elements elements;
  int root;
  std::size_t bytes = 0;
};

// An element's bytes lie in order, without gaps, from its address on, and the next element follows.
// False for some such types, too: packing serves all.
bool is_dense(Datatype type);
// MPI has made it, and nobody may free it.
bool is_predefined(Datatype type);
// A committed type of all elements, `distance` bytes from their address. Null: MPI failed.
Datatype make_row(const Elements& elements, std::intptr_t distance);

class Buffer final : public coll::Packing {
 public:
  // At most INT_MAX elements and bytes.
  explicit Buffer(const Elements& elements);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // The program may free its type from now on.
  void hold();
  std::size_t bytes() const { return bytes_; }
  // It refers to this buffer.
  coll::Payload payload() {
    return contiguous_ ? coll::Payload(elements_.memory, bytes_) : coll::Payload(*this, bytes_);
  }

  coll::Code pack(std::size_t offset, void* memory, std::size_t length) override;
  coll::Code unpack(std::size_t offset, const void* memory, std::size_t length) override;

 private:
  void leave_bottom();
  void make_own_type(std::intptr_t distance);
  coll::Code reserve();

  Elements elements_;
  Datatype own_type_ = kDatatypeNull;
  std::size_t bytes_ = 0;
  bool contiguous_;
  std::unique_ptr<std::byte[]> packed_;
  std::size_t come_ = 0;  // bytes of packed_ that are valid, from the first on
};

}  // namespace cepheus::pmpi
