#include "ompi-coll/fake_open_mpi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cepheus::coll::fake {

namespace {

OpenMpi* running_open_mpi = nullptr;

template <typename T>
std::unique_ptr<T, void (*)(void*)> zeroed() {
  return {static_cast<T*>(std::calloc(1, sizeof(T))), std::free};
}

// A communicator's name is an array in Open MPI 4.1, and a pointer in 5.0.
template <size_t size>
[[maybe_unused]] void set_name(char (&name)[size], const char* text) {
  std::strncpy(name, text, size - 1);
}
[[maybe_unused]] void set_name(char*& name, const char* text) { name = const_cast<char*>(text); }

}  // namespace

void start_progress() {
  static const bool once =
      opal_init_util(nullptr, nullptr) == OPAL_SUCCESS && opal_progress_init() == OPAL_SUCCESS;
  if (!once) std::abort();
}

struct Calls {
  static int send(const void* memory, size_t count, ompi_datatype_t*, int to, int tag,
                  mca_pml_base_send_mode_t, ompi_communicator_t* comm, ompi_request_t** out) {
    auto* const request = OpenMpi::make(comm->c_my_rank, to, tag, const_cast<void*>(memory), count);
    running_open_mpi->sent_bytes_[static_cast<size_t>(comm->c_my_rank)] += count;
    const auto& lengths = running_open_mpi->wrong_lengths;
    if (const auto wrong = lengths.find(tag); wrong != lengths.end()) {
      const auto* const bytes = static_cast<const std::byte*>(memory);
      request->forged.assign(bytes, bytes + std::min(count, wrong->second));
      request->forged.resize(wrong->second, std::byte{0xBB});
      request->memory = request->forged.data();
      request->size = wrong->second;
    }
    running_open_mpi->messages_.push_back(request);
    *out = request;
    return OMPI_SUCCESS;
  }
  static int receive(void* memory, size_t count, ompi_datatype_t*, int from, int tag,
                     ompi_communicator_t* comm, ompi_request_t** out) {
    auto* const request = OpenMpi::make(comm->c_my_rank, from, tag, memory, count);
    request->req_type = OMPI_REQUEST_PML;
    running_open_mpi->receives_.push_back(request);
    *out = request;
    return OMPI_SUCCESS;
  }
  // As ob1: sends can't be cancelled.
  static int cancel(ompi_request_t* request, int) {
    auto* const mine = static_cast<OpenMpi::Request*>(request);
    if (std::erase(running_open_mpi->receives_, mine) > 0)
      OpenMpi::complete(*mine, MPI_ANY_SOURCE, 0, MPI_SUCCESS);
    return OMPI_SUCCESS;
  }
  // As ob1: what is not complete goes on, and is given back then.
  static int free_request(ompi_request_t** request) {
    if (REQUEST_COMPLETE(*request)) {
      delete static_cast<OpenMpi::Request*>(*request);
    } else {
      (*request)->req_state = OMPI_REQUEST_INACTIVE;
    }
    *request = nullptr;
    return OMPI_SUCCESS;
  }
};

OpenMpi::OpenMpi(int ranks) : sent_bytes_(static_cast<size_t>(ranks)) {
  running_open_mpi = this;
  mca_pml.pml_isend = Calls::send;
  mca_pml.pml_irecv = Calls::receive;
  for (int rank = 0; rank < ranks; ++rank) {
    groups_.push_back(zeroed<ompi_group_t>());
    groups_.back()->grp_proc_count = ranks;
    ranks_.push_back(zeroed<ompi_communicator_t>());
    ompi_communicator_t& comm = *ranks_.back();
    comm.c_my_rank = rank;
    comm.c_local_group = groups_.back().get();
    comm.c_nbc_tag = -1000;
    set_name(comm.c_name, "WORLD");
  }
}

OpenMpi::~OpenMpi() {
  // A send that was forgotten is looked at again with the next one.
  for (Request* each : messages_) complete(*each, each->rank, each->size, MPI_SUCCESS);
  for (Request* each : receives_) delete each;
  running_open_mpi = nullptr;
}

OpenMpi::Request* OpenMpi::make(int rank, int peer, int tag, void* memory, size_t size) {
  auto* const request = new Request{};
  request->req_complete = REQUEST_PENDING;
  request->req_state = OMPI_REQUEST_ACTIVE;
  request->req_free = Calls::free_request;
  request->req_cancel = Calls::cancel;
  request->rank = rank;
  request->peer = peer;
  request->tag = tag;
  request->memory = memory;
  request->size = size;
  return request;
}

void OpenMpi::complete(Request& request, int from, size_t bytes, int error) {
  request.req_status.MPI_SOURCE = from;
  request.req_status.MPI_ERROR = error;
  request.req_status._ucount = bytes;
  const bool is_forgotten = request.req_state == OMPI_REQUEST_INACTIVE;
  (void)ompi_request_complete(&request, true);
  if (is_forgotten) delete &request;
}

std::deque<OpenMpi::Request*>::iterator OpenMpi::receive_for(const Request& send) {
  return std::find_if(receives_.begin(), receives_.end(), [&](const Request* each) {
    return each->rank == send.peer && each->tag == send.tag &&
           (each->peer == send.rank || each->peer == MPI_ANY_SOURCE);
  });
}

std::vector<size_t> OpenMpi::deliverable() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Request& one = *messages_[i];
    const auto is_before = [&](const Request* each) {
      return each->rank == one.rank && each->peer == one.peer && each->tag == one.tag;
    };
    const auto first = std::find_if(messages_.begin(), messages_.end(), is_before);
    const bool is_first = static_cast<size_t>(first - messages_.begin()) == i;
    auto* const self = const_cast<OpenMpi*>(this);
    if (is_first && self->receive_for(one) != self->receives_.end()) found.push_back(i);
  }
  return found;
}

void OpenMpi::deliver(size_t index) {
  Request& send = *messages_[index];
  const auto at = receive_for(send);
  Request& receive = **at;
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
  receives_.erase(at);
  if (send.size > 0) std::memcpy(receive.memory, send.memory, std::min(send.size, receive.size));
  const int from = send.rank;
  const size_t bytes = send.size;
  complete(send, from, bytes, MPI_SUCCESS);
  complete(receive, from, bytes, bytes > receive.size ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

}  // namespace cepheus::coll::fake
