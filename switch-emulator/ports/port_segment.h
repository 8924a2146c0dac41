// The shared memory of one attached port: two rings of frames, one of returned payload slots, and
// flags.
//
//   0     client's line   produced[tx], consumed[rx], consumed[returns]   written by the host
//   64    switch's line   consumed[tx], produced[rx], produced[returns]   written by the switch
//   128   client_sleeps   WakeFlag: the host requests, the switch rings
//   192   switch_sleeps   WakeFlag: the switch requests, the host rings
//   4096  tx ring, rx ring: kFrameRing descriptors of 128 bytes each
//         returns ring: slot numbers, as many as the port has slots
//
// Indices share a line by writer, not by ring: polling a peer takes one cache miss, and no line has
// two writers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "switch-emulator/ports/ring.h"
#include "switch-emulator/ports/shared_memory.h"
#include "wire/frame.h"
#include "wire/result.h"

namespace cepheus::fabric {

// A sleeper's request to be woken, in shared memory: the sleeper sets it, and the ringer rings its
// eventfd when there is work.
//
//     sleeper                                   ringer
//       flag.send_request(reasons)                publish the work
//       check once more; flag.withdraw() if       if (flag.take(reason)) write the eventfd
//         there is work; else wait
//
// Both sides use read-modify-writes on one word, which have one order. If take() comes after
// send_request() it sees the request; if before, send_request() synchronises with it, and the check
// after it sees the work. No wake-up is lost, and no fence is needed. A stale request costs only a
// spurious wake-up.
class WakeFlag {
 public:
  void send_request(std::uint32_t reasons) { word_.exchange(reasons, std::memory_order_acq_rel); }
  void withdraw() { word_.store(0, std::memory_order_relaxed); }

  // True, once per request, if the sleeper requested any of `reasons`; other requests stay.
  bool take(std::uint32_t reasons) {
    const std::uint32_t requested = word_.exchange(0, std::memory_order_acq_rel);
    if ((requested & reasons) != 0) return true;
    if (requested != 0) word_.fetch_or(requested, std::memory_order_acq_rel);
    return false;
  }

 private:
  std::atomic<std::uint32_t> word_;  // shared memory starts as zeros
};
static_assert(sizeof(WakeFlag) == 4);

inline constexpr std::uint32_t kFrameRing = 2048;
// Packets that a NIC may have under way to one peer: a ring holds those of four peers.
inline constexpr std::uint32_t kWindow = kFrameRing / 4;
// ... and a group's source, whatever its NIC: one sender's share of a ring is two thirds.
inline constexpr std::uint32_t kRingWindow = kFrameRing / 2;

// One frame on a ring: a wire::Frame whose payload pointer has become an offset into the payload
// pool.
struct Descriptor {
  static constexpr std::uint64_t kInline = ~std::uint64_t{0};

  // Headers, then the payload if it is inline.
  std::array<std::uint8_t, wire::Frame::kCapacity> bytes;
  std::uint16_t header_len;
  std::uint16_t payload_len;
  std::uint8_t icrc_state;
  std::uint8_t reserved0;
  std::uint16_t reserved1;
  std::uint32_t icrc;
  std::uint32_t reserved2;
  std::uint64_t payload;  // offset into the pool, or kInline
};
static_assert(sizeof(Descriptor) == 128);

// Copies all but the payload reference, which the caller has translated. Only bytes within the
// frame's lengths cross to the other process. Bytes behind them may be another user's message or a
// stack, so the descriptor has zeros there.
void write_descriptor(const wire::Frame& frame, std::uint64_t payload, Descriptor& out);
// False for impossible lengths, states and inline payloads. The caller, which knows the pool,
// translates the reference of an external payload; `frame.external` is null here.
bool read_descriptor(const Descriptor& descriptor, wire::Frame& frame);

// Reasons to wake a sleeper. The switch sleeps for frames only: it drops frames rather than wait
// for a receiver, or looks at its ring from time to time (live/datapath/last_hop.h). No sender stays without
// slots (EgressShare). So a release needs no doorbell.
enum WakeReason : std::uint32_t {
  kWakeOnFrames = 1,
  kWakeOnSpace = 2,  // ring entries or payload slots came back
  // A frame that the receiver has to answer, or a quarter of the ring: a receiver of bulk data
  // sleeps until there is a batch.
  kWakeOnBatch = 4,
};

class PortSegment {
 public:
  PortSegment() = default;
  static std::size_t size_for(std::uint32_t slots);
  // The segment in `fd`, as created by either side; `slots` is a power of two.
  static wire::Result<PortSegment> map(int fd, std::uint32_t slots);

  RingView<Descriptor> tx() const;
  RingView<Descriptor> rx() const;
  RingView<std::uint32_t> returns() const;
  WakeFlag& client_sleeps() const;
  WakeFlag& switch_sleeps() const;
  void isolate() { memory_.isolate(); }

 private:
  struct Layout;
  Layout& layout() const;
  std::uint8_t* at(std::size_t offset) const { return memory_.data() + offset; }

  Mapping memory_;
  std::uint32_t slots_ = 0;
};

}  // namespace cepheus::fabric
