// A multicast group of simulated hosts whose programs do nothing but move bytes: registered as live
// ones are, then any member sends messages to all others.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

// Of the one group of a testbed that experiments with one group make.
inline constexpr wire::McstId kFirstGroup{198, 18, 0, 1};

class MulticastGroup {
 public:
  // `hosts`: indices into the network's, the first leads. Where a message lies does not matter: all
  // members send from and receive into the testbed's memory. Registers the group and waits on virtual
  // time; throws std::runtime_error if that fails.
  MulticastGroup(Testbed& testbed, const std::vector<std::size_t>& hosts,
                 wire::McstId id = kFirstGroup);
  ~MulticastGroup();
  MulticastGroup(const MulticastGroup&) = delete;
  MulticastGroup& operator=(const MulticastGroup&) = delete;

  // When all had confirmed, and the leader knew.
  Instant ready_at() const { return ready_at_; }
  // The member sends `bytes`, all others have a receive posted; `done` when the last of them has
  // it, and the source knows.
  void send(std::size_t member, std::uint32_t bytes);
  // Every member sends `bytes` to all others, one after the other: each when it has the message of
  // the one before it. Done as above.
  void take_turns(std::uint32_t bytes);
  bool is_done() const { return waiting_ == 0; }
  // The member sends messages of `bytes` to all others without end; once in a group's life.
  void stream(std::size_t member, std::uint32_t bytes);
  void end_stream() { is_streaming_ = false; }          // what is posted still goes out
  std::uint64_t streamed() const { return streamed_; }  // messages that all have
  // All members' memory lies at address 0 under `key` from now on, for a fabric of the WRITE mode
  // same-key; `written` is called whenever all have what was written. A host can have a key once.
  void accept_writes(std::uint32_t key, std::function<void(Instant)> written);
  // The same at an address that each WRITE announces, for a fabric of the WRITE mode per-request, on
  // a testbed that moves payload.
  void announce_writes(std::function<void(Instant)> written);
  void write(std::size_t member, std::uint32_t bytes);
  // When the last receiver had the message, and when the source knew.
  Instant received_at() const { return received_at_; }
  Instant completed_at() const { return completed_at_; }
  std::size_t size() const { return members_.size(); }

 private:
  class Member;
  friend class Member;
  void note(Instant now, bool is_source) {
    --waiting_;
    (is_source ? completed_at_ : received_at_) = now;
  }

  Simulator& simulator_;
  std::span<std::uint8_t> memory_;
  std::vector<std::unique_ptr<Member>> members_;
  std::size_t waiting_ = 0;
  bool is_streaming_ = false;
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
