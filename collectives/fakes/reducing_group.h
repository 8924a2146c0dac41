// A group that reduces. The test moves contributions and results, fails ends of the group, or loses
// results. Units have one packet each, and move in order.
//
//   contribute() --move_contribution()--> switch: all have come --move_result()--> placed in memory
//                                                                  --take_completion()--> the member
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "arithmetic/combine.h"

namespace cepheus::coll::fake {

class ReducingGroup {
 public:
  // `adds_by_rank`: results that depend on pairs are those of pairs by rank; else of others, alike in
  // each unit.
  explicit ReducingGroup(int members, bool adds_by_rank = true)
      : adds_by_rank_(adds_by_rank), ends_(static_cast<std::size_t>(members)) {}

  // --- A member's NIC.
  // The member's next unit: its bytes are sent from `data`, and `result` has the receive for it.
  // `adds`: the switch adds bytes; else it ORs them, or combines them.
  struct Unit {
    std::vector<std::byte> data;
    std::byte* result;
    bool adds;
    std::optional<arithmetic::Combiner> combiner{};
  };
  void contribute(int member, Unit unit);
  // The next completed result: its bytes.
  std::optional<std::size_t> take_completion(int member);
  // The member's end of the group has failed, and shows it.
  bool shows_failure(int member) const { return end(member).shows_failure; }
  // The member stops its NIC. Results may still come until end_stop().
  void stop(int member) { end(member).is_stopping = true; }
  // It is stopped, and has no completion left.
  bool is_drained(int member) const {
    return end(member).is_stopped && end(member).completions.empty();
  }
  // The member's NIC may still write results into memory.
  bool may_write(int member) const { return !end(member).is_stopped && !end(member).units.empty(); }

  // --- The network.
  std::vector<int> contributing() const;  // members with a contribution that may move
  void move_contribution(int member);
  std::vector<int> receiving() const;  // members to which a result may move
  void move_result(int member);
  std::vector<int> stopping() const;
  // Nothing moves from or to this member any more. Some placed results are flushed: their
  // completions never come.
  void end_stop(int member, std::mt19937_64& random);

  // --- Faults.
  // The end fails: nothing moves from or to it. Perhaps it shows that.
  void fail(int member, bool shows);
  void disconnect(int member) { end(member).is_disconnected = true; }
  void reconnect() {
    for (End& each : ends_) each.is_disconnected = false;
  }
  // From now on its results are acknowledged and lost.
  void deafen(int member) { end(member).is_deaf = true; }
  // From now on its NIC hands no completion over.
  void mute(int member) { end(member).is_mute = true; }
  // Members that wait for a result which another member's end holds up: their watchdogs fire.
  std::vector<int> stalled() const;
  bool is_over() const;  // every end is stopped

 private:
  struct End {
    std::deque<Unit> units;   // contributed, and without a completed result
    std::uint64_t first = 0;  // the number of units.front()
    std::uint64_t moved = 0;  // contributions at the switch
    std::uint64_t placed = 0;
    std::deque<std::size_t> completions;
    bool is_stopping = false, is_stopped = false, shows_failure = false, has_failed = false;
    bool is_disconnected = false, is_deaf = false, is_mute = false;
    std::uint64_t contributed() const { return first + units.size(); }
    bool moves() const { return !is_stopped && !has_failed && !is_disconnected; }
  };
  End& end(int member) { return ends_[static_cast<std::size_t>(member)]; }
  const End& end(int member) const { return ends_[static_cast<std::size_t>(member)]; }
  std::uint64_t complete() const;  // units
  void combine_operands(std::uint64_t number, const arithmetic::Combiner& combiner);

  const bool adds_by_rank_;
  std::vector<End> ends_;
  std::vector<std::vector<std::byte>> sums_;  // by unit
  // By unit, and by member, until all are there: of operations that depend on pairs.
  std::map<std::uint64_t, std::map<int, std::vector<std::byte>>> operands_;
};

}  // namespace cepheus::coll::fake
