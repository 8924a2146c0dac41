#include "libmcast/kernel_channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace cepheus::mcast {
namespace {

constexpr wire::Ipv4 kHere(127, 0, 0, 11), kThere(127, 0, 0, 12);

constexpr wire::Ipv4 kSwitch(127, 0, 0, 13);

// The registration port: one for each run of this test, below those that the kernel gives away.
std::uint16_t mrp_port() { return static_cast<std::uint16_t>(10000 + getpid() % 20000); }

// A socket at the registration port, as a host's switch speaks.
class FakeSwitch {
 public:
  FakeSwitch(wire::Ipv4 address, std::uint16_t port)
      : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const int one = 1;
    EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &one, sizeof one), 0);
    const sockaddr_in own = name(address, port);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  }
  ~FakeSwitch() { close(fd_); }
  void send(wire::Ipv4 to, std::uint16_t port, const std::vector<std::uint8_t>& bytes) {
    const sockaddr_in a = name(to, port);
    EXPECT_EQ(
        sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&a), sizeof a),
        static_cast<ssize_t>(bytes.size()));
  }
  // From which port the next datagram came; 0: there is none.
  std::uint16_t receive() {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    std::uint8_t byte = 0;
    const auto n = recvfrom(fd_, &byte, 1, 0, reinterpret_cast<sockaddr*>(&from), &length);
    return n < 0 ? std::uint16_t{0} : ntohs(from.sin_port);
  }

  // The TOS of the next datagram; -1: there is none.
  int receive_tos() {
    std::uint8_t byte = 0;
    alignas(cmsghdr) std::array<char, 64> control{};
    iovec piece{&byte, 1};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd_, &message, 0) < 0) return -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    return header != nullptr && header->cmsg_type == IP_TOS ? *CMSG_DATA(header) : -1;
  }

 private:
  static sockaddr_in name(wire::Ipv4 address, std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(address.value());
    a.sin_port = htons(port);
    return a;
  }
  const int fd_;
};

TEST(KernelChannel, SpeaksToTheRegistrationPortFromOneOfItsOwn) {
  FakeSwitch there(kThere, mrp_port());
  auto here = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(here) << here.error().text;
  EXPECT_NE((*here)->port(), 0);
  EXPECT_EQ((*here)->send(kThere, std::vector<std::uint8_t>{1, 2, 3}), 0);
  EXPECT_EQ(there.receive(), (*here)->port());  // loopback delivers before send returns
}

TEST(KernelChannel, MarksItsDatagramsAsTheGroupsData) {
  FakeSwitch there(kThere, mrp_port());
  auto here = KernelChannel::open(kHere, mrp_port(), {.traffic_class = 106});
  ASSERT_TRUE(here) << here.error().text;
  EXPECT_EQ((*here)->send(kThere, std::vector<std::uint8_t>{1}), 0);
  EXPECT_EQ(there.receive_tos(), 104) << "without ECN: no queue may mark them";
}

TEST(KernelChannel, ReceivesOnlyFromTheRegistrationPort) {
  FakeSwitch the_switch(kSwitch, mrp_port());
  FakeSwitch stranger(kSwitch, 0);
  auto here = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(here);
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  EXPECT_FALSE((*here)->receive(buffer));
  stranger.send(kHere, (*here)->port(), {9});
  the_switch.send(kHere, (*here)->port(), {1, 2, 3});
  const auto got = (*here)->receive(buffer);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->from, kSwitch);
  EXPECT_EQ(std::vector(buffer.begin(), buffer.begin() + static_cast<long>(got->size)),
            (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_FALSE((*here)->receive(buffer));
}

// They would fill the socket's buffer, and a computing program looks four times a second.
TEST(KernelChannel, HasNoPlaceForStrangersDatagrams) {
  FakeSwitch the_switch(kSwitch, mrp_port());
  FakeSwitch stranger(kSwitch, 0);
  auto here = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(here);
  for (int i = 0; i < 1000; ++i) stranger.send(kHere, (*here)->port(), {9});
  the_switch.send(kHere, (*here)->port(), {1, 2, 3});
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  const auto got = (*here)->receive(buffer);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size, 3u);
}

TEST(KernelChannel, SurvivesThatNobodyListens) {
  auto here = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(here);
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  EXPECT_EQ((*here)->send(kThere, buffer), 0);
  EXPECT_FALSE((*here)->receive(buffer));
}

TEST(KernelChannel, SkipsWhatIsTooLongToBeRegistration) {
  FakeSwitch the_switch(kSwitch, mrp_port());
  auto here = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(here);
  the_switch.send(kHere, (*here)->port(), std::vector<std::uint8_t>(kMaxDatagram + 1));
  the_switch.send(kHere, (*here)->port(), std::vector<std::uint8_t>(7));
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  const auto got = (*here)->receive(buffer);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size, 7u);
}

TEST(KernelChannel, IsOpenedByEveryProcessOfAHost) {
  const auto first = KernelChannel::open(kHere, mrp_port(), {});
  const auto second = KernelChannel::open(kHere, mrp_port(), {});
  ASSERT_TRUE(first && second);
  EXPECT_NE((*first)->port(), (*second)->port());
}

}  // namespace
}  // namespace cepheus::mcast
