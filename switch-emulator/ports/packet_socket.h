// Frames to and from a network interface: an AF_PACKET socket with rings that the kernel shares
// with us (packet(7), Documentation/networking/packet_mmap.rst; TPACKET_V2).
//
// Received frames are read where the kernel put them, without a call; frames to be sent are written
// into a second ring, and one call tells the kernel of all. Version 2 of the rings hands out each
// frame as it arrives, where version 3 holds a block back until a timer of milliseconds retires it.
//
// Offloads: a sender on the same machine leaves checksums to be made, which next() reports; frames
// that were put together by segmentation offload are longer than a slot and reported as truncated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"
#include "wire/types.h"

namespace cepheus::fabric {

// One ring in the mapped memory: `count` slots of `slot_bytes`.
struct PacketRing {
  std::uint8_t* memory = nullptr;
  std::uint32_t slot_bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t next = 0;

  std::uint8_t* slot(std::uint32_t at) const { return memory + std::size_t{at} * slot_bytes; }
  std::uint8_t* slot() const { return slot(next); }
  std::uint32_t before() const { return (next == 0 ? count : next) - 1; }
  void advance() { next = next + 1 == count ? 0 : next + 1; }
};

class PacketSocket {
 public:
  struct Received {
    std::span<std::uint8_t> bytes;  // from the Ethernet header on; ours until release()
    bool checksum_missing = false;  // TCP's or UDP's: left to hardware that is not there
    bool truncated = false;
    bool tagged = false;  // a VLAN tag was taken out
    bool losing = false;  // the ring was full before: see take_dropped()
  };

  enum class Hears {
    kEverything,  // whatever MAC address it is for
    kOwnIpv4,     // what the interface takes for this machine's
  };
  // `largest_frame`: bytes from Ethernet header to ICRC. Errors name the missing capability, the
  // interface that is not there, or the MTU that is too small for the fabric's.
  static wire::Result<std::unique_ptr<PacketSocket>> open(const std::string& interface,
                                                          std::uint32_t largest_frame, Hears hears);
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // Whether the interface of its name is the one that it was opened at, and not a later one.
  bool is_at_its_interface() const;

  // Readable when a frame has come while the ring was empty.
  int fd() const { return fd_.get(); }

  std::optional<Received> next();
  void release();
  bool has_received() const;
  // Frames that the kernel dropped since the last call, because the ring was full.
  std::uint32_t take_dropped();
  // Takes the error that the socket reports, so that waiting works again.
  void clear_error();

  // Room for the next frame, or nothing if the ring is full.
  std::span<std::uint8_t> send_buffer();
  // Puts the frame that was written there among those to be sent.
  void push(std::uint32_t length);
  // Tells the kernel. What it had no room for stays: is_pending() says so, and kick() tries again.
  // Returns the frames that were thrown away because the interface is down.
  std::uint32_t kick();
  bool has_pushed() const { return pushed_; }
  bool is_pending() const;

 private:
  PacketSocket() = default;
  wire::Result<void> bind_to(const std::string& interface, Hears hears);
  wire::Result<void> map_rings(std::uint32_t largest_frame);
  std::uint32_t take_back_pending();

  UniqueFd fd_;
  std::string interface_;
  int index_ = 0;  // of the interface
  std::uint8_t* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::uint32_t largest_frame_ = 0;
  PacketRing rx_, tx_;
  bool pushed_ = false;
};

}  // namespace cepheus::fabric
