#include "ompi-coll/messages.h"

namespace cepheus::coll {

// Requests that never completed (a peer is gone): cancelled and given back to the PML.
Messages::~Messages() {
  for (size_t i = next_; i < requests_.size(); ++i) {
    if (!REQUEST_COMPLETE(requests_[i])) ompi_request_cancel(requests_[i]);
    ompi_request_free(&requests_[i]);
  }
}

int Messages::send(const void* data, size_t size, int to, Tag tag, const Team& team) {
  ompi_request_t* request = nullptr;
  const int rc =
      MCA_PML_CALL(isend(const_cast<void*>(data), size, MPI_BYTE, team.rank_of(to),
                         static_cast<int>(tag), MCA_PML_BASE_SEND_STANDARD, team.comm(), &request));
  if (rc == OMPI_SUCCESS) requests_.push_back(request);
  return rc;
}

int Messages::receive(void* data, size_t size, int from, Tag tag, const Team& team) {
  ompi_request_t* request = nullptr;
  const int rc = MCA_PML_CALL(irecv(data, size, MPI_BYTE, team.rank_of(from), static_cast<int>(tag),
                                    team.comm(), &request));
  if (rc == OMPI_SUCCESS) requests_.push_back(request);
  return rc;
}

bool Messages::test(int& error) {
  for (; next_ < requests_.size(); ++next_) {
    ompi_request_t*& request = requests_[next_];
    if (!REQUEST_COMPLETE(request)) return false;
    if (request->req_status.MPI_ERROR != MPI_SUCCESS && error_ == MPI_SUCCESS)
      error_ = request->req_status.MPI_ERROR;
    ompi_request_free(&request);
  }
  requests_.clear();
  next_ = 0;
  error = error_;
  error_ = MPI_SUCCESS;
  return true;
}

}  // namespace cepheus::coll
