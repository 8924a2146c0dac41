// Frames to and from a network interface: an AF_PACKET socket with rings that are shared with the
// kernel (packet(7), Documentation/networking/packet_mmap.rst; TPACKET_V2).
//
// Received frames are read where the kernel put them, without a call. Frames to be sent are written
// into a second ring, and one call tells the kernel of all. Version 2 of the rings delivers each
// frame as it arrives; version 3 delays a block until a timer of milliseconds expires.
//
// Offloads: a sender on the same machine leaves checksums to hardware, which next() reports. Frames
// that segmentation offload has merged are longer than a slot and reported as truncated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "switch-emulator/ports/interface_driver.h"
#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

// One ring in the mapped memory: `count` slots of `slot_bytes`.
struct PacketRing {
  std::uint8_t* memory = nullptr;
  std::uint32_t slot_bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t next = 0;

  std::uint8_t* slot(std::uint32_t at) const { return memory + std::size_t{at} * slot_bytes; }
  std::uint8_t* slot() const { return slot(next); }
  std::uint32_t before(std::uint32_t slots = 1) const {
    return (next < slots ? next + count : next) - slots;
  }
  void advance() { next = next + 1 == count ? 0 : next + 1; }
};

// Works with any interface of the kernel, with CAP_NET_RAW; each copy's payload is copied into the
// ring.
class PacketSocket final : public InterfaceDriver {
 public:
  static constexpr std::uint32_t kSendSlots = 1024;  // frames that wait to be sent

  enum class Filter {
    kEverything,  // frames for any MAC address
    kOwnIpv4,     // frames that the interface accepts for this machine
  };
  // `largest_frame`: bytes from Ethernet header to ICRC. Errors name the missing capability, the
  // missing interface, or the MTU that is too small for registration.
  static wire::Result<std::unique_ptr<PacketSocket>> open(const std::string& interface,
                                                          std::uint32_t largest_frame,
                                                          Filter filter);
  ~PacketSocket() override;

  // Whether the interface of its name is the opened one, and not a later one.
  bool is_at_its_interface() const;

  int fd() const override { return fd_.get(); }
  void clear_error() override;
  std::optional<Received> next() override;
  void release() override;
  bool has_received() const override;
  std::uint32_t take_dropped() override;
  std::optional<PortCounter> send(const wire::Frame& frame, const wire::Mac& from,
                                  const wire::Mac& to) override;
  std::uint32_t kick() override;
  bool has_pushed() const override { return pushed_; }
  bool is_pending() const override;
  bool is_filling() const override;
  std::uint8_t fill() const override;

  // Memory for the next frame, or nothing if the ring is full.
  std::span<std::uint8_t> send_buffer();
  // Queues the frame that was written there.
  void push(std::uint32_t length);

 private:
  PacketSocket() = default;
  wire::Result<void> bind_to(const std::string& interface, Filter filter);
  wire::Result<void> map_rings(std::uint32_t largest_frame);
  std::uint32_t take_back_pending();
  bool is_queued(std::uint32_t back) const;  // the frame `back` slots before the next
  void set_priority(std::uint8_t tos);       // of frames that are queued from now on

  UniqueFd fd_;
  std::string interface_;
  int index_ = 0;  // of the interface
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::uint32_t largest_frame_ = 0;
  PacketRing rx_, tx_;
  bool pushed_ = false;
  int priority_ = 0;        // SO_PRIORITY
  std::uint32_t down_ = 0;  // frames that set_priority() dropped, for the next kick()
};

}  // namespace cepheus::fabric
