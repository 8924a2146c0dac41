#include "ompi-coll/broadcast.h"

#include <algorithm>
#include <cstring>

#include "ompi-coll/parameters.h"

namespace cepheus::coll {

namespace {

// Position in the binomial tree whose root is the broadcast's.
struct Tree {
  int rank, size, root;
  unsigned virtual_rank() const { return static_cast<unsigned>((rank - root + size) % size); }
  int real(unsigned virtual_rank) const {
    return static_cast<int>((virtual_rank + static_cast<unsigned>(root)) %
                            static_cast<unsigned>(size));
  }
  int parent() const { return real(virtual_rank() & (virtual_rank() - 1)); }
  // Calls f(real rank) for each child.
  template <typename F>
  void children(F f) const {
    const unsigned me = virtual_rank();
    for (unsigned bit = 1; me + bit < static_cast<unsigned>(size) && (me & bit) == 0; bit <<= 1)
      f(real(me + bit));
  }
};

Tree tree_of(const Call& call) {
  return {ompi_comm_rank(call.comm), ompi_comm_size(call.comm), call.root};
}

int broken(const Call& call, const char* what, const char* why) {
  opal_output(output_stream(), "cepheus: %s on %s: %s", what, call.comm->c_name, why);
  return OMPI_ERROR;
}

struct PackArgument {
  const Call* call;
  int rc;
};

size_t pack_eager(void* dest, void* arg) {
  auto* argument = static_cast<PackArgument*>(arg);
  const Call& call = *argument->call;
  const EagerHeader header{call.sequence, static_cast<uint32_t>(call.root), call.payload->bytes()};
  std::memcpy(dest, &header, sizeof header);
  argument->rc =
      call.payload->pack(0, static_cast<std::byte*>(dest) + sizeof header, call.payload->bytes());
  return sizeof header + call.payload->bytes();
}

}  // namespace

Arrived Inbox::pop() {
  const Arrived arrived = queue[head++];
  if (head == queue.size()) {
    queue.clear();
    head = 0;
  }
  return arrived;
}

void Inbox::clear() {
  while (!empty()) uct_iface_release_desc(pop().data);
}

ucs_status_t on_eager_message(void* arg, void* data, size_t length, unsigned) {
  static_cast<Inbox*>(arg)->push(data, length);
  return UCS_INPROGRESS;  // kept until the broadcast that it belongs to takes it
}

int EagerBroadcast::progress() {
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  return ompi_comm_rank(call_.comm) == call_.root ? send() : receive();
}

int EagerBroadcast::send() {
  PackArgument argument{&call_, OMPI_SUCCESS};
  const ssize_t sent = uct_ep_am_bcopy(lane_.ep(), kEagerAmId, pack_eager, &argument, 0);
  if (sent == UCS_ERR_NO_RESOURCE) return OMPI_ERR_WOULD_BLOCK;
  if (sent < 0)
    return broken(call_, "broadcast", ucs_status_string(static_cast<ucs_status_t>(sent)));
  return argument.rc;
}

int EagerBroadcast::receive() {
  if (inbox_.empty()) {
    const ucs_status_t status = uct_ep_check(lane_.ep(), 0, nullptr);
    if (status < 0) return broken(call_, "broadcast", ucs_status_string(status));
    return OMPI_ERR_WOULD_BLOCK;
  }
  const Arrived arrived = inbox_.pop();
  EagerHeader header{};
  int rc = OMPI_SUCCESS;
  if (arrived.length < sizeof header) {
    rc = broken(call_, "broadcast", "a message shorter than its header");
  } else {
    std::memcpy(&header, arrived.data, sizeof header);
    if (header.sequence != call_.sequence || header.root != static_cast<uint32_t>(call_.root)) {
      rc = broken(call_, "broadcast", "ranks disagree on the order or the roots of broadcasts");
    } else if (header.bytes != call_.payload->bytes() ||
               arrived.length != sizeof header + header.bytes) {
      rc = MPI_ERR_TRUNCATE;
    } else {
      rc = call_.payload->unpack(0, static_cast<const std::byte*>(arrived.data) + sizeof header,
                                 header.bytes);
    }
  }
  uct_iface_release_desc(arrived.data);
  return rc;
}

size_t BulkBroadcast::chunk_bytes() const {
  return std::min(kChunk, call_.payload->bytes() - offset_);
}

int BulkBroadcast::progress() {
  int rc = OMPI_SUCCESS;
  while (rc == OMPI_SUCCESS && step_ != Step::kDone) {
    switch (step_) {
      case Step::kPost:
        rc = post();
        break;
      case Step::kGather:
        rc = gather();
        break;
      case Step::kReport:
        rc = report();
        break;
      case Step::kSend:
        rc = send();
        break;
      case Step::kTransfer:
        rc = transfer();
        break;
      case Step::kDone:
        break;
    }
  }
  return rc;
}

// Receivers post their buffer before anyone hears that they are ready.
int BulkBroadcast::post() {
  if (ompi_comm_rank(call_.comm) != call_.root) {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    receive_.self = this;
    receive_.super.tag_consumed_cb = [](uct_tag_context_t*) {};
    receive_.super.rndv_cb = nullptr;
    receive_.super.completed_cb = [](uct_tag_context_t* ctx, uct_tag_t, uint64_t, size_t length,
                                     void*, ucs_status_t status) {
      BulkBroadcast* self = reinterpret_cast<Receive*>(ctx)->self;
      self->received_ = length;
      self->status_ = status;
      self->in_flight_ = false;
    };
    void* memory = call_.payload->window(offset_, chunk_bytes());
    if (memory == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
    const uct_iov_t iov{memory, chunk_bytes(), nullptr, 0, 1};
    in_flight_ = true;
    const ucs_status_t status =
        uct_iface_tag_recv_zcopy(lane_.iface(), tag(), 0xFFFFFFFFu, &iov, 1, &receive_.super);
    if (status == UCS_ERR_EXCEEDS_LIMIT) {
      in_flight_ = false;
      return OMPI_ERR_WOULD_BLOCK;
    }
    if (status != UCS_OK) return broken(call_, "broadcast", ucs_status_string(status));
  }
  int rc = OMPI_SUCCESS;
  size_t child = 0;
  tree_of(call_).children([&](int rank) {
    if (rc == OMPI_SUCCESS)
      rc = messages_.receive(&ready_[child++], sizeof ready_[0], rank, Tag::kReady, call_.comm);
  });
  step_ = Step::kGather;
  return rc;
}

int BulkBroadcast::gather() {
  int error = MPI_SUCCESS;
  if (!messages_.test(error)) return OMPI_ERR_WOULD_BLOCK;
  if (error != MPI_SUCCESS) return error;
  size_t children = 0;
  tree_of(call_).children([&](int) { ++children; });
  for (size_t child = 0; child < children; ++child) {
    if (ready_[child] != static_cast<uint32_t>(tag())) {
      return broken(call_, "broadcast", "ranks disagree on the order or the roots of broadcasts");
    }
  }
  if (ompi_comm_rank(call_.comm) == call_.root) {
    step_ = Step::kSend;
    return OMPI_SUCCESS;
  }
  ready_out_ = static_cast<uint32_t>(tag());
  step_ = Step::kReport;
  return messages_.send(&ready_out_, sizeof ready_out_, tree_of(call_).parent(), Tag::kReady,
                        call_.comm);
}

int BulkBroadcast::report() {
  int error = MPI_SUCCESS;
  if (!messages_.test(error)) return OMPI_ERR_WOULD_BLOCK;
  step_ = Step::kTransfer;
  return error;
}

int BulkBroadcast::send() {
  void* memory = call_.payload->window(offset_, chunk_bytes());
  if (memory == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  if (!call_.payload->contiguous()) {
    const int rc = call_.payload->pack(offset_, memory, chunk_bytes());
    if (rc != OMPI_SUCCESS) return rc;
  }
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  send_.self = this;
  send_.super.count = 1;
  send_.super.status = UCS_OK;
  send_.super.func = [](uct_completion_t* completion) {
    BulkBroadcast* self = reinterpret_cast<Send*>(completion)->self;
    self->status_ = completion->status;
    self->in_flight_ = false;
  };
  const uct_iov_t iov{memory, chunk_bytes(), nullptr, 0, 1};
  in_flight_ = true;
  const ucs_status_t status =
      uct_ep_tag_eager_zcopy(lane_.ep(), tag(), 0, &iov, 1, 0, &send_.super);
  if (status == UCS_ERR_NO_RESOURCE) {
    in_flight_ = false;
    return OMPI_ERR_WOULD_BLOCK;
  }
  if (status != UCS_INPROGRESS && status != UCS_OK)
    return broken(call_, "broadcast", ucs_status_string(status));
  if (status == UCS_OK) in_flight_ = false;
  step_ = Step::kTransfer;
  return OMPI_SUCCESS;
}

int BulkBroadcast::transfer() {
  std::unique_lock<std::mutex> lock(Transport::instance().mutex());
  if (in_flight_) return OMPI_ERR_WOULD_BLOCK;
  lock.unlock();
  if (status_ != UCS_OK) return broken(call_, "broadcast", ucs_status_string(status_));
  return finish_chunk();
}

int BulkBroadcast::finish_chunk() {
  const size_t length = chunk_bytes();
  if (ompi_comm_rank(call_.comm) != call_.root) {
    if (received_ != length) return MPI_ERR_TRUNCATE;
    if (!call_.payload->contiguous()) {
      const int rc = call_.payload->unpack(offset_, call_.payload->window(offset_, length), length);
      if (rc != OMPI_SUCCESS) return rc;
    }
  }
  offset_ += length;
  ++chunk_;
  step_ = offset_ == call_.payload->bytes() ? Step::kDone : Step::kPost;
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
