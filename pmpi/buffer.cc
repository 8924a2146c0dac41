// A type is contiguous here if its description shows that: predefined, or a duplicate or contiguous
// row of such a type. All others, GPU memory, and any memory beside a GPU runtime are packed by
// PMPI_Pack as a whole.
//
// Packed data takes memory of the message's size, once. MPI_BOTTOM becomes a type of our own with
// another address. The caller passes at most INT_MAX elements and bytes. Data must come in order,
// but may come twice.
#include "pmpi/buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "collectives/core/counters.h"
#include "collectives/device_memory.h"
#include "collectives/group/gpu_runtime.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"
#include "pmpi/communicator.h"

namespace cepheus::pmpi {

namespace {

// How a type was made; false: with large counts, or MPI failed.
struct Envelope {
  int integers = 0, addresses = 0, types = 0, combiner = 0;

  bool read(Datatype type) {
    const Calls& mpi = calls();
    if (mpi.Type_get_envelope_c == nullptr)
      return mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) == kSuccess;
    Count large[4] = {};
    if (mpi.Type_get_envelope_c(type, &large[0], &large[1], &large[2], &large[3], &combiner) !=
            kSuccess ||
        large[2] != 0)
      return false;
    integers = static_cast<int>(large[0]);
    addresses = static_cast<int>(large[1]);
    types = static_cast<int>(large[3]);
    return true;
  }
};

// Types that MPI has made, some without a name (MPI_Type_create_f90_real): nobody may free them.
bool is_predefined_combiner(int combiner) {
  return combiner == kNamed || combiner == kF90Real || combiner == kF90Complex ||
         combiner == kF90Integer;
}

}  // namespace

bool is_predefined(Datatype type) {
  Envelope made;
  return made.read(type) && is_predefined_combiner(made.combiner);
}

bool is_dense(Datatype type) {
  Count size = 0, lower_bound = 0, extent = 0;
  Envelope made;
  const Calls& mpi = calls();
  if (!made.read(type) || mpi.Type_size_x(type, &size) != kSuccess ||
      mpi.Type_get_extent_x(type, &lower_bound, &extent) != kSuccess || lower_bound != 0 ||
      size != extent)
    return false;
  if (is_predefined_combiner(made.combiner)) return true;
  if ((made.combiner != kDup && made.combiner != kContiguous) || made.types != 1) return false;
  std::vector<int> integer(static_cast<std::size_t>(std::max(made.integers, 1)));
  std::vector<std::intptr_t> address(static_cast<std::size_t>(std::max(made.addresses, 1)));
  Datatype inner = kDatatypeNull;
  if (mpi.Type_get_contents(type, made.integers, made.addresses, made.types, integer.data(),
                            address.data(), &inner) != kSuccess)
    return false;
  const bool dense = is_dense(inner);
  if (!is_predefined(inner)) (void)mpi.Type_free(&inner);
  return dense;
}

Datatype make_row(const Elements& elements, std::intptr_t distance) {
  const Calls& mpi = calls();
  const int count = static_cast<int>(elements.count);
  Datatype row = kDatatypeNull;
  if (mpi.Type_create_hindexed(1, &count, &distance, elements.type, &row) != kSuccess)
    return kDatatypeNull;
  if (mpi.Type_commit(&row) == kSuccess) return row;
  (void)mpi.Type_free(&row);
  return kDatatypeNull;
}

Buffer::Buffer(const Elements& elements) : elements_(elements) {
  Count size = 0;
  if (calls().Type_size_x(elements.type, &size) == kSuccess)
    bytes_ = elements.count * static_cast<std::size_t>(size);
  const bool on_device = coll::is_device_memory(elements.memory);
  if (on_device) coll::counters().add(coll::Counters::Which::kDevice);
  // A runtime that was loaded after the group's set-up: PMPI_Pack knows the memory.
  contiguous_ = !on_device && !coll::has_gpu_runtime() && is_dense(elements.type);
  if (elements.memory == nullptr) leave_bottom();
}

Buffer::~Buffer() {
  if (own_type_ != kDatatypeNull) (void)calls().Type_free(&own_type_);
}

// MPICH packs nothing at MPI_BOTTOM, a null address. So one element of a type of our own is all the
// data, at the distance from another address.
void Buffer::leave_bottom() {
  Count lower_bound = 0, extent = 0;
  (void)calls().Type_get_true_extent_x(elements_.type, &lower_bound, &extent);
  elements_.memory = reinterpret_cast<void*>(static_cast<std::intptr_t>(lower_bound));
  make_own_type(-static_cast<std::intptr_t>(lower_bound));
}

void Buffer::hold() {
  if (!contiguous_ && own_type_ == kDatatypeNull) make_own_type(0);
}

// If MPI fails, there is no memory.
void Buffer::make_own_type(std::intptr_t distance) {
  own_type_ = make_row(elements_, distance);
  if (own_type_ == kDatatypeNull) elements_.memory = nullptr;
  elements_.count = 1;
  elements_.type = own_type_;
}

coll::Code Buffer::reserve() {
  if (packed_ == nullptr) packed_.reset(new (std::nothrow) std::byte[bytes_]);
  return packed_ != nullptr ? coll::Code::kDone : coll::Code::kNoMemory;
}

coll::Code Buffer::pack(std::size_t offset, void* memory, std::size_t length) {
  if (come_ < bytes_) {
    if (const coll::Code rc = reserve(); rc != coll::Code::kDone) return rc;
    if (elements_.memory == nullptr) return coll::Code::kFailed;  // no type of our own
    int position = 0;
    const int rc =
        calls().Pack(elements_.memory, static_cast<int>(elements_.count), elements_.type,
                     packed_.get(), static_cast<int>(bytes_), &position, own_communicator());
    if (rc != kSuccess) return to_code(rc);
    if (static_cast<std::size_t>(position) != bytes_) return coll::Code::kFailed;
    come_ = bytes_;
  }
  std::memcpy(memory, packed_.get() + offset, length);
  return coll::Code::kDone;
}

// Units come in their order; one may come again.
coll::Code Buffer::unpack(std::size_t offset, const void* memory, std::size_t length) {
  if (offset > come_) return coll::Code::kFailed;
  if (const coll::Code rc = reserve(); rc != coll::Code::kDone) return rc;
  std::memcpy(packed_.get() + offset, memory, length);
  come_ = std::max(come_, offset + length);
  if (come_ < bytes_) return coll::Code::kDone;
  if (elements_.memory == nullptr) return coll::Code::kFailed;
  int position = 0;
  return to_code(calls().Unpack(packed_.get(), static_cast<int>(bytes_), &position,
                                elements_.memory, static_cast<int>(elements_.count), elements_.type,
                                own_communicator()));
}

}  // namespace cepheus::pmpi
