#include "ompi-coll/payload.h"

#include <sys/uio.h>

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
  return move(true, offset, memory, length);
}

int Payload::unpack(size_t offset, const void* memory, size_t length) {
  if (contiguous_) {
    if (memory != first_ + offset) std::memcpy(first_ + offset, memory, length);
    return OMPI_SUCCESS;
  }
  return move(false, offset, const_cast<void*>(memory), length);
}

void* Payload::window(size_t offset, size_t length) {
  if (contiguous_) return first_ + offset;
  if (staging_bytes_ < length) {
    staging_.reset(new (std::nothrow) std::byte[length]);
    staging_bytes_ = staging_ != nullptr ? length : 0;
  }
  return staging_.get();
}

int Payload::move(bool pack, size_t offset, void* memory, size_t length) {
  if (!prepared_) {
    const int rc =
        pack ? opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type_->super,
                                                        count_, buffer_, 0, &convertor_)
             : opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type_->super,
                                                        count_, buffer_, 0, &convertor_);
    if (rc != OPAL_SUCCESS) return rc;
    prepared_ = true;
  }
  size_t position = offset;
  (void)opal_convertor_set_position(&convertor_, &position);
  while (length > 0) {
    struct iovec piece = {memory, length};
    uint32_t pieces = 1;
    size_t moved = length;
    const int32_t rc = pack ? opal_convertor_pack(&convertor_, &piece, &pieces, &moved)
                            : opal_convertor_unpack(&convertor_, &piece, &pieces, &moved);
    if (rc < 0 || moved == 0) return OMPI_ERROR;
    memory = static_cast<std::byte*>(memory) + moved;
    length -= moved;
  }
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
