#include "libmcast/kernel_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace cepheus::mcast {
namespace {

constexpr wire::Ipv4 kHere(127, 0, 0, 11), kThere(127, 0, 0, 12);

// A port of its own for each run of this test.
std::uint16_t port() { return static_cast<std::uint16_t>(20000 + getpid() % 20000); }

TEST(KernelChannel, CarriesDatagramsBetweenHostAddresses) {
  auto here = KernelChannel::open(kHere, port());
  auto there = KernelChannel::open(kThere, port());
  ASSERT_TRUE(here) << here.error().text;
  ASSERT_TRUE(there) << there.error().text;
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  EXPECT_FALSE((*there)->receive(buffer));
  const std::vector<std::uint8_t> sent = {1, 2, 3};
  EXPECT_EQ((*here)->send(kThere, sent), 0);
  const auto got = (*there)->receive(buffer);  // loopback delivers before send returns
  ASSERT_TRUE(got);
  EXPECT_EQ(got->from, kHere);
  EXPECT_EQ(std::vector(buffer.begin(), buffer.begin() + static_cast<long>(got->size)), sent);
}

TEST(KernelChannel, SurvivesThatNobodyListens) {
  auto here = KernelChannel::open(kHere, port());
  ASSERT_TRUE(here);
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  EXPECT_EQ((*here)->send(kThere, buffer), 0);
  EXPECT_FALSE((*here)->receive(buffer));
}

TEST(KernelChannel, SkipsWhatIsTooLongToBeRegistration) {
  auto here = KernelChannel::open(kHere, port());
  auto there = KernelChannel::open(kThere, port());
  ASSERT_TRUE(here && there);
  (*here)->send(kThere, std::vector<std::uint8_t>(kMaxDatagram + 1));
  (*here)->send(kThere, std::vector<std::uint8_t>(7));
  std::array<std::uint8_t, kMaxDatagram> buffer{};
  const auto got = (*there)->receive(buffer);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size, 7u);
}

TEST(KernelChannel, SaysWhoHasThePort) {
  auto first = KernelChannel::open(kHere, port());
  ASSERT_TRUE(first);
  const auto second = KernelChannel::open(kHere, port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().status, MCAST_ERR_BUSY);
  EXPECT_THAT(second.error().text, ::testing::HasSubstr("another process of this host"));
}

}  // namespace
}  // namespace cepheus::mcast
