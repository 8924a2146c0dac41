// How a program's thread waits that polls: two cores run the switch and every rank, so spinning is
// somebody else's time.
//
// A fruitless poll costs little, and offers its core now and then. If the offer is taken for long,
// others have real work: then the thread sleeps on the port instead, for moments, and a packet
// wakes it. A scheduler lets a process that was woken run sooner than one that gave way. Pure: the
// caller polls, yields, sleeps and tells the time.
#pragma once

#include "wire/types.h"

namespace cepheus::verbs {

class PollRest {
 public:
  // What to do after a poll that found nothing.
  enum class Step : std::uint8_t { kPollAgain, kYield, kNap, kNapForBatch };

  // How long a nap lasts: what a program that has other things to poll can miss.
  static constexpr wire::Duration kNap = std::chrono::microseconds(200);
  // In the middle of a long message a nap may last longer: the next batch ends it.
  static constexpr wire::Duration kNapAmidMessage = std::chrono::milliseconds(1);
  // A core given away for longer than this went to somebody who computes.
  static constexpr wire::Duration kLongYield = std::chrono::microseconds(500);

  void fruitful() { fruitless_ = 0; }
  // `in_bulk`: a batch comes next, or the acknowledgement of one. The first polls that find nothing
  // sleep for it at once.
  Step fruitless(bool in_bulk) {
    ++fruitless_;
    if (in_bulk && fruitless_ <= kNapsForBatch) return Step::kNapForBatch;
    if (fruitless_ % (naps_left_ > 0 ? kPollsPerNap : kPollsPerYield) != 0) return Step::kPollAgain;
    if (naps_left_ == 0) return Step::kYield;
    --naps_left_;
    return Step::kNap;
  }
  // A yield took so long.
  void yielded(wire::Duration took) {
    if (took > kLongYield) naps_left_ = kNapsPerYield;
  }
  // Time to see whether the fabric is still there, which costs a system call.
  bool is_check_due() const { return fruitless_ % kPollsPerCheck == kPollsPerCheck - 1; }

 private:
  // Fruitless polls before the core is offered, and before a nap, which costs the sleeper and its
  // waker more: an answer that is under way should be here by then.
  static constexpr unsigned kPollsPerYield = 16;
  static constexpr unsigned kPollsPerNap = 64;
  static constexpr unsigned kPollsPerCheck = 4096;
  // A thread that has found nothing after these naps waits for something else.
  static constexpr unsigned kNapsForBatch = 5;
  // Naps before the next yield asks whether the cores are still wanted.
  static constexpr unsigned kNapsPerYield = 100;

  unsigned fruitless_ = 0;
  unsigned naps_left_ = 0;  // > 0: the cores are wanted
};

}  // namespace cepheus::verbs
