// Frames that a host may send because whoever they go to answers: a host, or a group.
//
// RoCE's streams have answers: acknowledgements, or the requests that READ responses belong to. Each
// pays for more of the stream than NICs send between two. An answer pays for frames to whom it came
// from, so that no accomplice can pay for frames to others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "wire/types.h"

namespace cepheus::live {

class AnsweredFrames {
 public:
  static constexpr std::uint32_t kPerAnswer = 512;  // NICs ask for one every 66 or 256 packets
  static constexpr std::uint32_t kMost = 2048;      // that may be saved up

  AnsweredFrames() { left_.fill(kPerAnswer); }  // until the first comes

  // Something came from `peer` that asks for so many frames; 0: it only says that it is there.
  void on_answer(wire::Ipv4 peer, std::uint32_t asked = 0) {
    std::uint32_t& left = of(peer);
    if (left < kMost) left = std::min(left + kPerAnswer, kMost);
    if (asked != 0) left += std::min(asked, kUnlimited - left);
  }
  // One goes to `peer`. False: its answers do not pay for it.
  bool take(wire::Ipv4 peer) {
    std::uint32_t& left = of(peer);
    if (left == 0) return false;
    --left;
    return true;
  }

 private:
  static constexpr std::uint32_t kUnlimited = 1u << 31;

  // Peers that share an entry pay for each other: a few of many.
  std::uint32_t& of(wire::Ipv4 peer) { return left_[peer.value() * 0x9E3779B1u >> 24]; }

  std::array<std::uint32_t, 256> left_;
};

}  // namespace cepheus::live
