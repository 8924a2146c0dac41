#include "libmcast/device_events.h"

#include <gtest/gtest.h>

namespace cepheus::mcast {
namespace {

constexpr std::uint8_t kOurPort = 2;

ibv_async_event of_port(ibv_event_type type, int port) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

TEST(DeviceEvent, OfTheDeviceEndsAllGroups) {
  EXPECT_TRUE(reach_of(of_port(IBV_EVENT_DEVICE_FATAL, 0), kOurPort).all);
}

TEST(DeviceEvent, OfThePortEndsAllGroups) {
  EXPECT_TRUE(reach_of(of_port(IBV_EVENT_PORT_ERR, kOurPort), kOurPort).all);
}

TEST(DeviceEvent, OfAnotherPortOfTheDeviceEndsNone) {
  const EventReach reach = reach_of(of_port(IBV_EVENT_PORT_ERR, 1), kOurPort);
  EXPECT_FALSE(reach.all);
  EXPECT_FALSE(reach.qpn);
}

TEST(DeviceEvent, OfAQueuePairEndsItsGroup) {
  ibv_qp pair{};
  pair.qp_num = 0x77;
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = &pair;
  const EventReach reach = reach_of(event, kOurPort);
  EXPECT_FALSE(reach.all);
  EXPECT_EQ(reach.qpn, wire::Qpn(0x77));
}

TEST(DeviceEvent, ThatIsNewsEndsNothing) {
  EXPECT_FALSE(reach_of(of_port(IBV_EVENT_PORT_ACTIVE, kOurPort), kOurPort).all);
}

}  // namespace
}  // namespace cepheus::mcast
