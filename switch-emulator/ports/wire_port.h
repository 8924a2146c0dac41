// The switch's end of a network interface with one host behind it: a veth pair with the kernel's
// Soft-RoCE, or a NIC towards an edge switch that steers group traffic here.
//
// The host finds groups and the fabric's other hosts by ARP, which this port answers with the
// switch's own MAC address. It learns the host's MAC address from ARP packets that the host sends
// in its own name. It sends ARP probes for it while there are frames for the host, but not for each
// frame. Any other node on that link could pose as the host, so the link must be the host's alone.
// Payloads are copied into a slot of the switch's pool once, on arrival, so that they are
// replicated by reference like all others. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "switch-emulator/ports/access_port.h"
#include "switch-emulator/ports/packet_socket.h"
#include "switch-emulator/ports/payload_pool.h"
#include "wire/arp.h"

namespace cepheus::fabric {

struct WirePortConfig {
  std::string interface;
  wire::Ipv4 host;                  // the address behind it
  wire::Mac gateway;                // the switch's: in answers to requests
  wire::Ipv4Prefix groups;          // requests for these are answered
  std::uint32_t largest_frame = 0;  // bytes, Ethernet header to ICRC
};

class WirePort final : public AccessPort {
 public:
  // `neighbours`: addresses of the fabric's hosts and switches. All references outlive the port.
  WirePort(PayloadPools& pools, const std::unordered_set<wire::Ipv4>& neighbours,
           FlushList& flush_list, WirePortConfig config);

  // Opens the interface and asks for the host. Precondition: !is_open().
  wire::Result<void> open();
  void close() override;
  bool is_open() const override { return socket_ != nullptr; }
  const WirePortConfig& config() const { return config_; }
  // Whether the interface is still the opened one. Precondition: is_open().
  bool is_at_its_interface() const { return socket_->is_at_its_interface(); }
  // Readable when a frame comes, or with an error when the interface goes down (clear_error()).
  int fd() const { return socket_->fd(); }
  void clear_error() { socket_->clear_error(); }

  bool receive(wire::Frame& frame) override;
  bool deliver(const wire::Frame& frame, SenderNo sender, wire::Instant now) override;
  void flush() override;
  bool arm() override;
  void reclaim() override;
  std::uint32_t unread() const override { return socket_ && socket_->is_pending() ? 1 : 0; }
  std::uint8_t fill() const override { return socket_ != nullptr ? socket_->fill() : 0; }
  std::optional<PortCounter> offence() const override { return std::nullopt; }

 private:
  void kick();
  std::optional<PortCounter> offer(const wire::Frame& frame, const wire::Mac& from);
  // The part of a received frame that goes on, if any.
  bool take(const PacketSocket::Received& received, wire::Frame& frame);
  void on_arp(const wire::Arp& arp, const wire::Mac& from);
  void send_arp(const wire::Arp& arp, const wire::Mac& to);
  void request_host();
  bool is_served(wire::Ipv4 address) const;

  PayloadPools& pools_;
  const std::unordered_set<wire::Ipv4>& neighbours_;
  const WirePortConfig config_;
  std::uint32_t pool_ = 0;
  std::unique_ptr<PacketSocket> socket_;
  std::optional<wire::Mac> host_mac_;
  wire::Instant next_question_{};  // for a host that does not answer: not before
};

}  // namespace cepheus::fabric
