// A turn, one source's run of messages, in one switch: its sent packets, each path's
// acknowledgements, the feedback to the source, the held NAKs, and the newcomer that waits for the
// turn's end.
//
//     finished -- data -> running -- its source leaves --> abandoned
//        ^                   |                                |
//        +-- all have all ---+--- lagging paths leave --------+
//
// A path is known by its number in the group's tree. All PSNs are the group's unless a name
// contains "port".
#pragma once

#include <memory>
#include <vector>

#include "switch-emulator/engine/group/gate.h"
#include "switch-emulator/engine/group/naks.h"
#include "switch-emulator/engine/group/path.h"
#include "wire/types.h"

namespace cepheus::fabric {

// The PSNs under way that end a message: the aggregate's MSN counts the ends that it has passed. NICs
// may complete messages by it (IBTA 9.7.7), so no end is forgotten.
//
// A ring of bits, one per PSN, that grows with the packets under way. Bound of its size and
// comparisons: the aggregate and the turn's packets are within 2^22 of each other
// (Turn::kMostUnderWay): 512 KiB at most.
class MessageEnds {
 public:
  // A packet that ends a message has passed; `acknowledged` is the aggregate's PSN. Repeats do not
  // count twice.
  void note(wire::Psn psn, wire::Psn acknowledged);
  // Counts and deletes the ends in (from, to].
  std::uint32_t take(wire::Psn from, wire::Psn to);
  void clear();
  std::size_t bytes() const { return sizeof(*this) + words_.capacity() * sizeof(std::uint64_t); }

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static constexpr std::size_t kFirstWords = 16;

  std::uint32_t size() const { return static_cast<std::uint32_t>(words_.size()) * kWordBits; }
  std::uint32_t slot(wire::Psn psn) const { return psn.value() & (size() - 1); }
  bool has(wire::Psn psn) const { return (words_[slot(psn) / kWordBits] & bit(psn)) != 0; }
  static std::uint64_t bit(wire::Psn psn) { return std::uint64_t{1} << psn.value() % kWordBits; }
  void grow(wire::Psn acknowledged, std::uint32_t ahead);

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(kFirstWords);  // a power of two
};

// A turn's name: data and feedback between switches carry it.
struct TurnName {
  Ipv4 source;
  Psn base;
  friend bool operator==(const TurnName&, const TurnName&) = default;
};

// A path's fields for turns in a hardware table.
struct PathTurns {
  Packed24<Psn> acked, packets, messages;
};

// Congestion control needs 2 bytes more.
inline constexpr std::size_t kMostPathBytes = 20;
static_assert(sizeof(Path) + sizeof(PathTurns) + 2 <= kMostPathBytes);

class Turn {
 public:
  // A source that begins: `port_first` is `first` in its port's numbering.
  struct Newcomer {
    PathNo path;
    bool is_host;
    Ipv4 source;
    Psn first;
    Psn port_first;
  };

  explicit Turn(Psn start, const net::Rules& rules = {})
      : has_names_(rules.named_turns),
        base_(start),
        port_base_(start),
        agg_(start - 1),
        naks_(rules),
        gate_(rules) {}

  // All have all of it, or no host has sent yet: another source may begin. Otherwise a message is on
  // its way, or a member lacks a part of one; if its source has left, only evictions end it.
  bool is_finished() const { return ended_ && !before(min(), sent()); }
  // A newcomer may begin only after all answers to this turn, including its own. A newcomer that
  // breaks rule C1 lacks packets that its data would acknowledge, and the old source would complete
  // a message that one member never got.
  bool admits_newcomer() const { return is_finished() || !gate_.holds_newcomers(); }

  // Path of the source; kNoPath: no host has sent, or the source has left.
  PathNo source() const { return source_; }
  PathNo previous() const { return previous_; }  // source of the turn before
  TurnName name() const { return {source_ip_, base_}; }
  bool has_names() const { return has_names_; }       // turns have, in packets between switches
  Psn base() const { return base_; }                  // of its first packet
  Psn sent() const { return base_ + (length_ - 1); }  // the highest that was forwarded
  Psn next() const { return base_ + length_; }
  // The place of a PSN in the turn, in 64 bits: 0 is the turn's first packet, and packets of
  // earlier turns are below 0. A turn may be longer than the circle, so a PSN is compared with
  // `next`, never with the base. Bound: senders have fewer than 2^23 packets outstanding (IBTA
  // 9.7.2), and no new data passes before the sender of a repeat has acknowledged all before it.
  std::int64_t place_of(Psn psn) const { return length_ + distance(next(), psn); }
  // Whether `psn` belongs to an earlier turn.
  bool begins_after(Psn psn) const { return place_of(psn) < 0; }
  // The PSN of a packet of the source, which its port numbers `at_port`. None: it is more than
  // `window` packets beyond `sent`, or kMostUnderWay beyond the minimum.
  std::optional<Psn> accept(Psn at_port, std::uint32_t window) const {
    const Psn psn = at_port + distance(port_base_, base_);
    const bool may_send = distance(sent(), psn) <= static_cast<std::int32_t>(window) &&
                          place_of(psn) - place_of(min()) <= kMostUnderWay;
    return may_send ? std::optional(psn) : std::nullopt;
  }
  // The source has been sent the ACK of all that it has sent.
  bool rests() const { return agg_ == sent(); }
  bool ends_message() const { return ended_; }  // of the packet `sent`
  Psn acknowledged() const { return agg_; }     // to the source
  // Acknowledged by all paths but the source's. If there are none: what has passed here in order,
  // or `sent`, if the source has left, too.
  Psn min() const { return slowest_ == kNoPath && source_ == kNoPath ? sent() : min_; }
  PathNo slowest() const { return slowest_; }
  std::size_t ends_bytes() const { return ends_->bytes(); }
  // Message ends that `acknowledged` has passed.
  std::uint32_t messages() const { return messages_; }

