// One network interface for all hosts: the switch's only link to a network that does not know it,
// and that switches or routes all other packets by itself.
//
// Hosts, or the router before them, send groups' packets to this machine as to any next hop. Source
// addresses distinguish the hosts (one_armed_port.h). Copies leave with this machine's own MAC
// address to the next hop that its kernel knows (next_hops.h). The kernel handles ARP. Packets that
// are not for a group are counted and left alone. Payloads are copied once, on arrival. Not
// thread-safe.
//
//   ring -> queue of its host -> switch -> ring; or, if that is full, outgoing frames -> ring
//
// While outgoing frames wait, the switch takes no data from the hosts' queues: a full queue drops a
// packet once, before replication. Feedback is few and short, and is taken all the time.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "switch-emulator/ports/frame_queues.h"
#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/next_hops.h"
#include "switch-emulator/ports/one_armed_port.h"
#include "switch-emulator/ports/payload_pool.h"
#include "wire/fifo.h"

namespace cepheus::fabric {

struct OneArmedConfig {
  std::string interface;
  wire::Ipv4Prefix groups;
  std::uint32_t largest_frame = 0;  // bytes, Ethernet header to ICRC
  std::string dpdk_device;          // DPDK device for its frames; empty: a packet socket
};

class OneArmedInterface {
 public:
  // Both outlive it, and it outlives its ports.
  OneArmedInterface(PayloadPools& pools, OneArmedConfig config)
      : config_(std::move(config)), pools_(pools), queues_(kWaitingFrames) {}
  // Adds each host's port, before open().
  void add(OneArmedPort& port) { ports_.emplace(port.host(), &port); }

  // Errors: those of the interface; a host that is not behind it; a kernel that would route the
  // groups' packets as well. Precondition: !is_open().
  wire::Result<void> open(wire::Instant now);
  // Checks for changes: adopts a new MAC address of the interface. Errors: the interface is gone,
  // or the kernel routes. The caller must close it then.
  wire::Result<void> look();
  // Precondition: its ports are closed.
  void close();
  bool is_open() const { return driver_ != nullptr; }
  const OneArmedConfig& config() const { return config_; }
  int fd() const { return driver_->fd(); }  // as WirePort's; -1: it must be polled
  void clear_error() { driver_->clear_error(); }

  // Sends frames that had no space before. True if the interface took any.
  bool send_waiting();
  // Whether frames wait: send_waiting() after kBetweenSends, because no event reports space.
  static constexpr wire::Duration kBetweenSends = std::chrono::microseconds(100);
  bool is_waiting() const { return driver_ && (driver_->is_pending() || !outgoing_.is_empty()); }
  // Whether copies wait that the ring has no space for.
  bool is_backed_up() const { return !outgoing_.is_empty(); }
  // The fullest of its queues and its transmit ring, percent.
  std::uint8_t fill() const;
  // Data packets of all hosts that may wait here without a loss.
  std::uint32_t data_slots() const { return queues_.share_of_one(); }

  // Moves arrived frames into the hosts' queues, a batch at most; true if there were any. Appends
  // to `woken` the numbers of hosts with queues that were empty before.
  bool take_in(wire::Instant now, std::vector<std::size_t>& woken);
  // Requests an event when a frame comes. False if one is there already.
  bool arm() { return driver_->fd() >= 0 && !driver_->has_received(); }
  // Frames that can't be charged to a host.
  const PortCounters& counters() const { return counters_; }

  // For its ports.
  NextHops& next_hops() { return *next_hops_; }
  FrameQueues& queues() { return queues_; }
  PayloadPools& pools() { return pools_; }
  // Queues a frame to be sent. Returns the reason if it can't.
  std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& to);
  bool has_pushed() const { return driver_ && driver_->has_pushed(); }
  // Returns the number of frames that were dropped because the interface is down.
  std::uint32_t kick();

 private:
  // As many as the kernel's ring holds.
  static constexpr std::uint32_t kWaitingFrames = 2048;
  // Longest queue from which copies are marked.
  static constexpr std::uint32_t kUnmarkedFrames = kWaitingFrames / 8;
  // More than the copies of all packets that a gate held for the largest group that a box serves.
  static constexpr std::size_t kMostOutgoing = 1 << 16;

  wire::Result<void> check_forwarding();
  wire::Result<std::unique_ptr<InterfaceDriver>> open_driver();
  wire::Result<void> open_ports(wire::Instant now);
  OneArmedPort* owner_of(const InterfaceDriver::Received& received);
  std::optional<PortCounter> offer(const wire::Frame& frame, const wire::Mac& to);
  std::optional<PortCounter> keep(const wire::Frame& frame, const wire::Mac& to);
  bool refill();
  bool is_filling() const;
  void release(const wire::Frame& frame) {
    if (frame.ref != wire::kNoBuffer) pools_.drop(frame.ref);
  }
  void take_for(OneArmedPort& port, const InterfaceDriver::Received& received, wire::Instant now,
                std::vector<std::size_t>& woken);

  const OneArmedConfig config_;
  PayloadPools& pools_;
  std::uint32_t pool_ = 0;
  std::unordered_map<wire::Ipv4, OneArmedPort*> ports_;  // by host
  FrameQueues queues_;
  std::unique_ptr<NextHops> next_hops_;
  std::unique_ptr<InterfaceDriver> driver_;
  // With their own references, and the MAC addresses of their next hops.
  wire::Fifo<wire::Frame> outgoing_;
  PortCounters counters_;
};

}  // namespace cepheus::fabric
