// What one host has sent that nobody answers: which frames these are, what they cost, and how long
// the host has to wait for it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "wire/frame.h"
#include "wire/types.h"

namespace cepheus::live {

// Frames that a host may send because whoever they go to answers: a host, or a group.
//
// RoCE's streams have answers: acknowledgements, or the requests that READ responses belong to. Each
// pays for more of the stream than NICs send between two. An answer pays for frames to whom it came
// from, so that no accomplice can pay for frames to others.
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

// How many frames a host may send that nobody answers, as long as others have something to send.
//
// Such a frame costs the switch, and the NIC that it is for, as much as any other. What goes beyond
// waits in the host's own ring. By the virtual scheduling of ITU-T I.371's GCRA.
class UnansweredBudget {
 public:
  static constexpr std::int64_t kPerSecond = 100'000;
  static constexpr std::int64_t kBurst = 1024;

  // So many more, each copy that switches made of one counted.
  void charge(wire::Instant now, std::int64_t frames) {
    paid_until_ = std::max(paid_until_, now - kInterval * kBurst) + kInterval * frames;
  }
  // Nobody was kept waiting: what was too much is forgotten.
  void forgive(wire::Instant now) { paid_until_ = std::min(paid_until_, now); }
  // When the host may go on; if it has to wait, then for so long that looking is worth it.
  wire::Instant resume(wire::Instant now) const {
    return paid_until_ <= now ? now : paid_until_ + kInterval * kAtOnce;
  }

 private:
  static constexpr std::int64_t kAtOnce = 128;
  static constexpr wire::Duration kInterval{std::chrono::nanoseconds(std::chrono::seconds(1)) /
                                            kPerSecond};

  wire::Instant paid_until_{};
};

class UnansweredAccount {
 public:
  // The host sends `frame`. True, and charged, if nobody answers such frames.
  bool take(const wire::Frame& frame);
  // The switch made another copy of a frame that take() charged, or a receiver refused a frame that
  // an answer had paid for.
  void charge(const wire::Frame& frame);
  // A frame of another host reaches this one. It pays for frames to that host.
  void on_answer(const wire::Frame& frame);
  // The host's turn is over. `refused`: all that its port has ever refused. Until when the host has
  // to wait, not after `now` if it need not; unset if nothing has changed.
  std::optional<wire::Instant> charge_unanswered(wire::Instant now, std::uint64_t refused,
                                                 bool others_send);

 private:
  AnsweredFrames answered_;
  UnansweredBudget budget_;
  std::int64_t unpaid_ = 0;  // not charged to the budget yet
  std::uint64_t refused_ = 0;
};

// Whether hosts beside one send, too. Pure.
class Contention {
 public:
  // A host that has sent within this time is taken to go on: longer than a scheduler keeps a
  // program from its core beside others.
  static constexpr wire::Duration kLasts = std::chrono::milliseconds(10);

  void sent(std::size_t host, wire::Instant now) {
    if (host != last_sender_) before_ = last_;
    last_sender_ = host;
    last_ = now;
  }
  bool others_send(std::size_t host, wire::Instant now) const {
    return (host == last_sender_ ? before_ : last_) + kLasts > now;
  }

 private:
  std::size_t last_sender_ = 0;
  wire::Instant last_{}, before_{};  // before_: when another host than last_sender_ sent last
};

}  // namespace cepheus::live
