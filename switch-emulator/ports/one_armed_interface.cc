// Arriving frames are assigned by their source address. Frames for no group, from an unknown host
// or a wrong MAC address, or without space are dropped, each by its counter. Payloads are copied
// into the pool once.
//
// A copy that the ring refuses is offered once more after a kick, and then waits in `outgoing_`, at
// most kMostOutgoing of them. While that queue or the ring fills, copies are marked (ECN). open()
// undoes its steps if a later one fails.
#include "switch-emulator/ports/one_armed_interface.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "switch-emulator/ports/dpdk_driver.h"
#include "switch-emulator/ports/packet_socket.h"
#include "switch-emulator/ports/received_frames.h"
#include "wire/byte_order.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

constexpr std::uint32_t kFramesAtOnce = 256;  // frames, before the hosts' turns
constexpr std::size_t kSourceOffset = wire::kIpOffset + 12;
constexpr std::size_t kDestinationOffset = wire::kIpOffset + 16;

wire::Ipv4 address_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  return wire::Ipv4(wire::load_be32(bytes.data() + offset));
}

}  // namespace

wire::Result<void> OneArmedInterface::open(wire::Instant now) {
  auto hops = NextHops::open(config_.interface);
  if (!hops) return tl::unexpected(hops.error());
  next_hops_ = std::move(*hops);
  if (auto checked = check_forwarding(); !checked) return checked;
  const auto pool = pools_.pool_for(geteuid());
  if (!pool) return tl::unexpected(pool.error());
  pool_ = *pool;
  auto driver = open_driver();
  if (!driver) {
    pools_.leave(pool_);
    return tl::unexpected(driver.error());
  }
  // DPDK's drivers set the interface up anew, and the kernel forgets its neighbours.
  if (auto opened = open_ports(now); !opened) {
    driver->reset();
    pools_.leave(pool_);
    return opened;
  }
  driver_ = std::move(*driver);
  return {};
}

wire::Result<std::unique_ptr<InterfaceDriver>> OneArmedInterface::open_driver() {
  if (!config_.dpdk_device.empty()) {
    return DpdkDriver::open(config_.dpdk_device, config_.largest_frame, config_.groups, pools_,
                            pool_);
  }
  return PacketSocket::open(config_.interface, config_.largest_frame,
                            PacketSocket::Filter::kOwnIpv4);
}

wire::Result<void> OneArmedInterface::open_ports(wire::Instant now) {
  for (const auto& [address, port] : ports_) {
    auto opened = port->open(now);
    if (opened) continue;
    for (const auto& [other, half_open] : ports_) half_open->close();
    return opened;
  }
  return {};
}

wire::Result<void> OneArmedInterface::check_forwarding() {
  if (!next_hops_->forwards(config_.groups)) return {};
  return wire::unavailable("this machine routes packets from interface " + config_.interface +
                           ", and would send the groups' packets back into the network beside the "
                           "switch; ip route add blackhole " +
                           config_.groups.to_string() + ", or sysctl net.ipv4.conf." +
                           config_.interface + ".forwarding=0");
}

wire::Result<void> OneArmedInterface::look() {
  const bool is_there = next_hops_->refresh();
  // DPDK's device is not the kernel's interface: it does not end with it. A PCI device can't be
  // opened again, so it stays open also if the machine begins to route.
  if (!config_.dpdk_device.empty()) return {};
  if (!is_there) {
    return wire::unavailable("interface " + config_.interface +
                             " was removed; make it again, with its "
                             "address and routes");
  }
  return check_forwarding();
}

void OneArmedInterface::close() {
  for (; !outgoing_.is_empty(); outgoing_.pop()) {
    counters_.add(PortCounter::kDropLinkDown);
    release(outgoing_.front());
  }
  driver_.reset();
  pools_.leave(pool_);
}

bool OneArmedInterface::take_in(wire::Instant now, std::vector<std::size_t>& woken) {
  std::uint32_t taken = 0;
  for (; taken < kFramesAtOnce; ++taken) {
    const auto received = driver_->next();
    if (!received) break;
    if (received->losing) counters_.add(PortCounter::kDropKernelFull, driver_->take_dropped());
    if (OneArmedPort* port = owner_of(*received)) take_for(*port, *received, now, woken);
    driver_->release();
  }
  return taken > 0;
}

