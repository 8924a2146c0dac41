#include "ompi-coll/payload.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "ompi-coll/counters.h"
#include "ompi-coll/device_memory.h"

namespace cepheus::coll {

Payload::Payload(void* buffer, size_t count, ompi_datatype_t* type)
    : buffer_(buffer), count_(count), type_(type) {
  size_t size = 0;
  (void)ompi_datatype_type_size(type, &size);
  bytes_ = size * count;
  contiguous_ = ompi_datatype_is_contiguous_memory_layout(type, static_cast<int32_t>(count)) != 0;
  if (is_device_memory(buffer)) {
    contiguous_ = false;  // Open MPI's convertor knows how to copy it, and the NIC never sees it
    counters().add(Counters::Which::kDevice);
  }
  if (contiguous_) {
    ptrdiff_t true_lb = 0, true_extent = 0;
    (void)ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
    first_ = static_cast<std::byte*>(buffer) + true_lb;
  }
  OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
}

Payload::~Payload() { OBJ_DESTRUCT(&convertor_); }

int Payload::pack(size_t offset, void* memory, size_t length) {
  if (contiguous_) {
    std::memcpy(memory, first_ + offset, length);
    return OMPI_SUCCESS;
  }
  const int rc = prepare(true);
  return rc == OMPI_SUCCESS ? pack_elements(offset, static_cast<std::byte*>(memory), length) : rc;
}

int Payload::unpack(size_t offset, const void* memory, size_t length) {
  if (contiguous_) {
    if (memory != first_ + offset) std::memcpy(first_ + offset, memory, length);
    return OMPI_SUCCESS;
  }
  const int prepared = prepare(false);
  if (prepared != OMPI_SUCCESS) return prepared;
  // Unpacking takes parts of elements as they come.
  size_t position = offset;
  (void)opal_convertor_set_position(&convertor_, &position);
  const auto* from = static_cast<const std::byte*>(memory);
  while (length > 0) {
    struct iovec piece = {const_cast<std::byte*>(from), length};
    uint32_t pieces = 1;
    size_t moved = length;
    const int32_t rc = opal_convertor_unpack(&convertor_, &piece, &pieces, &moved);
    if (rc < 0 || moved == 0) return OMPI_ERROR;
    from += moved;
    length -= moved;
  }
  return OMPI_SUCCESS;
}

void* Payload::window(size_t offset, size_t length) {
  if (contiguous_) return first_ + offset;
  if (staging_bytes_ < length) {
    staging_.reset(new (std::nothrow) std::byte[length]);
    staging_bytes_ = staging_ != nullptr ? length : 0;
  }
  return staging_.get();
}

int Payload::prepare(bool for_packing) {
  if (prepared_) return OMPI_SUCCESS;
  const int rc =
      for_packing ? opal_convertor_copy_and_prepare_for_send(
                        ompi_mpi_local_convertor, &type_->super, count_, buffer_, 0, &convertor_)
                  : opal_convertor_copy_and_prepare_for_recv(
                        ompi_mpi_local_convertor, &type_->super, count_, buffer_, 0, &convertor_);
  prepared_ = rc == OPAL_SUCCESS;
  return rc;
}

int Payload::pack_elements(size_t offset, std::byte* memory, size_t length) {
  while (length > 0) {
    if (offset < rest_.offset || offset > rest_.end()) {
      // Answers the start of the element that `offset` lies in.
      size_t position = offset;
      (void)opal_convertor_set_position(&convertor_, &position);
      rest_.offset = position;
      rest_.length = 0;
    }
    size_t moved = 0;
    if (offset == rest_.end()) {
      struct iovec piece = {memory, length};
      uint32_t pieces = 1;
      moved = length;
      if (opal_convertor_pack(&convertor_, &piece, &pieces, &moved) < 0) return OMPI_ERROR;
      rest_.offset = offset + moved;
      rest_.length = 0;
      if (moved == 0 && refill(offset) != OMPI_SUCCESS) return OMPI_ERROR;
    } else {
      if (offset >= rest_.end() && refill(offset) != OMPI_SUCCESS) return OMPI_ERROR;
      moved = std::min(length, rest_.end() - offset);
      std::memcpy(memory, rest_.bytes.data() + (offset - rest_.offset), moved);
    }
    memory += moved;
    offset += moved;
    length -= moved;
  }
  return OMPI_SUCCESS;
}

// Packs elements aside, from the convertor's position on, until they reach beyond `offset`.
int Payload::refill(size_t offset) {
  do {
    struct iovec piece = {rest_.bytes.data(), rest_.bytes.size()};
    uint32_t pieces = 1;
    size_t moved = rest_.bytes.size();
    if (opal_convertor_pack(&convertor_, &piece, &pieces, &moved) < 0 || moved == 0)
      return OMPI_ERROR;
    rest_.offset = rest_.end();
    rest_.length = moved;
  } while (rest_.end() <= offset);
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
