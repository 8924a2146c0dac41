#include "switch-emulator/fabric/live_fabric.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "libmcast/wire/icrc.h"
#include "switch-emulator/fabric/test_fabric.h"

namespace cepheus::fabric {
namespace {

using testing::Each;
using testing::HasSubstr;

wire::RoceHeaders headers_of(const wire::Frame& frame) {
  const auto headers = wire::RoceHeaders::parse(frame);
  EXPECT_TRUE(headers.has_value());
  return headers.value_or(wire::RoceHeaders{});
}

TEST(LiveFabric, CarriesFramesOfEverySizeBetweenTwoHosts) {
  TestFabric fabric(Topology::star(2));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  std::uint32_t psn = 0;
  for (const std::size_t size : {0u, 4u, 44u, 64u, 1024u, 4096u}) {
    send_packet(*h0, {.to = h1->identity().address,
                      .psn = wire::Psn(psn),
                      .payload_bytes = size,
                      .fill = static_cast<std::uint8_t>(psn + 1)});
    wire::Frame frame;
    ASSERT_TRUE(await_frame(*h1, frame)) << size;
    const auto headers = headers_of(frame);
    EXPECT_EQ(headers.bth.psn, wire::Psn(psn));
    EXPECT_EQ(headers.ip.source, h0->identity().address);
    EXPECT_EQ(frame.payload().size(), size);
    EXPECT_THAT(frame.payload(), Each(static_cast<std::uint8_t>(psn + 1)));
    EXPECT_EQ(frame.icrc_state, wire::Icrc::kDeferred);
    h1->release();
    ++psn;
  }
}

}  // namespace
}  // namespace cepheus::fabric
