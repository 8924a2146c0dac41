#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

int TreeOperation::start() {
  window_ = call_.payload->window(call_.offset, call_.length);
  if (window_ == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  if (call_.is_root()) {
    return call_.payload->contiguous() ? OMPI_SUCCESS
                                       : call_.payload->pack(call_.offset, window_, call_.length);
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

int TreeOperation::progress(Actions&) {
  int rc = window_ == nullptr ? start() : OMPI_SUCCESS;
  int error = MPI_SUCCESS;
  while (rc == OMPI_SUCCESS && here_ < segments()) {
    if (!call_.is_root()) {
      if (!receives_[here_].test(error)) return OMPI_ERR_WOULD_BLOCK;
      if (error != MPI_SUCCESS) return error;
    }
    rc = pass_on();
  }
  if (rc != OMPI_SUCCESS) return rc;
  if (!sends_.test(error)) return OMPI_ERR_WOULD_BLOCK;
  if (error != MPI_SUCCESS || call_.is_root()) return error;
  return call_.payload->unpack(call_.offset, window_, call_.length);
}

}  // namespace cepheus::coll
