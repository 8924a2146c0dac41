// A reduction of long vectors by the host's own messages, with the same bits as any other one in pairs by
// rank (arithmetic/pairs.h): pair_rounds.h has its rounds, and its messages' bytes.
//
// The library arithmetic/ combines the elements if it has the operation, else the host's Operator does.
// Operands keep the order of members, so the operation need not be commutative.
//
// Vectors travel in chunks, of which a few are under way each way. So messages are short, whatever the
// vector's length. Chunks leave from copies, and arrive in copies: a failed call's messages may stay
// under way when it has returned. Then MPI keeps the copies' memory.
//
//   Memory   the vector, in the caller's memory; and 2 kUnderWay chunks, each of
//            Parameters::reduction_chunk bytes or one element, if that is longer
//
// A member that fails sends an empty message in the place of the next chunk to each member that awaits
// any of it. A member that gets one fails, too. So none waits for a failed one, if MPI's messages arrive.
// If a member has not begun, none completes the reduction. If it fails later, members that need nothing
// more of it may have the result.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "arithmetic/combine.h"
#include "collectives/group/messages.h"
#include "collectives/units/pair_rounds.h"

namespace cepheus::coll {

class PairwiseOperation {
 public:
  static constexpr std::size_t kUnderWay = 4;

  // The same on all members but for the memory and the host's objects.
  struct Vector {
    std::byte* memory;              // this member's operand; then the result
    std::size_t elements, element;  // their number; bytes of each
    std::optional<arithmetic::Combiner> combiner{};
    Operator* op = nullptr;  // ... without one

    std::size_t bytes() const { return elements * element; }
  };

  explicit PairwiseOperation(const Team& team) : team_(team) {}

  // Forgets the last one. The memory stays until the end.
  void begin(const Vector& vector);
  // Code::kPending: call again.
  Code progress();
  // ... in its place: this member can't take part.
  void fail();
  // After an error: the member to which a message, or from which one, failed.
  int failed_member() const { return failed_member_; }
  // It is over: forgets its messages under way.
  void finish();

 private:
  // The chunks of a round that go one way.
  struct Flow {
    std::vector<PairTransfer> transfers;
    std::array<Messages, kUnderWay> messages;
    std::array<PairTransfer, kUnderWay> chunks;  // ... of these
    std::size_t at = 0, offset = 0;              // the next chunk begins here
    std::size_t started = 0, complete = 0;       // chunks
    bool is_all_started() const { return at == transfers.size(); }
    bool is_over() const { return is_all_started() && complete == started; }
    std::size_t under_way() const { return started - complete; }
    void start(const PairTransfer& chunk);
  };

  bool start_round();
  Code run_round();
  PairTransfer next_chunk(const Flow& flow) const;
  bool reserve();
  void abandon_scratch();
  Code start_sends();
  Code start_receives();
  template <typename End>
  Code end_messages(Flow& flow, End end);
  Code end_sends();
  Code end_receives();
  Code take(const PairTransfer& chunk, std::byte* from);
  void send_failure(int member) const;
  std::byte* at(std::size_t element) const { return vector_.memory + element * vector_.element; }
  std::byte* incoming(std::size_t message) const {
    return scratch_.get() + message % kUnderWay * chunk_bytes();
  }
  std::byte* outgoing(std::size_t message) const {
    return incoming(message) + kUnderWay * chunk_bytes();
  }
  std::size_t chunk_bytes() const { return chunk_ * vector_.element; }

  const Team& team_;
  Vector vector_{};
  std::optional<PairRounds> rounds_;
  int round_ = 0;
  bool is_in_round_ = false;
  std::size_t chunk_ = 1;                 // elements
  std::unique_ptr<std::byte[]> scratch_;  // incoming and outgoing chunks
  std::size_t scratch_bytes_ = 0;
  Flow sends_, receives_;
  int failed_member_ = 0;
};

}  // namespace cepheus::coll
