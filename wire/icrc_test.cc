#include "wire/icrc.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "wire/roce.h"

namespace cepheus::wire {
namespace {

constexpr Opcode kOpcodes[] = {
    Opcode::kRcSendMiddle,        Opcode::kRcSendOnlyImm, Opcode::kRcWriteFirst,
    Opcode::kRcWriteOnlyImm,      Opcode::kRcAcknowledge, Opcode::kRcCompareSwap,
    Opcode::kRcAtomicAcknowledge, Opcode::kUdSendOnlyImm, Opcode::kCnp};

std::vector<std::uint8_t> payload_of(std::size_t n) {
  std::vector<std::uint8_t> data(n);
  std::uint32_t x = 0x2545F491;
  for (std::uint8_t& byte : data) {
    x = x * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(x >> 24);
  }
  return data;
}

Frame frame_of(Opcode opcode, std::span<const std::uint8_t> payload) {
  RoceHeaders h;
  h.ip.source = Ipv4(10, 0, 0, 1);
  h.ip.destination = Ipv4(198, 18, 0, 7);
  h.udp.source_port = 0xC123;
  h.bth.opcode = opcode;
  h.bth.destination_qp = kVirtualQpn;
  h.bth.psn = Psn(0x123456);
  Frame frame;
  frame.bytes.fill(0);
  h.emit(frame, payload.size());
  frame.set_external_payload(payload, kNoBuffer);
  return frame;
}

// Offsets that a switch may change without touching the ICRC: Ethernet, TOS, TTL, checksums, BTH
// byte 4.
bool is_variant(std::size_t offset) {
  return offset < 14 || offset == 15 || offset == 22 || offset == 24 || offset == 25 ||
         offset == 40 || offset == 41 || offset == 46;
}

RC_GTEST_PROP(PatchIcrc, EqualsRecomputationAfterAnyHeaderChange, ()) {
  const auto payload = payload_of(*rc::gen::inRange<std::size_t>(0, 4097));
  Frame before = frame_of(
      *rc::gen::elementOf(std::vector<Opcode>(std::begin(kOpcodes), std::end(kOpcodes))), payload);
  seal_icrc(before);
  Frame after = before;
  const auto changes = *rc::gen::container<std::vector<std::pair<std::uint8_t, std::uint8_t>>>(
      rc::gen::arbitrary<std::pair<std::uint8_t, std::uint8_t>>());
  for (const auto& [at, value] : changes) after.bytes[at % after.header_len] ^= value;
  RC_ASSERT(patch_icrc(before.icrc, before.header(), after.header(), payload.size()) ==
            compute_icrc(after));
}

// As bridging rewrites each copy.
RC_GTEST_PROP(PatchIcrc, FollowsABridgedWrite,
              (std::uint32_t host, std::uint32_t qpn, std::uint32_t psn, std::uint64_t address,
               std::uint32_t rkey)) {
  const auto payload = payload_of(*rc::gen::inRange<std::size_t>(0, 4097));
  const Frame original = frame_of(Opcode::kRcWriteOnly, payload);
  Frame copy = original;
  auto h = RoceHeaders::parse(copy);
  RC_ASSERT(h.has_value());
  h->ip.source = h->ip.destination;
  h->ip.destination = Ipv4(host);
  h->bth.destination_qp = Qpn(qpn);
  h->bth.psn = Psn(psn);
  h->reth.virtual_address = address;
  h->reth.rkey = rkey;
  h->emit(copy, payload.size());
  const std::uint32_t icrc = compute_icrc(original);
  RC_ASSERT(patch_icrc(icrc, original.header(), copy.header(), payload.size()) ==
            compute_icrc(copy));
  RC_ASSERT(patch_icrc(compute_icrc(copy), copy.header(), original.header(), payload.size()) ==
            icrc);
}

TEST(PatchIcrc, KeepsAPayloadErrorVisible) {
  auto payload = payload_of(1024);
  Frame frame = frame_of(Opcode::kRcSendMiddle, payload);
  seal_icrc(frame);
  payload[500] ^= 0x10;  // damaged inside the switch
  Frame copy = frame;
  copy.bytes[kBthOffset + 7] = 0x42;
  copy.icrc = patch_icrc(frame.icrc, frame.header(), copy.header(), payload.size());
  EXPECT_FALSE(check_icrc(copy));
  payload[500] ^= 0x10;
  EXPECT_TRUE(check_icrc(copy));
}

TEST(Icrc, CoversEveryHeaderByteButTheVariantOnes) {
  const auto payload = payload_of(64);
  for (const Opcode opcode : kOpcodes) {
    Frame frame = frame_of(opcode, payload);
    seal_icrc(frame);
    for (std::size_t at = 0; at < frame.header_len; ++at) {
      Frame changed = frame;
      changed.bytes[at] ^= 0x04;
      EXPECT_EQ(check_icrc(changed), is_variant(at)) << "offset " << at;
    }
  }
}

TEST(Icrc, CoversEveryPayloadByteInlineOrNot) {
  auto payload = payload_of(32);
  Frame frame = frame_of(Opcode::kRcSendOnly, payload);
  seal_icrc(frame);
  Frame small = frame;
  small.set_inline_payload(payload);
  EXPECT_TRUE(check_icrc(small));
  for (std::uint8_t& byte : payload) {
    byte ^= 0x80;
    EXPECT_FALSE(check_icrc(frame));
    EXPECT_TRUE(check_icrc(small));  // its own copy
    byte ^= 0x80;
  }
  for (std::size_t i = 0; i < payload.size(); ++i) {
    Frame changed = small;
    changed.bytes[changed.header_len + i] ^= 1;
    EXPECT_FALSE(check_icrc(changed));
  }
}

TEST(Icrc, IsComputedOnceWhenItWasDeferred) {
  const auto payload = payload_of(256);
  Frame frame = frame_of(Opcode::kRcSendOnly, payload);
  EXPECT_EQ(frame.icrc_state, Icrc::kDeferred);
  EXPECT_TRUE(check_icrc(frame));
  seal_icrc(frame);
  EXPECT_EQ(frame.icrc_state, Icrc::kPresent);
  EXPECT_EQ(frame.icrc, compute_icrc(frame));
  frame.icrc ^= 1;  // a wrong one stays wrong
  const std::uint32_t wrong = frame.icrc;
  seal_icrc(frame);
  EXPECT_EQ(frame.icrc, wrong);
  EXPECT_FALSE(check_icrc(frame));
}

TEST(Icrc, IsNeverRightOnAFrameWithoutOne) {
  Frame frame;
  EXPECT_FALSE(check_icrc(frame));
  seal_icrc(frame);
  EXPECT_EQ(frame.icrc_state, Icrc::kNone);
}

}  // namespace
}  // namespace cepheus::wire
