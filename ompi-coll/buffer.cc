// Contiguous memory is used as it is. All else goes through Open MPI's convertor, which is prepared
// at the first call. Memory of a GPU counts as not contiguous, so the NIC never gets its address.
//
// Open MPI 4.1 packs and unpacks parts; what is left of a basic element waits for the next call.
// For 5.0 a message is packed or unpacked by one call, and takes memory of its own size. Data must
// come in order, but may come twice.
#include "ompi-coll/buffer.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "collectives/core/counters.h"
#include "collectives/device_memory.h"
#include "ompi-coll/codes.h"

namespace cepheus::ompi {
namespace {

// Packs whole elements of at most `most` bytes. After an error `moved` keeps its value.
int pack_some(opal_convertor_t& convertor, std::byte* memory, size_t most, size_t& moved) {
  struct iovec piece = {memory, most};
  uint32_t pieces = 1;
  size_t bytes = most;
  if (opal_convertor_pack(&convertor, &piece, &pieces, &bytes) < 0) return OMPI_ERROR;
  moved = bytes;
  return OMPI_SUCCESS;
}

int unpack_all(opal_convertor_t& convertor, const std::byte* from, size_t length) {
  while (length > 0) {
    struct iovec piece = {const_cast<std::byte*>(from), length};
    uint32_t pieces = 1;
    size_t moved = length;
    const int32_t rc = opal_convertor_unpack(&convertor, &piece, &pieces, &moved);
    if (rc < 0 || moved == 0) return OMPI_ERROR;
    from += moved;
    length -= moved;
  }
  return OMPI_SUCCESS;
}

}  // namespace

std::size_t bytes_of(std::size_t count, const ompi_datatype_t* type) {
  std::size_t size = 0;
  (void)ompi_datatype_type_size(type, &size);
  return size * count;
}

Buffer::Buffer(const Elements& elements)
    : memory_(elements.memory),
      count_(elements.count),
      type_(elements.type),
      bytes_(bytes_of(count_, type_)) {
  contiguous_ = ompi_datatype_is_contiguous_memory_layout(type_, static_cast<int32_t>(count_)) != 0;
  ptrdiff_t true_lb = 0, true_extent = 0;
  (void)ompi_datatype_get_true_extent(type_, &true_lb, &true_extent);
  // With MPI_BOTTOM the type alone has the address.
  std::byte* const first = static_cast<std::byte*>(memory_) + true_lb;
  if (coll::is_device_memory(first) || is_accelerator_memory(first)) {
    contiguous_ = false;  // Open MPI's convertor knows how to copy it, and the NIC never sees it
    coll::counters().add(coll::Counters::Which::kDevice);
  }
  if (contiguous_) {
    first_ = first;
  } else {
    OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
  }
}

Buffer::~Buffer() {
  if (!contiguous_) OBJ_DESTRUCT(&convertor_);
}

coll::Code Buffer::pack(std::size_t offset, void* memory, std::size_t length) {
  int rc = prepare(true);
  if (rc == OMPI_SUCCESS && kConvertorTakesParts)
    return to_code(pack_elements(offset, static_cast<std::byte*>(memory), length));
  if (rc == OMPI_SUCCESS) rc = pack_whole();
  if (rc == OMPI_SUCCESS) std::memcpy(memory, whole_.bytes.get() + offset, length);
  return to_code(rc);
}

coll::Code Buffer::unpack(std::size_t offset, const void* memory, std::size_t length) {
  const int prepared = prepare(false);
  if (prepared != OMPI_SUCCESS) return to_code(prepared);
  const auto* from = static_cast<const std::byte*>(memory);
  if (!kConvertorTakesParts) return to_code(unpack_whole(offset, from, length));
  std::size_t position = offset;
  (void)opal_convertor_set_position(&convertor_, &position);
  return to_code(unpack_all(convertor_, from, length));
}

int Buffer::reserve_whole() {
  if (whole_.bytes == nullptr) whole_.bytes.reset(new (std::nothrow) std::byte[bytes_]);
  return whole_.bytes != nullptr ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int Buffer::pack_whole() {
  if (whole_.come == bytes_) return OMPI_SUCCESS;
  if (const int rc = reserve_whole(); rc != OMPI_SUCCESS) return rc;
  size_t begin = 0;
  (void)opal_convertor_set_position(&convertor_, &begin);  // an earlier try may have left it inside
  const int rc = pack_some(convertor_, whole_.bytes.get(), bytes_, whole_.come);
  return rc == OMPI_SUCCESS && whole_.come == bytes_ ? OMPI_SUCCESS : OMPI_ERROR;
}

// Units come in their order; one may come again.
int Buffer::unpack_whole(size_t offset, const std::byte* from, size_t length) {
  if (offset > whole_.come) return OMPI_ERROR;
  if (const int rc = reserve_whole(); rc != OMPI_SUCCESS) return rc;
  std::memcpy(whole_.bytes.get() + offset, from, length);
  whole_.come = std::max(whole_.come, offset + length);
  if (whole_.come < bytes_) return OMPI_SUCCESS;
  size_t begin = 0;
  (void)opal_convertor_set_position(&convertor_, &begin);
  return unpack_all(convertor_, whole_.bytes.get(), bytes_);
}

int Buffer::prepare(bool for_packing) {
  if (prepared_) return OMPI_SUCCESS;
  const int rc =
      for_packing ? opal_convertor_copy_and_prepare_for_send(
                        ompi_mpi_local_convertor, &type_->super, count_, memory_, 0, &convertor_)
                  : opal_convertor_copy_and_prepare_for_recv(
                        ompi_mpi_local_convertor, &type_->super, count_, memory_, 0, &convertor_);
  prepared_ = rc == OPAL_SUCCESS;
  return rc;
}

int Buffer::pack_elements(size_t offset, std::byte* memory, size_t length) {
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
      if (pack_some(convertor_, memory, length, moved) != OMPI_SUCCESS) return OMPI_ERROR;
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
int Buffer::refill(size_t offset) {
  do {
    size_t moved = 0;
    const int rc = pack_some(convertor_, rest_.bytes.data(), rest_.bytes.size(), moved);
    if (rc != OMPI_SUCCESS || moved == 0) return OMPI_ERROR;
    rest_.offset = rest_.end();
    rest_.length = moved;
  } while (rest_.end() <= offset);
  return OMPI_SUCCESS;
}

}  // namespace cepheus::ompi
