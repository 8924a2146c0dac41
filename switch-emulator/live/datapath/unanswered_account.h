// The unanswered frames of one host: their number, their cost, and how long the host has to wait
// for them.
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

// Frames that a host may send because its peer, a host or a group, answers.
//
// RoCE's streams have answers: acknowledgements, or the requests of READ responses. Each pays for
// more of the stream than NICs send between two answers. An answer pays only for frames to its
// sender, so that no accomplice can pay for frames to others.
class AnsweredFrames {
 public:
  static constexpr std::uint32_t kPerAnswer = 512;  // NICs request one every 66 or 256 packets
  // A reduction's result answers one contribution: that, its acknowledgement, and some repeats.
  static constexpr std::uint32_t kPerResult = 8;
  static constexpr std::uint32_t kMost = 2048;  // limit of the saved credit

  AnsweredFrames() { left_.fill(kPerAnswer); }  // until the first answer

  // A frame from `peer` that requests this number of answers; 0: it only shows that the peer is
  // alive.
  void on_answer(wire::Ipv4 peer, std::uint32_t requested = 0) {
    std::uint32_t& left = of(peer);
    pay(left, kPerAnswer);
    if (requested != 0) left += std::min(requested, kUnlimited - left);
  }
  // A result of the group `peer`.
  void on_result(wire::Ipv4 peer) { pay(of(peer), kPerResult); }
  // A frame goes to `peer`. False: its answers do not pay for it.
  bool take(wire::Ipv4 peer) {
    std::uint32_t& left = of(peer);
    if (left == 0) return false;
    --left;
    return true;
  }

 private:
  static constexpr std::uint32_t kUnlimited = 1u << 31;

  static void pay(std::uint32_t& left, std::uint32_t frames) {
    if (left < kMost) left = std::min(left + frames, kMost);
  }
  // Peers with the same entry pay for each other: a few of many.
  std::uint32_t& of(wire::Ipv4 peer) { return left_[peer.value() * 0x9E3779B1u >> 24]; }

  std::array<std::uint32_t, 256> left_;
};

// Limit of the unanswered frames that a host may send while others have frames to send.
//
// Such a frame costs the switch and the receiving NIC as much as any other. Frames beyond the limit
// wait in the host's own ring. Uses the virtual scheduling of ITU-T I.371's GCRA.
class UnansweredBudget {
 public:
  static constexpr std::int64_t kPerSecond = 100'000;
  static constexpr std::int64_t kBurst = 1024;
  // Frames that a host may owe: it waits about 50 ms at most. One frame may have a thousand copies,
  // and the host's next client may be another user's.
  static constexpr std::int64_t kMostDebt = 5'000;

  // Charges this number of frames; each copy in a switch counts as one.
  void charge(wire::Instant now, std::int64_t unanswered) {
    paid_until_ = std::max(paid_until_, now - kInterval * kBurst) + kInterval * unanswered;
    paid_until_ = std::min(paid_until_, now + kInterval * kMostDebt);
  }
  // No other host was waiting: the excess is deleted.
  void forgive(wire::Instant now) { paid_until_ = std::min(paid_until_, now); }
  // When the host may go on; if it has to wait, then long enough to be worth a sleep.
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
  // The host sends `frame`. True, and charged, if no receiver answers such frames.
  bool take(const wire::Frame& frame);
  // The switch made another copy of a frame that take() charged, or a receiver refused a frame for
  // which an answer had paid.
  void charge(const wire::Frame& frame);
  // The switch has made a result for a frame that take() charged.
  void charge_result(const wire::Frame& frame);
  // A frame of another host reaches this one. It pays for frames to that host.
  void on_answer(const wire::Frame& frame);
  // A reduction's result reaches this host: others have contributed, too.
  void on_result(const wire::Frame& frame);
  // The switch repeats a result to this host. Its credit pays, or the repeat is charged.
  void take_repeat(const wire::Frame& frame);
  // The host's turn is over. `refused`: all frames that its port has ever refused. Returns how long
  // the host has to wait: not after `now` if it need not; unset if nothing has changed.
  std::optional<wire::Instant> update_account(wire::Instant now, std::uint64_t refused,
                                              bool others_send);

 private:
  AnsweredFrames answered_;
  UnansweredBudget budget_;
  std::int64_t unpaid_ = 0;  // not charged to the budget yet
  std::uint64_t refused_ = 0;
};

// Whether other hosts send as well. Pure.
class Contention {
 public:
  // A host that has sent within this time counts as sending: the time is longer than a scheduler
  // keeps a program from its core.
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
  wire::Instant last_{}, before_{};  // before_: last frame of another host than last_sender_
};

}  // namespace cepheus::live
