// Base transport header (IBTA vol. 1, 9.2) and the opcodes of the services RC, UC and UD.
//
//   |    opcode     |S|M|Pad| TVer  |         partition key         |
//   |F|B| reserved6 |               destination QP                  |
//   |A|  reserved7  |            packet sequence number             |
#pragma once

#include <array>
#include <optional>
#include <span>

#include "wire/byte_order.h"
#include "wire/types.h"

namespace cepheus::wire {

enum class Opcode : std::uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImm = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImm = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImm = 0x09,
  kRcWriteOnly = 0x0A,
  kRcWriteOnlyImm = 0x0B,
  kRcReadRequest = 0x0C,
  kRcReadResponseFirst = 0x0D,
  kRcReadResponseMiddle = 0x0E,
  kRcReadResponseLast = 0x0F,
  kRcReadResponseOnly = 0x10,
  kRcAcknowledge = 0x11,
  kRcAtomicAcknowledge = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInvalidate = 0x16,
  kRcSendOnlyInvalidate = 0x17,
  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImm = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImm = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImm = 0x29,
  kUcWriteOnly = 0x2A,
  kUcWriteOnlyImm = 0x2B,
  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,
  kCnp = 0x81,  // congestion notification packet (IBTA Annex A17.9.3)
};

// The service of an opcode: its three highest bits (IBTA table 38).
enum class Service : std::uint8_t { kRc = 0, kUc = 1, kUd = 3, kCongestion = 4 };
constexpr Service service_of(Opcode opcode) {
  return static_cast<Service>(static_cast<std::uint8_t>(opcode) >> 5);
}
// UC numbers its SENDs and WRITEs as RC does.
constexpr Opcode as_uc(Opcode rc) {
  return static_cast<Opcode>(static_cast<std::uint8_t>(rc) |
                             static_cast<std::uint8_t>(Opcode::kUcSendFirst));
}

// Properties of an opcode, so that engines need no lists of opcodes.
struct OpcodeInfo {
  bool known = false;
  bool send = false;   // SEND of any kind, of RC or UC
  bool write = false;  // WRITE of any kind, of RC or UC
  bool first = false;  // starts a message ("only" is first and last)
  bool last = false;   // ends a message
  bool read_request = false;
  bool atomic_request = false;
  bool response = false;  // READ response, ACK or atomic ACK
  bool reth = false, aeth = false, deth = false, imm = false, ieth = false;
  bool atomic_eth = false, atomic_ack_eth = false;
  bool multicast = false;            // SEND or WRITE of RC
  std::uint8_t extension_bytes = 0;  // all extension headers together (CNP: its 16 reserved bytes)

  bool request() const { return send || write || read_request || atomic_request; }
  bool multicastable() const { return multicast; }
};
extern const std::array<OpcodeInfo, 256> kOpcodeInfos;
inline const OpcodeInfo& opcode_info(Opcode opcode) {
  return kOpcodeInfos[static_cast<std::uint8_t>(opcode)];
}

struct Bth {
  static constexpr std::size_t kSize = 12;
  static constexpr std::uint16_t kDefaultPkey = 0xFFFF;

  Opcode opcode = Opcode::kRcSendOnly;
  bool solicited = false;
  bool migration = true;               // MigReq: 1, migrated, as ConnectX sends; rdma_rxe sends 0
  std::uint8_t pad_count = 0;          // 0..3
  std::uint8_t transport_version = 0;  // always 0
  std::uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  std::uint8_t reserved6 = 0;
  Qpn destination_qp;
  bool ack_request = false;
  std::uint8_t reserved7 = 0;
  Psn psn;

  static std::optional<Bth> parse(std::span<const std::uint8_t> data) {  // any opcode byte
    Bth b;
    return b.read(data) ? std::optional(b) : std::nullopt;
  }
  bool read(std::span<const std::uint8_t> data) {  // as Ethernet::read
    if (data.size() < kSize) return false;
    const std::uint32_t first = load_be32(data.data());
    const std::uint32_t second = load_be32(data.data() + 4);
    const std::uint32_t third = load_be32(data.data() + 8);
    opcode = static_cast<Opcode>(first >> 24);
    solicited = (first >> 23 & 1) != 0;
    migration = (first >> 22 & 1) != 0;
    pad_count = static_cast<std::uint8_t>(first >> 20 & 0x3);
    transport_version = static_cast<std::uint8_t>(first >> 16 & 0xF);
    pkey = static_cast<std::uint16_t>(first);
    fecn = second >> 31 != 0;
    becn = (second >> 30 & 1) != 0;
    reserved6 = static_cast<std::uint8_t>(second >> 24 & 0x3F);
    destination_qp = Qpn(second);
    ack_request = third >> 31 != 0;
    reserved7 = static_cast<std::uint8_t>(third >> 24 & 0x7F);
    psn = Psn(third);
    return true;
  }
  void emit(std::span<std::uint8_t, kSize> out) const {
    store_be32(out.data(), std::uint32_t{static_cast<std::uint8_t>(opcode)} << 24 |
                               std::uint32_t{solicited} << 23 | std::uint32_t{migration} << 22 |
                               (pad_count & 0x3u) << 20 | (transport_version & 0xFu) << 16 | pkey);
    store_be32(out.data() + 4, std::uint32_t{fecn} << 31 | std::uint32_t{becn} << 30 |
                                   (reserved6 & 0x3Fu) << 24 | destination_qp.value());
    store_be32(out.data() + 8,
               std::uint32_t{ack_request} << 31 | (reserved7 & 0x7Fu) << 24 | psn.value());
  }
  friend bool operator==(const Bth&, const Bth&) = default;
};

// Replaces both in an emitted header.
inline void rewrite_bth(std::span<std::uint8_t, Bth::kSize> header, Qpn destination_qp, Psn psn) {
  store_be24(header.data() + 5, destination_qp.value());
  store_be24(header.data() + 9, psn.value());
}
// Sets AckReq in an emitted header.
inline void set_ack_request(std::span<std::uint8_t, Bth::kSize> header) { header[8] |= 0x80; }

}  // namespace cepheus::wire
