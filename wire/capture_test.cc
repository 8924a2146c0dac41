// Golden packets: what the kernel's Soft-RoCE sent and accepted (testdata/README.md).
#include <gtest/gtest.h>

#include <set>

#include "wire/capture_reader.h"
#include "wire/icrc.h"
#include "wire/roce.h"
#include "wire/test_bytes.h"

namespace cepheus::wire {
namespace {

class Capture : public testing::TestWithParam<const char*> {
 protected:
  const std::vector<Packet> packets_ = read_capture(GetParam());
};

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name;
  for (const char c : std::string(info.param)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Rxe, Capture, testing::ValuesIn(kCaptures), test_name);

TEST_P(Capture, IsRestoredFromItsFrames) {
  for (const Packet& packet : packets_) {
    const auto frame = Frame::from_bytes(packet, 7);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->ref, 7u);
    EXPECT_EQ(frame->icrc_state, Icrc::kPresent);
    EXPECT_EQ(bytes_of(*frame), packet);
  }
}

TEST_P(Capture, IsRebuiltFromItsHeaderValues) {
  for (const Packet& packet : packets_) {
    const auto frame = Frame::from_bytes(packet);
    ASSERT_TRUE(frame);
    const auto headers = RoceHeaders::parse(*frame);
    ASSERT_TRUE(headers);

    Frame rebuilt;
    rebuilt.bytes.fill(0xA5);
    headers->emit(rebuilt, frame->payload().size());
    rebuilt.set_external_payload(frame->payload(), kNoBuffer);
    EXPECT_EQ(rebuilt.icrc_state, Icrc::kDeferred);
    EXPECT_EQ(bytes_of(rebuilt), packet);  // the ICRC included
  }
}

TEST_P(Capture, CarriesTheRightIcrcAndNoOther) {
  for (const Packet& packet : packets_) {
    auto frame = Frame::from_bytes(packet);
    ASSERT_TRUE(frame);
    EXPECT_TRUE(check_icrc(*frame));
    frame->icrc ^= 1u << packet.size() % 32;
    EXPECT_FALSE(check_icrc(*frame));
  }
}

TEST_P(Capture, IsRefusedAtEveryShorterLength) {
  for (const Packet& packet : packets_) {
    const std::span<const std::uint8_t> whole(packet);
    for (std::size_t n = 0; n < packet.size(); ++n) {
      ASSERT_FALSE(Frame::from_bytes(whole.first(n))) << n << " of " << packet.size();
    }
  }
}

TEST_P(Capture, IsTheSameFrameWithEthernetPaddingBehindIt) {
  for (const Packet& packet : packets_) {
    Packet padded = packet;
    padded.resize(packet.size() + 18, 0xEE);
    const auto frame = Frame::from_bytes(padded);
    ASSERT_TRUE(frame);
    EXPECT_EQ(bytes_of(*frame), packet);
  }
}

TEST(Captures, CoverTheOpcodesTheirDescriptionNames) {
  std::set<int> seen;
  for (const char* name : kCaptures) {
    for (const Packet& packet : read_capture(name)) seen.insert(packet.at(kBthOffset));
  }
  for (const int opcode :
       {0x00, 0x01, 0x02, 0x06, 0x07, 0x08, 0x0C, 0x0D, 0x0E, 0x0F, 0x11, 0x12, 0x13, 0x64}) {
    EXPECT_TRUE(seen.contains(opcode)) << "opcode " << opcode;
  }
}

}  // namespace
}  // namespace cepheus::wire
