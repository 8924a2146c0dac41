// The program's buffer of a broadcast: contiguous memory that the NIC may read, or anything else,
// which MPI packs and unpacks as a whole.
#pragma once

#include <cstddef>
#include <memory>

#include "collectives/units/payload.h"
#include "pmpi/mpi_abi.h"

namespace cepheus::pmpi {

// The arguments of a broadcast, and the bytes of its data.
struct BroadcastCall {
  void* memory;
  Count count;
  Datatype type;
  int root;
  std::size_t bytes = 0;
};

class Buffer final : public coll::Packing {
 public:
  explicit Buffer(const BroadcastCall& call);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // The program may free its type from now on.
  void hold_type();
  // It refers to this buffer.
  coll::Payload payload() {
    return contiguous_ ? coll::Payload(memory_, bytes_) : coll::Payload(*this, bytes_);
  }

  coll::Code pack(std::size_t offset, void* memory, std::size_t length) override;
  coll::Code unpack(std::size_t offset, const void* memory, std::size_t length) override;

 private:
  void leave_bottom();
  void make_own_type(std::intptr_t distance);
  coll::Code reserve();

  void* memory_;
  Count count_;
  Datatype type_;
  Datatype own_type_ = kDatatypeNull;
  std::size_t bytes_;
  bool contiguous_;
  std::unique_ptr<std::byte[]> packed_;
  std::size_t come_ = 0;  // bytes of packed_ that are valid, from the first on
};

}  // namespace cepheus::pmpi
