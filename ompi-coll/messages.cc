#include "ompi-coll/messages.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace cepheus::coll {

namespace {

// Sends whose sender has gone: their copies stay until Open MPI has taken them. Never destroyed.
template <typename Pending>
struct Kept {
  std::mutex mutex;
  std::vector<Pending> sends;
};

}  // namespace

void Messages::keep(Pending pending) {
  static auto& kept = *new Kept<Pending>;
  const std::lock_guard<std::mutex> guard(kept.mutex);
  std::erase_if(kept.sends, [](Pending& each) {
    const bool is_complete = REQUEST_COMPLETE(each.request);
    if (is_complete) ompi_request_free(&each.request);
    return is_complete;
  });
  kept.sends.push_back(std::move(pending));
}

// Requests that never completed (a peer is gone): receives are taken back, sends can't be.
Messages::~Messages() {
  for (size_t i = next_; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    if (pending.copy != nullptr && !REQUEST_COMPLETE(pending.request)) {
      keep(std::move(pending));
      continue;
    }
    if (!REQUEST_COMPLETE(pending.request)) ompi_request_cancel(pending.request);
    ompi_request_free(&pending.request);
  }
}

int Messages::start(const void* data, size_t size, int to, Tag tag, const Team& team,
                    Pending& out) {
  out = {nullptr, false, size, nullptr};
  if (size <= kCopied) {
    out.copy = std::make_unique<std::byte[]>(size + 1);
    if (size > 0) std::memcpy(out.copy.get(), data, size);
    data = out.copy.get();
  }
  return MCA_PML_CALL(isend(const_cast<void*>(data), size, MPI_BYTE, team.rank_of(to),
                            team.tag(tag), MCA_PML_BASE_SEND_STANDARD, team.comm(), &out.request));
}

int Messages::send(const void* data, size_t size, int to, Tag tag, const Team& team) {
  Pending pending{};
  const int rc = start(data, size, to, tag, team, pending);
  if (rc == OMPI_SUCCESS) pending_.push_back(std::move(pending));
  return rc;
}

int Messages::post(const void* data, size_t size, int to, Tag tag, const Team& team) {
  Pending pending{};
  const int rc = start(data, size, to, tag, team, pending);
  if (rc == OMPI_SUCCESS) keep(std::move(pending));
  return rc;
}

int Messages::receive(void* data, size_t size, int from, Tag tag, const Team& team) {
  ompi_request_t* request = nullptr;
  const int rc = MCA_PML_CALL(
      irecv(data, size, MPI_BYTE, team.rank_of(from), team.tag(tag), team.comm(), &request));
  if (rc == OMPI_SUCCESS) pending_.push_back({request, true, size, nullptr});
  return rc;
}

bool Messages::test(int& error) {
  for (; next_ < pending_.size(); ++next_) {
    auto& [request, is_receive, size, copy] = pending_[next_];
    if (!REQUEST_COMPLETE(request)) return false;
    int error_here = request->req_status.MPI_ERROR;
    if (error_here == MPI_SUCCESS && is_receive && request->req_status._ucount != size)
      error_here = request->req_status._ucount == 0 ? kEmpty : MPI_ERR_TRUNCATE;
    if (error_ == MPI_SUCCESS) error_ = error_here;
    ompi_request_free(&request);
  }
  pending_.clear();
  next_ = 0;
  error = error_;
  error_ = MPI_SUCCESS;
  return true;
}

bool Messages::end() {
  for (size_t i = next_; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    if (pending.is_receive && !REQUEST_COMPLETE(pending.request))
      ompi_request_cancel(pending.request);
  }
  int error = MPI_SUCCESS;
  return test(error);
}

}  // namespace cepheus::coll
