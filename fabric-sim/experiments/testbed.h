// A fabric for measurements on virtual time: costs that are not measured (payload bytes, ICRCs,
// checks, traces, HELLOs) are off.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fabric-sim/core/network.h"
#include "nic-emulator/engine/nic_profile.h"

namespace cepheus::sim {

// For runs without loss and with unlimited queues: longer than any queue's delay, so that no NIC
// sends again because of waiting alone.
inline constexpr wire::Duration kNoTimeout = std::chrono::seconds(1);

struct TestbedConfig {
  std::uint64_t seed = 1;  // of loss and of flows' hashes
  std::uint32_t max_qps = 64;
  // Twenty round trips and more: the wait after the loss of a last packet.
  wire::Duration ack_timeout = std::chrono::microseconds(500);
  std::uint32_t ack_every = rnic::NicConfig().ack_every;  // packets of a long message
  std::uint64_t memory = 1 << 20;                         // the largest message, bytes
  bool moves_payload = false;  // if switches read it: announcements of WRITEs
  // If set, NICs have practically no window of packets, as in the papers: only rates limit the data
  // under way.
  std::optional<rnic::CongestionConfig> congestion = {};
  // All NICs as shipped, with real payload and ICRCs; the settings above don't count then.
  bool has_live_nics = false;
  bool has_lengths_only = false;  // ... but without payload and ICRCs
  // Make of all NICs; null: the emulated NIC.
  const rnic::NicProfile* profile = nullptr;
  // Manners of all switches; the default: no boxes.
  BoxManners box = {};
};

class Testbed {
 public:
  // Precondition: the topology's plan succeeds.
  Testbed(net::Topology topology, const TestbedConfig& config);

  std::uint64_t seed() const { return seed_; }
  Simulator& simulator() { return simulator_; }
  Network& network() { return *network_; }
  // Address of all messages; its bytes are never touched.
  std::span<std::uint8_t> memory() { return {memory_.get(), memory_size_}; }

  // Throws std::runtime_error if that takes longer than `limit`.
  void run_until(const std::function<bool()>& is_done,
                 wire::Duration limit = std::chrono::seconds(10));

  struct Totals {
    std::uint64_t hops = 0;           // packets over links, of any kind
    std::uint64_t queue_drops = 0;    // frames dropped by full queues
    std::uint64_t losses = 0;         // frames lost by chance
    std::uint64_t retransmitted = 0;  // packets that NICs sent again
    std::uint64_t timeouts = 0;       // of NICs
    std::uint64_t naks = 0;           // NAKs for missing packets that NICs received
    std::uint64_t marked = 0;         // frames marked by queues
    std::uint64_t notified = 0;       // CNPs that reached senders
  };
  Totals totals() const;

 private:
  std::uint64_t seed_;
  Simulator simulator_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t memory_size_;
};

// The papers' links: 100 Gb/s and 1 us by default, and queues that never overflow, as with priority
// flow control.
net::LinkConfig paper_link(double gigabits = 100,
                           wire::Duration delay = std::chrono::microseconds(1));

// Loses frames with this probability: each copy that leaves a switch, or each frame that arrives at
// a switch without hosts, before it is copied.
enum class LossAt { kCopies, kMiddleSwitches };
void lose(net::Topology& topology, LossAt where, double probability);

// The first hosts of a fat-tree with 16 ports a switch: 8 share a switch, 64 a pod.
net::Topology part_of_fat_tree(std::size_t hosts, const net::LinkConfig& link);
// The same fabric with these hosts only, in this order.
net::Topology with_hosts(const net::Topology& topology, const std::vector<std::size_t>& hosts);
// `count` distinct numbers below `total`.
std::vector<std::size_t> random_hosts(std::size_t count, std::size_t total, std::uint64_t seed);
std::vector<std::size_t> first_hosts(std::size_t count);

double microseconds(wire::Duration time);

}  // namespace cepheus::sim
