#include "wire/bth.h"

#include "wire/extension_headers.h"

namespace cepheus::wire {
namespace {

constexpr std::uint8_t kCnpReservedSize = 16;

enum Position { kMiddle = 0, kFirst = 1, kLast = 2, kOnly = kFirst | kLast };
// `info`, with its position in a message and the size of its extension headers.
constexpr OpcodeInfo at(Position position, OpcodeInfo info) {
  info.known = true;
  info.first = (position & kFirst) != 0;
  info.last = (position & kLast) != 0;
  const std::size_t bytes = (info.deth ? Deth::kSize : 0) + (info.reth ? Reth::kSize : 0) +
                            (info.aeth ? Aeth::kSize : 0) + (info.imm ? ImmDt::kSize : 0) +
                            (info.ieth ? Ieth::kSize : 0) +
                            (info.atomic_eth ? AtomicEth::kSize : 0) +
                            (info.atomic_ack_eth ? AtomicAckEth::kSize : 0);
  info.extension_bytes = static_cast<std::uint8_t>(bytes);
  return info;
}
constexpr OpcodeInfo send(Position position, bool imm = false, bool invalidate = false) {
  return at(position, {.send = true, .imm = imm, .ieth = invalidate});
}
constexpr OpcodeInfo write(Position position, bool imm = false) {
  return at(position, {.write = true, .reth = (position & kFirst) != 0, .imm = imm});
}
constexpr OpcodeInfo response(Position position, bool atomic = false) {
  return at(position, {.response = true, .aeth = position != kMiddle, .atomic_ack_eth = atomic});
}

constexpr std::array<OpcodeInfo, 256> make_table() {
  std::array<OpcodeInfo, 256> table{};
  const auto set = [&table](Opcode opcode, const OpcodeInfo& info) {
    table[static_cast<std::uint8_t>(opcode)] = info;
  };
  set(Opcode::kRcSendFirst, send(kFirst));
  set(Opcode::kRcSendMiddle, send(kMiddle));
  set(Opcode::kRcSendLast, send(kLast));
  set(Opcode::kRcSendLastImm, send(kLast, true));
  set(Opcode::kRcSendOnly, send(kOnly));
  set(Opcode::kRcSendOnlyImm, send(kOnly, true));
  set(Opcode::kRcWriteFirst, write(kFirst));
  set(Opcode::kRcWriteMiddle, write(kMiddle));
  set(Opcode::kRcWriteLast, write(kLast));
  set(Opcode::kRcWriteLastImm, write(kLast, true));
  set(Opcode::kRcWriteOnly, write(kOnly));
  set(Opcode::kRcWriteOnlyImm, write(kOnly, true));
  set(Opcode::kRcReadRequest, at(kOnly, {.read_request = true, .reth = true}));
  set(Opcode::kRcReadResponseFirst, response(kFirst));
  set(Opcode::kRcReadResponseMiddle, response(kMiddle));
  set(Opcode::kRcReadResponseLast, response(kLast));
  set(Opcode::kRcReadResponseOnly, response(kOnly));
  set(Opcode::kRcAcknowledge, response(kOnly));
  set(Opcode::kRcAtomicAcknowledge, response(kOnly, true));
  const OpcodeInfo atomic_request = at(kOnly, {.atomic_request = true, .atomic_eth = true});
  set(Opcode::kRcCompareSwap, atomic_request);
  set(Opcode::kRcFetchAdd, atomic_request);
  set(Opcode::kRcSendLastInvalidate, send(kLast, false, true));
  set(Opcode::kRcSendOnlyInvalidate, send(kOnly, false, true));
  for (int rc = 0; rc <= static_cast<int>(Opcode::kRcWriteOnlyImm); ++rc) {
    const auto opcode = static_cast<Opcode>(rc);
    set(as_uc(opcode), table[static_cast<std::size_t>(rc)]);
    table[static_cast<std::size_t>(rc)].multicast = true;
  }
  for (const Opcode opcode : {Opcode::kRcSendLastInvalidate, Opcode::kRcSendOnlyInvalidate}) {
    table[static_cast<std::uint8_t>(opcode)].multicast = true;
  }
  set(Opcode::kUdSendOnly, at(kOnly, {.deth = true}));
  set(Opcode::kUdSendOnlyImm, at(kOnly, {.deth = true, .imm = true}));
  set(Opcode::kCnp, at(kOnly, {}));
  table[static_cast<std::uint8_t>(Opcode::kCnp)].extension_bytes = kCnpReservedSize;
  return table;
}

}  // namespace

constexpr std::array<OpcodeInfo, 256> kOpcodeInfos = make_table();

}  // namespace cepheus::wire
