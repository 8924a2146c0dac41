// A multicast group of simulated hosts. Their programs only move bytes. The group is registered like
// a live one. Then any member sends messages to all others.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

// McstID for experiments with one group.
inline constexpr wire::McstId kFirstGroup{198, 18, 0, 1};

class MulticastGroup {
 public:
  // `hosts`: indices in the network, the first leads. All members send from and receive into the
  // testbed's memory, at any address. Registers the group and waits on virtual time; throws
  // std::runtime_error if that fails. A queue has space for `depth` work requests.
  MulticastGroup(Testbed& testbed, const std::vector<std::size_t>& hosts,
                 wire::McstId id = kFirstGroup, std::uint32_t depth = 32);
  ~MulticastGroup();

  // When the leader had the last CONFIRM.
  Instant ready_at() const { return ready_at_; }
  // The member sends `bytes`, and all others post a receive. is_done() once the last of them has
  // the message and the source's send has completed.
  void send(std::size_t member, std::uint32_t bytes);
  // The member sends `messages` messages of `bytes` as the collectives do: it cuts them into
  // portions, and has no more packets under way than the switches announce (mcast::SendWindow). If
  // the switches announce no number, it posts all messages at once.
  void send_all(std::size_t member, std::uint32_t bytes, std::size_t messages);
  // Every member sends `bytes` to all others, one after the other. A member begins when it has the
  // message of the member before it. is_done() as above.
  void take_turns(std::uint32_t bytes);
  // Packets that the leader may have under way now, by the switches' announcements; 0: any number.
  std::uint32_t window() const;
  bool is_done() const { return waiting_ == 0; }
  // The member sends messages of `bytes` to all others without end; once in a group's lifetime.
  void stream(std::size_t member, std::uint32_t bytes);
  // Members take turns, as above, again and again; once in a group's lifetime.
  void rotate(std::uint32_t bytes);
  void end_stream() { is_streaming_ = false; }          // posted messages are still sent
  std::uint64_t streamed() const { return streamed_; }  // messages that all members have
  // From now on all members' memory is at address 0 under `key`, for a fabric of the WRITE mode
  // same-key. `written` is called whenever all have a WRITE. A host can use a key once.
  void accept_writes(std::uint32_t key, std::function<void(Instant)> written);
  // The same at an address that each WRITE announces, for a fabric of the WRITE mode per-request,
  // on a testbed that moves payload.
  void announce_writes(std::function<void(Instant)> written);
  void write(std::size_t member, std::uint32_t bytes);
  // When the last receiver had the message, and when the source's last send completed.
  Instant received_at() const { return received_at_; }
  Instant completed_at() const { return completed_at_; }
  std::size_t size() const { return members_.size(); }

 private:
  class Member;
  friend class Member;
  void note(Instant now, bool is_source) {
    --waiting_;
    (is_source ? completed_at_ : received_at_) = now;
    if (is_source) ++streamed_;
  }
  void go_on() {
    if (waiting_ == 0 && is_streaming_) take_turns(turn_bytes_);
  }

  Simulator& simulator_;
  std::span<std::uint8_t> memory_;
  std::vector<std::unique_ptr<Member>> members_;
  std::size_t waiting_ = 0;
  bool is_streaming_ = false;
  std::uint32_t turn_bytes_ = 0;
  std::uint64_t streamed_ = 0;
  Instant ready_at_ = wire::kNever;
  Instant received_at_{}, completed_at_{};
  std::uint32_t key_ = 0;
  std::vector<std::uint8_t> announcement_;  // empty: WRITEs are not announced
  std::function<void(Instant)> written_;
};

// From posting to the last receiver's completion, and to the source's.
struct MulticastTime {
  wire::Duration received, completed;
};

// Registers a group of these hosts, sends one message from the first, and waits.
MulticastTime time_of_multicast(Testbed& testbed, const std::vector<std::size_t>& hosts,
                                std::uint64_t bytes);

}  // namespace cepheus::sim
