// Extension headers behind the BTH (IBTA vol. 1, 9.3): RETH, AtomicETH, AETH, AtomicAckETH, DETH,
// ImmDt, IETH.
#pragma once

#include <optional>
#include <span>

#include "wire/types.h"

namespace cepheus::wire {

// RDMA extended transport header: virtual address (64), rkey (32), DMA length (32).
struct Reth {
  static constexpr std::size_t kSize = 16;
  std::uint64_t virtual_address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t dma_length = 0;  // bytes of the whole message

  static std::optional<Reth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Reth&, const Reth&) = default;
};

// Atomic extended transport header: virtual address (64), rkey (32), swap or add data (64), compare
// data (64).
struct AtomicEth {
  static constexpr std::size_t kSize = 28;
  std::uint64_t virtual_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;

  static std::optional<AtomicEth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

// Syndrome of an acknowledgement (IBTA 9.7.5.2): two kind bits and a five-bit value.
enum class AckKind : std::uint8_t { kAck = 0, kRnrNak = 1, kReserved = 2, kNak = 3 };
enum class NakCode : std::uint8_t {
  kSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccess = 2,
  kRemoteOperational = 3,
  kInvalidRdRequest = 4,
};

// ACK extended transport header: syndrome (8), message sequence number (24).
struct Aeth {
  static constexpr std::size_t kSize = 4;
  static constexpr std::uint8_t kNoCreditLimit = 31;

  AckKind kind = AckKind::kAck;
  std::uint8_t value = kNoCreditLimit;  // credits, RNR timer code or NakCode, by kind; 0..31
  std::uint32_t msn = 0;                // 24 bits

  static constexpr Aeth nak(NakCode code, std::uint32_t msn = 0) {
    return {AckKind::kNak, static_cast<std::uint8_t>(code), msn};
  }
  bool is_sequence_nak() const { return kind == AckKind::kNak && value == 0; }
  bool is_fatal_nak() const { return kind == AckKind::kNak && value >= 1 && value <= 4; }

  static std::optional<Aeth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Aeth&, const Aeth&) = default;
};

// Atomic ACK extended transport header: what the memory held before.
struct AtomicAckEth {
  static constexpr std::size_t kSize = 8;
  std::uint64_t original = 0;

  static std::optional<AtomicAckEth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

// RNR NAK timer codes (IBTA table 45): code 0 is 655.36 ms, 1 is 10 us, ... 31 is 491.52 ms.
Duration rnr_timer_duration(std::uint8_t code);
// Which of two codes waits longer (code 0 is the longest): the aggregate asks for the longest
// timer.
std::uint8_t longer_rnr_timer(std::uint8_t a, std::uint8_t b);

// Datagram extended transport header: queue key (32), reserved (8), source QP (24).
struct Deth {
  static constexpr std::size_t kSize = 8;
  std::uint32_t qkey = 0;
  Qpn source_qp;

  static std::optional<Deth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Deth&, const Deth&) = default;
};

// Immediate data: four bytes that verbs hand over unconverted; here the big-endian value.
struct ImmDt {
  static constexpr std::size_t kSize = 4;
  std::uint32_t value = 0;

  static std::optional<ImmDt> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const ImmDt&, const ImmDt&) = default;
};

// Invalidate extended transport header: the receiver's rkey that a SEND takes back.
struct Ieth {
  static constexpr std::size_t kSize = 4;
  std::uint32_t rkey = 0;

  static std::optional<Ieth> parse(std::span<const std::uint8_t> data);
  void emit(std::span<std::uint8_t, kSize> out) const;
  friend bool operator==(const Ieth&, const Ieth&) = default;
};

}  // namespace cepheus::wire
