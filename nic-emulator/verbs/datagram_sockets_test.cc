#include "nic-emulator/verbs/datagram_sockets.h"

#include <gtest/gtest.h>

namespace cepheus::verbs {
namespace {

constexpr wire::Ipv4 kMe(10, 0, 0, 1);
constexpr wire::Ipv4 kPeer(10, 0, 0, 2);

class Sockets : public ::testing::Test {
 protected:
  // The payload must outlive the frame.
  static wire::Frame datagram(wire::Ipv4 to, std::uint16_t port,
                              std::span<const std::uint8_t> payload,
                              std::uint16_t from_port = 4242) {
    wire::UdpDatagram headers;
    headers.ip.source = kPeer;
    headers.ip.destination = to;
    headers.udp.source_port = from_port;
    headers.udp.destination_port = port;
    wire::Frame frame;
    headers.emit(frame, payload);
    return frame;
  }
  DatagramSockets sockets_{kMe};
  std::vector<std::uint8_t> hello_{'h', 'e', 'l', 'l', 'o'};
};

TEST_F(Sockets, DeliverToTheOpenPortWithTheSendersAddress) {
  DatagramSocket* socket = sockets_.open(18516);
  ASSERT_NE(socket, nullptr);
  sockets_.deliver(datagram(kMe, 18516, hello_));
  const Datagram* got = socket->front();
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->from, kPeer);
  EXPECT_EQ(got->from_port, 4242);
  EXPECT_EQ(std::vector(got->data.begin(), got->data.begin() + got->size), hello_);
  socket->pop();
  EXPECT_EQ(socket->front(), nullptr);
}

TEST_F(Sockets, GiveAPortToOneOwnerAtATime) {
  DatagramSocket* first = sockets_.open(7);
  EXPECT_EQ(sockets_.open(7), nullptr);
  sockets_.close(first);
  EXPECT_NE(sockets_.open(7), nullptr);
}

TEST_F(Sockets, EveryDatagramThatIsNotDeliveredIsCountedByReason) {
  DatagramSocket* socket = sockets_.open(7);
  sockets_.deliver(datagram(kMe, 8, hello_));
  EXPECT_EQ(sockets_.counters.dropped_port_closed, 1u);
  sockets_.deliver(datagram(kPeer, 7, hello_));
  EXPECT_EQ(sockets_.counters.dropped_not_mine, 1u);
  const std::vector<std::uint8_t> jumbo(kMaxDatagram + 1);
  sockets_.deliver(datagram(kMe, 7, jumbo));
  EXPECT_EQ(sockets_.counters.dropped_too_long, 1u);
  wire::Frame damaged = datagram(kMe, 7, hello_);
  damaged.bytes[wire::kIpOffset + 10] ^= 1;  // IPv4 checksum
  sockets_.deliver(damaged);
  EXPECT_EQ(sockets_.counters.dropped_malformed, 1u);
  EXPECT_EQ(socket->front(), nullptr);
}

TEST_F(Sockets, ForOneSourcePortDropOtherDatagrams) {
  DatagramSocket* socket = sockets_.open(7, 18516);
  for (std::size_t i = 0; i < DatagramSocket::kQueue + 1; ++i) {
    sockets_.deliver(datagram(kMe, 7, hello_));
  }
  EXPECT_EQ(socket->front(), nullptr);
  EXPECT_EQ(sockets_.counters.dropped_source_port, DatagramSocket::kQueue + 1);
  sockets_.deliver(datagram(kMe, 7, hello_, 18516));
  ASSERT_NE(socket->front(), nullptr);
  EXPECT_EQ(socket->front()->from_port, 18516);
}

TEST_F(Sockets, AQueueHoldsItsBoundAndDropsTheYoungest) {
  DatagramSocket* socket = sockets_.open(7);
  for (std::size_t i = 0; i < DatagramSocket::kQueue + 3; ++i) {
    const std::vector<std::uint8_t> number{static_cast<std::uint8_t>(i)};
    sockets_.deliver(datagram(kMe, 7, number));
  }
  EXPECT_EQ(sockets_.counters.dropped_queue_full, 3u);
  for (std::size_t i = 0; i < DatagramSocket::kQueue; ++i) {
    ASSERT_NE(socket->front(), nullptr);
    EXPECT_EQ(socket->front()->data[0], static_cast<std::uint8_t>(i));
    socket->pop();
  }
  EXPECT_EQ(socket->front(), nullptr);
}

}  // namespace
}  // namespace cepheus::verbs
