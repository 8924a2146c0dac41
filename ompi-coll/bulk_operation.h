// One unit of a large broadcast, at most kUnit bytes: straight from the root's buffer into the
// others'.
//
// Receivers post their buffers, then a count of ready members runs up a binomial tree to the root,
// which sends. Unattended the root does not wait for that count, which needs the ranks' attention:
// it sends at once, its NIC waits for whoever has not posted yet (RNR), and the count, which then
// comes to the root directly, says from when on a send that stalls means trouble. A unit travels in
// pieces, so that progress shows long before a slow link has carried all of it, and a repair sends
// only what is missing.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "ompi-coll/messages.h"
#include "ompi-coll/operation.h"

namespace cepheus::coll {

class BulkOperation final : public Operation {
 public:
  static constexpr size_t kUnit = size_t{64} << 20;
  static constexpr size_t kPiece = size_t{4} << 20;
  static constexpr size_t kPieces = kUnit / kPiece;

  BulkOperation(const Call& call, Session& session) : call_(call), session_(session) {}
  ~BulkOperation() override;
  int progress(Actions& out) override;
  int serve(int to, uint64_t bytes) override;
  std::chrono::nanoseconds spare_time() const override;
  // Root, done by multicast, attended: how long the fabric took.
  std::chrono::nanoseconds transfer_time() const { return transfer_time_; }

 private:
  enum class Step : uint8_t { kPost, kListen, kGather, kReport, kSend, kTransfer };
  struct Piece {
    uct_completion_t send;
    uct_tag_context_t receive;
    BulkOperation* self;
    bool done;
  };
  struct Ready {  // from a child of the tree
    int rank;
    uint64_t unit;
  };

  // The structs that UCT calls back with are members of a piece, at that offset.
  static Piece* piece_of(void* member, size_t offset) {
    return reinterpret_cast<Piece*>(static_cast<char*>(member) - offset);
  }

  template <typename F>
  void ready_children(F f) const;
  int ready_parent() const;
  int run();
  int post();
  int listen();
  int gather();
  int report();
  int send();
  int transfer();
  int refused(ucs_status_t status);
  int repair(Actions& out);
  int repair_member(Actions& out);
  int finish(int rc, Actions& out);

  size_t pieces() const { return (call_.length + kPiece - 1) / kPiece; }
  size_t piece_bytes(size_t index) const {
    return index + 1 < pieces() ? kPiece : call_.length - index * kPiece;
  }
  std::byte* memory() { return static_cast<std::byte*>(window_); }
  uint64_t tag(size_t index) const { return (call_.unit * kPieces + index) & 0xFFFFFFFFu; }
  // Bytes of the leading pieces that are complete. Under the transport's mutex.
  size_t complete_bytes() const;

  Call call_;
  Session& session_;
  bool entered_ = false;
  Step step_ = Step::kPost;
  void* window_ = nullptr;
  std::array<Piece, kPieces> list_{};
  size_t started_ = 0;  // pieces posted
  size_t in_flight_ = 0;
  ucs_status_t status_ = UCS_OK;  // the first failure
  bool wrong_length_ = false;
  std::vector<Ready> ready_;
  uint64_t ready_out_ = 0;
  Messages messages_;
  Messages repairs_;
  bool asked_ = false;
  std::chrono::steady_clock::time_point sending_since_;  // members: receiving
  std::chrono::nanoseconds transfer_time_{0};
};

}  // namespace cepheus::coll
