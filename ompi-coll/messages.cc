#include "ompi-coll/messages.h"

namespace cepheus::coll {

// Requests that never completed (a peer is gone): cancelled and given back to the PML.
Messages::~Messages() {
  for (size_t i = next_; i < pending_.size(); ++i) {
    ompi_request_t*& request = pending_[i].request;
    if (!REQUEST_COMPLETE(request)) ompi_request_cancel(request);
    ompi_request_free(&request);
  }
}

int Messages::send(const void* data, size_t size, int to, Tag tag, const Team& team) {
  ompi_request_t* request = nullptr;
  const int rc =
      MCA_PML_CALL(isend(const_cast<void*>(data), size, MPI_BYTE, team.rank_of(to), team.tag(tag),
                         MCA_PML_BASE_SEND_STANDARD, team.comm(), &request));
  if (rc == OMPI_SUCCESS) pending_.push_back({request, false, size});
  return rc;
}

int Messages::receive(void* data, size_t size, int from, Tag tag, const Team& team) {
  ompi_request_t* request = nullptr;
  const int rc = MCA_PML_CALL(
      irecv(data, size, MPI_BYTE, team.rank_of(from), team.tag(tag), team.comm(), &request));
  if (rc == OMPI_SUCCESS) pending_.push_back({request, true, size});
  return rc;
}

bool Messages::test(int& error) {
  for (; next_ < pending_.size(); ++next_) {
    auto& [request, is_receive, size] = pending_[next_];
    if (!REQUEST_COMPLETE(request)) return false;
    int error_here = request->req_status.MPI_ERROR;
    if (error_here == MPI_SUCCESS && is_receive && request->req_status._ucount != size)
      error_here = MPI_ERR_TRUNCATE;
    if (error_ == MPI_SUCCESS) error_ = error_here;
    ompi_request_free(&request);
  }
  pending_.clear();
  next_ = 0;
  error = error_;
  error_ = MPI_SUCCESS;
  return true;
}

}  // namespace cepheus::coll
