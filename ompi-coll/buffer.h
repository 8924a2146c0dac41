// The program's buffer of a collective call: contiguous memory that the NIC may read, or anything
// else, which Open MPI packs and unpacks.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "collectives/reduction_call.h"
#include "collectives/units/payload.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::ompi {

// MPI's computation, for any count.
std::size_t bytes_of(std::size_t count, const ompi_datatype_t* type);

using Elements = coll::Elements<ompi_datatype_t*>;

class Buffer final : public coll::Packing {
 public:
  explicit Buffer(const Elements& elements);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::size_t bytes() const { return bytes_; }
  bool is_contiguous() const { return contiguous_; }
  // It refers to this buffer.
  coll::Payload payload() {
    return contiguous_ ? coll::Payload(first_, bytes_) : coll::Payload(*this, bytes_);
  }

  coll::Code pack(std::size_t offset, void* memory, std::size_t length) override;
  coll::Code unpack(std::size_t offset, const void* memory, std::size_t length) override;

 private:
  // Open MPI's convertor packs whole basic elements only. If a call ends inside one, the rest of
  // that element stays here for the next call.
  struct Rest {
    static constexpr std::size_t kMost = 64;  // bytes; no basic element is half as long
    std::array<std::byte, kMost> bytes;
    std::size_t offset = 0;  // of the first one in the packed form
    std::size_t length = 0;

    std::size_t end() const { return offset + length; }
  };
  // Open MPI 5.0's loses its place between one call and the next for some types, whole elements or
  // not: there a message is packed and unpacked by one call, and lies here meanwhile.
  struct Whole {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t come = 0;  // from the first on
  };

  int prepare(bool for_packing);
  int reserve_whole();
  int pack_whole();
  int unpack_whole(std::size_t offset, const std::byte* from, std::size_t length);
  int pack_elements(std::size_t offset, std::byte* memory, std::size_t length);
  int refill(std::size_t offset);

  void* memory_;
  std::size_t count_;
  ompi_datatype_t* type_;
  std::size_t bytes_;
  bool contiguous_;
  std::byte* first_ = nullptr;  // contiguous: the first byte
  bool prepared_ = false;
  Rest rest_;  // the convertor's position is its end
  Whole whole_;
  opal_convertor_t convertor_;
};

}  // namespace cepheus::ompi
