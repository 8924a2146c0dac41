// The test program plays the library of the emulated NIC: it exports the datagram calls that the
// channel looks up at run time.
#include "libmcast/roce_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

struct cepheus_datagram_socket {
  std::uint16_t port;
};

namespace {

struct Library {
  int open_result = 0;
  cepheus_datagram_socket socket{0};
  int closed = 0;
  std::uint32_t sent_to = 0;
  std::uint16_t sent_port = 0;
  std::vector<std::uint8_t> sent, waiting;
  std::uint16_t from_port = 18516;
  std::uint16_t opened_for = 0;
  std::uint8_t opened_with = 0;
} library;

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"), used))

EXPORTED int cepheus_datagram_open(ibv_context*, std::uint16_t port, std::uint16_t from_port,
                                   std::uint8_t tos, cepheus_datagram_socket** out) {
  library.socket.port = port;
  library.opened_with = tos;
  library.opened_for = from_port;
  *out = &library.socket;
  return library.open_result;
}
EXPORTED std::uint16_t cepheus_datagram_port(const cepheus_datagram_socket* socket) {
  return socket->port == 0 ? 49152 : socket->port;
}
EXPORTED int cepheus_datagram_send(cepheus_datagram_socket*, std::uint32_t to, std::uint16_t port,
                                   const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  library.sent_to = to;
  library.sent_port = port;
  library.sent.assign(bytes, bytes + size);
  return 0;
}
EXPORTED ssize_t cepheus_datagram_recv(cepheus_datagram_socket*, void* data, std::size_t capacity,
                                       std::uint32_t* from, std::uint16_t* from_port) {
  if (library.waiting.empty()) {
    errno = EAGAIN;
    return -1;
  }
  const std::size_t n = std::min(capacity, library.waiting.size());
  std::copy_n(library.waiting.begin(), n, static_cast<std::uint8_t*>(data));
  library.waiting.clear();
  *from = 0x0A000001;
  *from_port = library.from_port;
  return static_cast<ssize_t>(n);
}
EXPORTED void cepheus_datagram_close(cepheus_datagram_socket*) { ++library.closed; }

namespace cepheus::mcast {
namespace {

TEST(RoceChannel, SpeaksThroughTheLibraryThatIsThere) {
  library = {};
  {
    const auto channel = RoceChannel::open(nullptr, 18516, {});
    ASSERT_TRUE(channel);
    ASSERT_TRUE(*channel);
    EXPECT_EQ(library.socket.port, 0) << "any that is free";
    EXPECT_EQ((*channel)->port(), 49152);
    EXPECT_EQ(library.opened_for, 18516) << "strangers take no place in its queue";
    EXPECT_EQ(library.opened_with, 104) << "the DSCP of the group's data, without ECN";
    const std::array<std::uint8_t, 3> data = {7, 8, 9};
    EXPECT_EQ((*channel)->send(wire::Ipv4(198, 18, 0, 1), data), 0);
    EXPECT_EQ(library.sent_to, 0xC6120001u);
    EXPECT_EQ(library.sent_port, 18516);
    EXPECT_EQ(library.sent, (std::vector<std::uint8_t>{7, 8, 9}));
    std::array<std::uint8_t, 64> buffer{};
    EXPECT_FALSE((*channel)->receive(buffer));
    library.waiting = {1, 2};
    const auto got = (*channel)->receive(buffer);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->from, wire::Ipv4(10, 0, 0, 1));
    EXPECT_EQ(got->size, 2u);
  }
  EXPECT_EQ(library.closed, 1);
}

TEST(RoceChannel, LeavesOtherDevicesToKernelSockets) {
  library = {};
  library.open_result = EOPNOTSUPP;
  const auto channel = RoceChannel::open(nullptr, 18516, {});
  ASSERT_TRUE(channel);
  EXPECT_FALSE(*channel);
}

TEST(RoceChannel, ReportsTheReasonIfNoPortCanBeOpened) {
  library = {};
  library.open_result = ENODEV;
  const auto channel = RoceChannel::open(nullptr, 18516, {});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().status, MCAST_ERR_NO_DEVICE);
  EXPECT_NE(channel.error().text.find("a UDP port of the emulated NIC"), std::string::npos);
}

}  // namespace
}  // namespace cepheus::mcast
