#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

namespace {

// A rank without memory for its data receives it here, so that none is left for the next broadcast.
// A smaller receive is no way: Open MPI 4.1 writes a large message beyond its end.
std::byte dropped[TreeOperation::kMostSegment];

}  // namespace

std::byte* TreeOperation::memory(size_t index) const {
  return window_ == nullptr ? dropped : static_cast<std::byte*>(window_) + index * segment();
}

int TreeOperation::start() {
  started_ = true;
  window_ = call_.payload->window(call_.offset, call_.length);
  if (call_.is_root()) {
    Payload& payload = *call_.payload;
    const int rc =
        payload.contiguous() ? OMPI_SUCCESS : payload.pack(call_.offset, window_, call_.length);
    return rc == OMPI_SUCCESS ? rc : refuse(rc);
  }
  receives_ = std::make_unique<Messages[]>(segments());
  int rc = OMPI_SUCCESS;
  for (size_t i = 0; i < segments() && rc == OMPI_SUCCESS; ++i) {
    rc = receives_[i].receive(memory(i), segment_bytes(i), Tree{position_of(call_)}.parent(),
                              Tag::kTree, *call_.team);
  }
  return rc;
}

int TreeOperation::pass_on() {
  int rc = OMPI_SUCCESS;
  Tree{position_of(call_)}.children([&](int rank) {
    if (rc == OMPI_SUCCESS)
      rc = sends_.send(memory(here_), segment_bytes(here_), rank, Tag::kTree, *call_.team);
  });
  ++here_;
  return rc;
}

// The ranks below get an empty message for each segment that they lack, and then the reason `why`.
// Each receive that they have posted has its message so: none is left for those of the next unit.
int TreeOperation::refuse(int why) {
  refusal_ = why;
  const size_t lacking = segments() - here_;
  here_ = segments();
  int rc = OMPI_SUCCESS;
  Tree{position_of(call_)}.children([&](int rank) {
    for (size_t i = 0; i < lacking && rc == OMPI_SUCCESS; ++i)
      rc = sends_.send(nullptr, 0, rank, Tag::kTree, *call_.team);
    if (rc == OMPI_SUCCESS)
      rc = sends_.send(&refusal_, sizeof refusal_, rank, Tag::kRefusal, *call_.team);
  });
  return rc;
}

// The next segment, or the reason why none comes.
int TreeOperation::take() {
  int error = MPI_SUCCESS;
  if (is_refused_) {
    if (!reason_.test(error)) return OMPI_ERR_WOULD_BLOCK;
    return refuse(error == MPI_SUCCESS ? refusal_ : error);
  }
  if (!receives_[here_].test(error)) return OMPI_ERR_WOULD_BLOCK;
  if (error == MPI_SUCCESS)
    return window_ != nullptr ? pass_on() : refuse(OMPI_ERR_OUT_OF_RESOURCE);
  if (error != Messages::kEmpty) return refuse(error);
  is_refused_ = true;
  return reason_.receive(&refusal_, sizeof refusal_, Tree{position_of(call_)}.parent(),
                         Tag::kRefusal, *call_.team);
}

// Behind an error, too: what is under way from above uses this rank's memory.
bool TreeOperation::has_received_all() {
  int error = MPI_SUCCESS;
  for (size_t i = 0; receives_ != nullptr && i < segments(); ++i) {
    if (!receives_[i].test(error)) return false;
  }
  return true;
}

int TreeOperation::progress(Actions&) {
  int rc = started_ ? OMPI_SUCCESS : start();
  while (rc == OMPI_SUCCESS && here_ < segments()) rc = call_.is_root() ? pass_on() : take();
  if (rc != OMPI_SUCCESS) return rc;
  int error = MPI_SUCCESS;
  if (!sends_.test(error) || !has_received_all()) return OMPI_ERR_WOULD_BLOCK;
  if (error != MPI_SUCCESS) return error;
  if (refusal_ == MPI_ERR_TRUNCATE)
    return refusal_;  // counts differ: there may be no next unit here
  if (refusal_ != OMPI_SUCCESS)
    call_.payload->fail(refusal_);
  else if (!call_.is_root())
    call_.payload->unpack(call_.offset, window_, call_.length);
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
