// A sender group of simulated hosts (MC-RDMA's multicast; docs/protocol.md, "Sender groups"), with
// programs that only move bytes: registered like a live group. Then its sender sends to all.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/experiments/replication.h"

namespace cepheus::sim {

class SenderGroup final : public Replication {
 public:
  // Hosts are the network's indices; 1 to 16 receivers, the first is the alias. `number`: unique
  // among the sender's groups. The topology's `sender_groups` sets which switches branch.
  SenderGroup(Testbed& testbed, std::size_t sender, const std::vector<std::size_t>& receivers,
              std::uint32_t number);
  ~SenderGroup() override;

  void begin() override;
  bool is_ready() const override;
  void send(std::uint32_t bytes) override;
  // When the sender knew that all receivers had answered. Precondition: is_ready().
  Instant ready_at() const;

 private:
  class Sender;
  class Receiver;

  std::unique_ptr<Sender> sender_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
};

}  // namespace cepheus::sim
