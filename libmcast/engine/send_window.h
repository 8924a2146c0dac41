// How many packets a source may have under way, so that no queue on the way overflows
// (docs/protocol.md, "What a way can take").
//
// The switches' number comes with ACTIVATE, and may be renewed. Long messages go in portions, which
// all members compute by the first number. NICs request an acknowledgement with the last packet of a
// message at the latest. So a portion is at most half of the window: one is under way while another
// is acknowledged. It has at most kShortPortion packets, because losses make later windows small.
// Ways that take kDeep packets are deep queues and the rings of emulated hosts. There a portion is
// longer, because each one costs acknowledgements and wakes its receivers. Without a number there is
// no limit.
//
// A NIC that limits its packets by itself, to no more than the switches' number, gets everything at
// once: it goes on while the program computes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cepheus::mcast {

class SendWindow {
 public:
  // `of_nic`: packets that the NIC has under way at most, whatever is posted; 0: no limit is known.
  explicit SendWindow(std::uint32_t of_nic = 0) : of_nic_(of_nic) {}

  // By ACTIVATE. 0: no limit is known.
  void open(std::uint32_t packets) { first_ = limit_ = packets; }
  void renew(std::uint32_t packets) { limit_ = packets; }

  // Packets of messages that keep the way busy, alike for all NICs; 0: any number.
  std::uint32_t portion() const {
    if (first_ == 0) return 0;
    return first_ < kDeep ? std::clamp(first_ / 2, 1u, kShortPortion) : kDeep / 4;
  }
  // Of the longest message, and of the longest work request of a WRITE; 0: any number.
  std::uint32_t longest() const { return is_kept_by_nic(first_) ? 0 : first_; }
  std::uint32_t longest_part() const { return is_kept_by_nic(first_) ? 0 : portion(); }
  std::uint32_t limit() const { return limit_; }

  // A message of `packets` may be posted now. One may always be: the first number set its length.
  bool admits(std::uint64_t packets) const {
    return limit_ == 0 || is_kept_by_nic(limit_) || under_way_ == 0 ||
           under_way_ + packets <= limit_;
  }
  // Messages of one packet that may be posted now.
  std::uint64_t space() const {
    if (limit_ == 0 || is_kept_by_nic(limit_)) return UINT64_MAX;
    const std::uint64_t least = under_way_ == 0 ? 1 : 0;
    return std::max(least, limit_ - std::min<std::uint64_t>(limit_, under_way_));
  }
  void posted(std::uint64_t packets) { under_way_ += packets; }
  void ended(std::uint64_t packets) { under_way_ -= std::min(packets, under_way_); }
  void drop() { under_way_ = 0; }

 private:
  static constexpr std::uint32_t kShortPortion = 64;  // packets
  static constexpr std::uint32_t kDeep = 1024;

  bool is_kept_by_nic(std::uint32_t limit) const { return of_nic_ != 0 && of_nic_ <= limit; }

  std::uint32_t of_nic_;
  std::uint32_t first_ = 0, limit_ = 0;
  std::uint64_t under_way_ = 0;  // posted, and not ended
};

}  // namespace cepheus::mcast
