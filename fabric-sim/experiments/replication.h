// Methods for one host to send messages to several: a sender group, a connection to each, a chain.
// A sender may have several messages under way.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {

class Replication {
 public:
  virtual ~Replication() = default;
  Replication() = default;
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  // Starts the set-up on virtual time; the caller advances it until is_ready().
  virtual void begin() {}
  virtual bool is_ready() const { return true; }
  // Precondition: is_ready().
  virtual void send(std::uint32_t bytes) = 0;
  // Called for each message, in order, when the sender knows that all have it.
  void on_acknowledged(std::function<void(Instant)> acknowledged) {
    acknowledged_ = std::move(acknowledged);
  }
  // Called for each message and receiver; the receiver is its index in the list.
  void on_received(std::function<void(std::size_t receiver, Instant)> received) {
    received_ = std::move(received);
  }

 protected:
  void note_acknowledged(Instant now) const {
    if (acknowledged_) acknowledged_(now);
  }
  void note_received(std::size_t receiver, Instant now) const {
    if (received_) received_(receiver, now);
  }

 private:
  std::function<void(Instant)> acknowledged_;
  std::function<void(std::size_t, Instant)> received_;
};

enum class ReplicationWay {
  kMcRdma,  // a sender group
  kFanOut,  // a connection to each receiver; done when all have acknowledged
  // Each receiver sends a whole message on to the next; the last one's answer returns up the chain.
  kChainReplication,
};
inline constexpr ReplicationWay kReplicationWays[] = {
    ReplicationWay::kMcRdma, ReplicationWay::kFanOut, ReplicationWay::kChainReplication};
const char* name_of(ReplicationWay way);

// Hosts are the network's indices. `number`: unique among those of that sender.
std::unique_ptr<Replication> make_replication(ReplicationWay way, Testbed& testbed,
                                              std::size_t sender,
                                              const std::vector<std::size_t>& receivers,
                                              std::uint32_t number);

// Begins all of them, and advances virtual time until they are ready.
void make_ready(Testbed& testbed, const std::vector<std::unique_ptr<Replication>>& all);

}  // namespace cepheus::sim