  // Paths for which memory is allocated.
  std::size_t path_capacity() const { return paths_.capacity(); }

  // In the numbering of the source's port.
  Psn at_port(Psn psn) const { return psn + distance(base_, port_base_); }

  // All behind the path have acknowledged all up to here.
  Psn acked(PathNo path) const { return paths_[path].acked; }
  // T: packets of this host's finished turns, modulo 2^24; and the messages in them, for the MSN.
  std::uint32_t turns(PathNo path) const { return paths_[path].packets.value(); }
  std::uint32_t messages(PathNo path) const { return paths_[path].messages.value(); }

  // Ends this turn, with packets up to the newcomer's first, and begins another. `counts_turns`:
  // the ending source's T increases by its packets.
  void begin(const Newcomer& newcomer, bool counts_turns);
  // Another host behind the same port continues (without names, under host-sync).
  void pass_to(Ipv4 source_ip) { source_ip_ = source_ip; }
  // A packet of the source. True: it is new; false: a repeat.
  bool on_data(Psn psn, bool ends_message);
  // Whether a packet goes to all paths: now and then a repeat does, too. Otherwise switches behind
  // paths that lack nothing would regard the source as silent (Gate), although it repeats for
  // others.
  bool goes_to_all(Instant now, Duration gate_age, bool is_repeat) {
    const std::uint32_t ms = milliseconds(now.time_since_epoch());
    const std::uint32_t most = milliseconds(gate_age / kRepeatsInGateAge);
    if (is_repeat && ms - sent_everywhere_ms_ <= most) return false;
    sent_everywhere_ms_ = ms;
    return true;
  }
  void set_acked(PathNo path, Psn psn);
  // The source gets an acknowledgement of all; returns its PSN.
  Psn acknowledge();
  Naks& naks() { return naks_; }
  const Naks& naks() const { return naks_; }
  Gate& gate() { return gate_; }
  const Gate& gate() const { return gate_; }

  // The last source has not set its PSNs (host-sync only): the new one waits for it, longer each
  // time. Timer code of the next RNR.
  void await_handover(Instant now);
  bool awaits_handover() const { return handover_timer_ != 0; }
  // The new source has begun again. Whether it has waited for `limit`. A new source that was
  // silent for half of that gave the last one no chance to acknowledge, so the time restarts.
  bool is_handover_past(Instant now, Duration limit);
  std::uint8_t next_handover_timer();

  // For simulation: as if the source had sent `packets` messages of one packet more, and all had
  // acknowledged them. False, with no change: there is no source, or a packet is under way.
  bool jump(std::uint64_t packets);

  // A path has been added, as the last one; or has left, and the last one has its number.
  void on_path_added();
  void on_path_removed(PathNo gone, PathNo last);
  void check_consistent(std::size_t paths, std::size_t max_held) const;

  // Limit of a source's packets beyond the minimum, whatever its NIC's window. So every
  // acknowledgement, the aggregate, `sent` and every held NAK of a turn are within 2^22 of each
  // other, and all circular comparisons among them are right.
  static constexpr std::int64_t kMostUnderWay = 1 << 22;
  // A switch further away gets as few repeats as all switches before it together leave, and a
  // source pauses between two repeats: the sum must be less than `gate_age`.
  static constexpr int kRepeatsInGateAge = 16;

 private:
  // On a circle of 2^32 ms, 49 days. Only differences of now and an earlier time are used. Bound: a
  // source repeats within seconds. A repeat 49 days after the last one may count as too early; the
  // next ones do not.
  static std::uint32_t milliseconds(Duration d) {
    return static_cast<std::uint32_t>(d / std::chrono::milliseconds(1));
  }
  void finish(Psn end, bool counts_turns);
  void find_slowest(std::size_t from = 0);

  bool ended_ = true;
  bool is_source_host_ = false;
  bool has_names_;
  std::uint8_t handover_timer_ = 0;
  PathNo source_ = kNoPath;
  PathNo previous_ = kNoPath;
  PathNo slowest_ = kNoPath;  // the first of them
  Psn min_;                   // of the slowest path; without one, see min()
  Ipv4 source_ip_;
  Psn base_;
  Psn port_base_;
  std::uint32_t sent_everywhere_ms_ = 0;
  std::uint32_t handover_since_ms_ = 0, handover_repeat_ms_ = 0;
  std::int64_t length_ = 0;  // packets of this turn so far
  Psn agg_;
  std::uint32_t messages_ = 0;
  Naks naks_;
  std::unique_ptr<MessageEnds> ends_ = std::make_unique<MessageEnds>();  // beside the table
  Gate gate_;
  std::vector<PathTurns> paths_;
};

}  // namespace cepheus::fabric
