// A unit of a broadcast without multicast: packed bytes down the binomial tree, as the host's own
// messages. A rank without data sends empty messages in its place and the reason behind them. So
// the ranks below end with the same error instead of waiting. The error is the payload's: all ranks
// take part in the later units.
//
// It serves inside hosts, and non-blocking broadcasts that multicast can't serve. Each rank learns
// at another time that a unit goes this way, and MPI's non-blocking collectives must start in one
// order on all ranks. So the saved function can't serve them.
#pragma once

#include <algorithm>
#include <deque>

#include "collectives/core/parameters.h"
#include "collectives/group/messages.h"
#include "collectives/units/call.h"

namespace cepheus::coll {

class TreeOperation {
 public:
  static constexpr size_t kMostSegment = size_t{1} << 20;

  // Forgets the last one.
  void begin(const Call& call);
  // Code::kPending: call again.
  Code progress();
  // The unit is over: forgets its messages under way.
  void finish();

 private:
  Code start();
  void send(const void* data, size_t size, int child, Tag tag, bool as_is = false);
  void note_unsent(Code rc);
  Code pass_on();
  Code take();
  Code refuse(Code why);
  bool has_received_all();

  // A rank forwards the received part of a unit before the rest has come.
  static size_t segment() { return std::min(parameters().tree_segment, kMostSegment); }
  size_t segments() const { return (call_.length + segment() - 1) / segment(); }
  size_t segment_bytes(size_t index) const {
    return index + 1 < segments() ? segment() : call_.length - index * segment();
  }
  std::byte* memory(size_t index) const;

  Call call_{};
  bool started_ = false;
  void* window_ = nullptr;
  bool is_on_device_ = false;      // perhaps: the CPU must not read the window
  std::deque<Messages> receives_;  // a segment each, kept; not the root's
  size_t here_ = 0;                // segments that this rank has and has passed on
  Messages sends_;
  bool is_refused_ = false;     // from above
  Code refusal_ = Code::kDone;  // why the ranks below get no more data
  Messages reason_;             // of those above
  Code unsent_ = Code::kDone;   // the first failure of a message to a child
};

}  // namespace cepheus::coll
