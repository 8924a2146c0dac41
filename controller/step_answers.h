// The receivers' answers to one step of a sender group's registration: its INSTALLs or REMOVEs, each
// an attempt of its own (docs/protocol.md, "Sender groups").
//
// A step is complete once one attempt has come through whole: its shares add up, and every receiver
// has answered it. With losses and many paths, none may ever do. Then kAttemptsThatDo of them
// suffice, if every receiver has answered one.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/sender_group.h"

namespace cepheus::mrp {

class StepAnswers {
 public:
  static constexpr std::size_t kAttemptsThatDo = 4;
  // With their pauses longer than a registration takes.
  static constexpr std::size_t kAttemptsKept = 8;

  // The sender repeats the step's message as number `seq`. The oldest attempt may be forgotten.
  void add_attempt(std::uint16_t seq);
  // False: the answer is to no attempt that is kept, or has an impossible share.
  bool take(std::size_t receiver, std::uint16_t seq, std::uint64_t share);
  // After an answer to the attempt `seq`. `receivers`: the number of the group's receivers.
  bool is_complete(std::uint16_t seq, std::size_t receivers) const;
  // The receivers that have answered no attempt.
  std::vector<wire::MrpMember> missing(std::span<const wire::MrpMember> receivers) const;
  std::size_t attempts() const { return attempts_.size(); }

 private:
  using Receivers = std::bitset<wire::SenderGroupMessage::kMaxReceivers>;  // by place in the group
  struct Attempt {
    std::uint16_t seq = 0;
    std::uint64_t share = 0;
    Receivers answered;
  };

  std::vector<Attempt> attempts_;  // oldest first
  Receivers answered_;             // any attempt
};

}  // namespace cepheus::mrp
