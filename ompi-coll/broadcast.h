// One MPI_Bcast on its way, without blocking: start it, call progress() until it is done.
#pragma once

#include <cstdint>
#include <vector>

#include "ompi-coll/lane.h"
#include "ompi-coll/payload.h"

namespace cepheus::coll {

// Eager messages that have arrived and that no broadcast has taken yet. Buffers are UCT's, bounded
// by the lane's depth.
struct Arrived {
  void* data;
  size_t length;
};
struct Inbox {
  std::vector<Arrived> queue;  // FIFO between head and end
  size_t head = 0;
  bool empty() const { return head == queue.size(); }
  void push(void* data, size_t length) { queue.push_back({data, length}); }
  Arrived pop();
  void clear();  // gives every buffer back
};
// UCT active message handler; `arg` is the Inbox.
ucs_status_t on_eager_message(void* arg, void* data, size_t length, unsigned flags);

// In front of every eager message.
struct EagerHeader {
  uint32_t sequence;
  uint32_t root;
  uint64_t bytes;
};

// The same on all ranks: derived from size x count only.
struct Call {
  ompi_communicator_t* comm;
  int root;
  uint32_t sequence;  // of the lane, counted alike on all ranks
  Payload* payload;
};

class EagerBroadcast {
 public:
  EagerBroadcast(const Call& call, Lane& lane, Inbox& inbox)
      : call_(call), lane_(lane), inbox_(inbox) {}
  // OMPI_SUCCESS when the buffer may be reused (root) or is filled; OMPI_ERR_WOULD_BLOCK to be
  // called again.
  int progress();

 private:
  int send();
  int receive();
  Call call_;
  Lane& lane_;
  Inbox& inbox_;
};

// Pieces of at most kChunk bytes; before each, a count of ready members runs up a binomial tree to
// the root.
class BulkBroadcast {
 public:
  static constexpr size_t kChunk = size_t{64} << 20;

  BulkBroadcast(const Call& call, Lane& lane) : call_(call), lane_(lane) {}
  int progress();

 private:
  enum class Step : uint8_t { kPost, kGather, kReport, kSend, kTransfer, kDone };
  int post();
  int gather();
  int report();
  int send();
  int transfer();
  int finish_chunk();
  size_t chunk_bytes() const;
  uint64_t tag() const { return (uint64_t{call_.sequence} + chunk_) & 0xFFFFFFFFu; }

  Call call_;
  Lane& lane_;
  Step step_ = Step::kPost;
  uint32_t chunk_ = 0;
  size_t offset_ = 0;
  Messages messages_;
  uint32_t ready_[32] = {};  // from each child of the tree
  uint32_t ready_out_ = 0;
  bool in_flight_ = false;
  ucs_status_t status_ = UCS_OK;
  size_t received_ = 0;

  struct Send {
    uct_completion_t super;
    BulkBroadcast* self;
  } send_{};
  struct Receive {
    uct_tag_context_t super;
    BulkBroadcast* self;
  } receive_{};
};

}  // namespace cepheus::coll
