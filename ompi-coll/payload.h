// The user's buffer of a broadcast as bytes: contiguous memory as it is, anything else packed and
// unpacked by Open MPI.
#pragma once

#include <array>
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
  // Sends may read window() at once, without pack().
  bool contiguous() const { return contiguous_ && spoiled_ == OMPI_SUCCESS; }

  // Copies bytes [offset, offset + length) of the packed form to or from `memory`, wherever that
  // cuts a basic element in two. Quickest from low offsets to high; what is unpacked begins at 0 and
  // leaves nothing out, though parts may come again. pack(): null is no memory.
  int pack(size_t offset, void* memory, size_t length);
  // Does nothing after a failure.
  void unpack(size_t offset, const void* memory, size_t length);
  // Some of the data is missing here, for the reason `rc`. The first failure stays in error(): the
  // call ends in it, but this rank still takes part in the rest, because others wait for it. That
  // all go to the saved module (OMPI_ERR_NOT_AVAILABLE) counts more than what this rank lacks.
  void fail(int rc) {
    if (error_ == OMPI_SUCCESS || rc == OMPI_ERR_NOT_AVAILABLE) error_ = rc;
  }
  int error() const { return error_; }
  // There is no data, for the reason `rc`: pack() fails from now on.
  void spoil(int rc) { spoiled_ = rc; }
  // Memory that holds [offset, offset + length): the user's own, or a staging buffer of `length`
  // bytes. Null: there is none.
  void* window(size_t offset, size_t length);

 private:
  // Open MPI's convertor packs whole basic elements only. What a call that ended inside one has got
  // too much stays here for the next.
  struct Rest {
    static constexpr size_t kMost = 64;  // bytes; no basic element is half as long
    std::array<std::byte, kMost> bytes;
    size_t offset = 0;  // of the first one in the packed form
    size_t length = 0;

    size_t end() const { return offset + length; }
  };
  // Open MPI 5.0's loses its place between one call and the next for some types, whole elements or
  // not: there a message is packed and unpacked by one call, and lies here meanwhile.
  struct Whole {
    std::unique_ptr<std::byte[]> bytes;
    size_t come = 0;  // from the first on
  };

  int prepare(bool for_packing);
  int reserve_whole();
  int pack_whole();
  int try_to_unpack(size_t offset, const void* memory, size_t length);
  int unpack_whole(size_t offset, const std::byte* from, size_t length);
  int pack_elements(size_t offset, std::byte* memory, size_t length);
  int refill(size_t offset);

  void* buffer_;
  size_t count_;
  ompi_datatype_t* type_;
  size_t bytes_ = 0;
  bool contiguous_ = false;
  int spoiled_ = OMPI_SUCCESS;
  int error_ = OMPI_SUCCESS;    // the first failure
  std::byte* first_ = nullptr;  // contiguous: the first byte
  std::unique_ptr<std::byte[]> staging_;
  size_t staging_bytes_ = 0;
  bool prepared_ = false;
  Rest rest_;  // the convertor stands at its end
  Whole whole_;
  opal_convertor_t convertor_;
};

}  // namespace cepheus::coll
