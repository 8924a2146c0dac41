// One unit of a large broadcast, at most most_bytes(): from the root's buffer into the others'
// directly.
//
// Receivers post their buffers. Then a count of ready members runs up a flat tree to the root,
// which sends. That count needs calls of all ranks, so the root of a non-blocking broadcast sends
// at once, and its NIC waits for unposted receives (RNR). The count then goes to the root directly,
// and starts the watchdog's time. A unit is sent in pieces, so that progress shows before a slow
// link has sent all of it, and a repair sends only the missing part. Where
// queues on the way are short, pieces are shorter (mcast_group_attr_t::portion). A few are posted at
// a time; they end in order.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/group/messages.h"
#include "collectives/group/session.h"
#include "collectives/units/operation.h"

namespace cepheus::coll {

class BulkOperation final : public Operation {
 public:
  // Pieces at a time, at most. A member that has posted all of them may leave the rest to its NIC.
  static constexpr size_t kPosted = TeamLane::kBulkDepth;
  // Of a piece's message: | unit: 16 | piece: 16 |
  static constexpr unsigned kPieceBits = 16;
  static size_t most_bytes() { return parameters().bulk_unit; }

  ~BulkOperation() override { finish(); }
  void begin(const Call& call, Session& session);
  Code serve(int to, uint64_t bytes) override;
  void finish() override;
  std::chrono::nanoseconds spare_time() const override;
  // By member; empty: none. A unit here ended before its last step, so READY messages of its
  // children may be left.
  const std::vector<bool>& may_have_reported() const { return may_have_reported_; }

 private:
  enum class Step : uint8_t { kPost, kListen, kGather, kReport, kSend, kTransfer };
  struct Piece {
    Transfer transfer;  // first member, because callbacks get its address
    size_t index;
  };
  struct Ready {  // from a child of the tree
    int rank;
    uint64_t unit;
  };

  static void ended(Transfer* transfer, Transfer::Result result, size_t length);
  void ended(const Piece& piece, Transfer::Result result, size_t length);
  template <typename F>
  void ready_children(F f) const;
  int ready_parent() const;
  void enter() override;
  Code run() override;
  Code gone() override;
  void fill() override;
  Code pack_or_post();
  Code post();
  Code listen();
  Code gather();
  Code report();
  Code send();
  Code transfer();
  Code refused(Channel::Status status);
  Code repair(Actions& out) override;
  Code repair_member(Actions& out);

  size_t pieces() const { return (call_.length + most_in_piece_ - 1) / most_in_piece_; }
  size_t piece_bytes(size_t index) const {
    return index + 1 < pieces() ? most_in_piece_ : call_.length - index * most_in_piece_;
  }
  std::byte* memory() { return static_cast<std::byte*>(window_); }
  uint32_t tag(size_t index) const {
    return static_cast<uint32_t>(call_.unit << kPieceBits | index);
  }
  // Bytes of the leading pieces that are complete. Under the transport's mutex.
  size_t complete_bytes() const { return std::min(complete_ * most_in_piece_, call_.length); }

  TeamLane* lane_ = nullptr;
  Step step_ = Step::kPost;
  void* window_ = nullptr;
  size_t most_in_piece_ = 1;
  std::vector<Piece> list_;  // piece n at n modulo its size; it has grown to the longest unit
  size_t started_ = 0;       // pieces posted
  size_t complete_ = 0;      // ... of which the first ones are complete
  size_t in_flight_ = 0;
  bool failed_ = false;
  bool mistaken_ = false;  // another message came than was meant
  bool wrong_length_ = false;
  std::vector<Ready> ready_;
  uint64_t ready_out_ = 0;
  Messages messages_;
  Messages repairs_;
  bool requested_ = false;
  bool is_whole_ = true;  // the unit has gone all its steps
  std::vector<bool> may_have_reported_;
  std::chrono::steady_clock::time_point sending_since_;  // members: receiving
};

}  // namespace cepheus::coll