// The port of the host that sent it to a group; null, and counted, if there is none.
OneArmedPort* OneArmedInterface::owner_of(const InterfaceDriver::Received& received) {
  const auto drop = [this](PortCounter reason) {
    counters_.add(reason);
    return nullptr;
  };
  if (const auto flaw = flaw_of(received, config_.largest_frame, config_.groups))
    return drop(*flaw);
  if (received.bytes.size() < wire::kUdpOffset) return drop(PortCounter::kDropMalformed);
  const bool is_ours = std::memcmp(received.bytes.data(), next_hops_->own_mac().octets.data(),
                                   next_hops_->own_mac().octets.size()) == 0;
  const bool is_ipv4 = wire::load_be16(received.bytes.data() + wire::kIpOffset - 2) ==
                       wire::Ethernet::kIpv4;  // DPDK delivers frames of all kinds
  if (!is_ours || !is_ipv4 ||
      !config_.groups.contains(address_at(received.bytes, kDestinationOffset))) {
    return drop(PortCounter::kDropNotForGroups);
  }
  const auto port = ports_.find(address_at(received.bytes, kSourceOffset));
  return port != ports_.end() ? port->second : drop(PortCounter::kDropUnknownSource);
}

void OneArmedInterface::take_for(OneArmedPort& port, const InterfaceDriver::Received& received,
                                 wire::Instant now, std::vector<std::size_t>& woken) {
  wire::Mac from;
  std::memcpy(from.octets.data(), received.bytes.data() + from.octets.size(), from.octets.size());
  if (!port.is_open()) return port.count(PortCounter::kDropNoClient);
  // Not charged to the host: another may have caused it.
  if (!port.is_bound_to(from, now)) return port.count(PortCounter::kDropWrongMac);
  if (!port.has_space()) return port.count(PortCounter::kDropIngressFull);
  wire::Frame frame;
  if (const auto refused = fabric::take_in(pools_, pool_, received, frame)) {
    return port.refuse(*refused);
  }
  if (!port.has_waiting()) woken.push_back(port.number());
  port.enqueue(frame);
}

std::optional<PortCounter> OneArmedInterface::send(const wire::Frame& frame, const wire::Mac& to) {
  if (!is_ecn_capable(frame) || !is_filling()) return offer(frame, to);
  counters_.add(PortCounter::kMarkedByFill);
  return offer(marked(frame), to);
}

bool OneArmedInterface::is_filling() const {
  return is_backed_up() || queues_.waiting() > kUnmarkedFrames || driver_->is_filling();
}

std::uint8_t OneArmedInterface::fill() const {
  if (driver_ == nullptr) return 0;
  if (is_backed_up()) return 100;
  const auto waiting = static_cast<std::uint8_t>(queues_.waiting() * 100 / kWaitingFrames);
  return std::max(waiting, driver_->fill());
}

std::optional<PortCounter> OneArmedInterface::offer(const wire::Frame& frame, const wire::Mac& to) {
  const wire::Mac& own = next_hops_->own_mac();
  for (int attempt = 0; attempt < 2 && !is_backed_up(); ++attempt) {
    const auto refused = driver_->send(frame, own, to);
    if (refused != PortCounter::kDropEgressFull) return refused;
    counters_.add(PortCounter::kDropLinkDown, driver_->kick());
  }
  return keep(frame, to);
}

std::optional<PortCounter> OneArmedInterface::keep(const wire::Frame& frame, const wire::Mac& to) {
  if (outgoing_.size() == kMostOutgoing) return PortCounter::kDropEgressFull;
  wire::Frame kept = frame;
  std::copy(to.octets.begin(), to.octets.end(), kept.bytes.begin());
  if (kept.external == nullptr) kept.ref = wire::kNoBuffer;
  if (kept.ref != wire::kNoBuffer) {
    pools_.hold(kept.ref);
  } else if (kept.external != nullptr && !pools_.copy_in(pool_, kept)) {
    return PortCounter::kDropNoSlot;
  }
  outgoing_.push(kept);
  return std::nullopt;
}

std::uint32_t OneArmedInterface::kick() {
  std::uint32_t dropped = driver_->kick();
  while (refill()) dropped += driver_->kick();
  return dropped;
}

// Moves outgoing frames into the ring; false if it has no space for any.
bool OneArmedInterface::refill() {
  const std::size_t before = outgoing_.size();
  for (; !outgoing_.is_empty(); outgoing_.pop()) {
    const wire::Frame& next = outgoing_.front();
    wire::Mac to;
    std::copy_n(next.bytes.begin(), to.octets.size(), to.octets.begin());
    const auto refused = driver_->send(next, next_hops_->own_mac(), to);
    if (refused == PortCounter::kDropEgressFull) break;
    if (refused) counters_.add(*refused);
    release(next);
  }
  return outgoing_.size() != before;
}

bool OneArmedInterface::send_waiting() {
  const std::size_t before = outgoing_.size();
  counters_.add(PortCounter::kDropLinkDown, kick());
  return outgoing_.size() != before;
}

}  // namespace cepheus::fabric
