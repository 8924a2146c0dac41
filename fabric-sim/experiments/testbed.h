// A fabric for measurements on virtual time: what is not measured (payload bytes, ICRCs, checks,
// traces, HELLOs) is off.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fabric-sim/core/network.h"

namespace cepheus::sim {

// Where nothing is lost and queues are as long as they get: longer than any of them, so that nobody
// sends again what only waits.
inline constexpr wire::Duration kNoTimeout = std::chrono::seconds(1);

struct TestbedConfig {
  std::uint64_t seed = 1;  // of loss and of flows' hashes
  std::uint32_t max_qps = 64;
  // Twenty round trips and more: who lost a last packet waits that long.
  wire::Duration ack_timeout = std::chrono::microseconds(500);
  // The least silence after which switches take feedback for overdue.
  wire::Duration feedback_wait = net::SwitchConfig().feedback_wait;
  std::uint32_t ack_every = rnic::NicConfig().ack_every;  // packets of a long message
  std::uint64_t memory = 1 << 20;                         // the largest message, bytes
  bool moves_payload = false;  // where switches read it: announcements of WRITEs
  // With it NICs keep no window of packets to speak of, as those of the papers: rates alone bound what
  // is under way.
  std::optional<rnic::CongestionConfig> congestion = {};
};

class Testbed {
 public:
  // Precondition: the topology's plan succeeds.
  Testbed(net::Topology topology, const TestbedConfig& config);

  std::uint64_t seed() const { return seed_; }
  Simulator& simulator() { return simulator_; }
  Network& network() { return *network_; }
  // Where all messages lie; its bytes are never touched.
  std::span<std::uint8_t> memory() { return {memory_.get(), memory_size_}; }

  // Throws std::runtime_error if that takes more than ten virtual seconds.
  void run_until(const std::function<bool()>& is_done);

  struct Totals {
    std::uint64_t hops = 0;           // packets over links, whatever they carry
    std::uint64_t no_room = 0;        // frames that a queue had no room for
    std::uint64_t retransmitted = 0;  // packets that NICs sent again
    std::uint64_t timeouts = 0;       // of NICs
    std::uint64_t naks = 0;           // for missing packets, that NICs received
    std::uint64_t marked = 0;         // frames, by queues that grew
    std::uint64_t notified = 0;       // notifications that reached senders
  };
  Totals totals() const;

 private:
  std::uint64_t seed_;
  Simulator simulator_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t memory_size_;
};

// The papers' links: 100 Gb/s and 1 us unless they say otherwise, and queues that never overflow,
// as with priority flow control.
net::LinkConfig paper_link(double gigabits = 100,
                           wire::Duration delay = std::chrono::microseconds(1));

// Loses frames with this probability at random: each copy that leaves a switch, or each frame that
// comes to a switch without hosts, before it is copied.
enum class LossAt { kCopies, kMiddleSwitches };
void lose(net::Topology& topology, LossAt where, double probability);

// The same fabric with these hosts only, in this order.
net::Topology with_hosts(const net::Topology& topology, const std::vector<std::size_t>& hosts);
// `count` numbers below `total`, none twice.
std::vector<std::size_t> random_hosts(std::size_t count, std::size_t total, std::uint64_t seed);
std::vector<std::size_t> first_hosts(std::size_t count);

double microseconds(wire::Duration time);

}  // namespace cepheus::sim
