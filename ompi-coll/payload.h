// The user's buffer of a broadcast as bytes: contiguous memory as it is, anything else packed and
// unpacked by Open MPI.
#pragma once

#include <cstddef>
#include <memory>

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

class Payload {
 public:
  Payload(void* buffer, size_t count, ompi_datatype_t* type);
  ~Payload();
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  size_t bytes() const { return bytes_; }
  bool contiguous() const { return contiguous_; }

  // Copies bytes [offset, offset + length) of the packed form to or from `memory`. Calls go from
  // low offsets to high.
  int pack(size_t offset, void* memory, size_t length);
  int unpack(size_t offset, const void* memory, size_t length);
  // Memory that holds [offset, offset + length): the user's own, or a staging buffer of `length`
  // bytes.
  void* window(size_t offset, size_t length);

 private:
  int move(bool pack, size_t offset, void* memory, size_t length);

  void* buffer_;
  size_t count_;
  ompi_datatype_t* type_;
  size_t bytes_ = 0;
  bool contiguous_ = false;
  std::byte* first_ = nullptr;  // contiguous: the first byte
  std::unique_ptr<std::byte[]> staging_;
  size_t staging_bytes_ = 0;
  bool prepared_ = false;
  opal_convertor_t convertor_;
};

}  // namespace cepheus::coll
