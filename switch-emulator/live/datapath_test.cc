// Whose eyes see what passes through a datapath.
#include "switch-emulator/live/datapath.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "switch-emulator/live/test_datapath.h"

namespace cepheus::live {
namespace {

using fabric::BareClient;
using fabric::Descriptor;

constexpr std::uint8_t kSecret = 0xC7;

net::LinkConfig slow_link() {
  net::LinkConfig link;
  link.delay = std::chrono::milliseconds(1);
  return link;
}

bool contains(std::span<const std::uint8_t> memory, std::span<const std::uint8_t> secret) {
  return std::search(memory.begin(), memory.end(),
                     std::boyer_moore_horspool_searcher(secret.begin(), secret.end())) !=
         memory.end();
}

// Under way on a slow link, a payload lies somewhere: not where a third user's clients can read it.
TEST_F(DatapathTest, KeepsPayloadsUnderWayFromOtherUsers) {
  build(net::Topology::star(3, slow_link()));
  const BareClient third = attach(2, 1002);  // the first user's pool is the first
  BareClient sender = attach(0, 1000), receiver = attach(1, 1001);
  const std::vector<std::uint8_t> secret(600, kSecret);
  sender.put(plain_datagram(0, 1, secret), *sender.take_slot());
  poll_for(std::chrono::milliseconds(5));
  const auto got = receiver.take();
  ASSERT_TRUE(got);
  ASSERT_NE(got->payload, Descriptor::kInline);
  EXPECT_TRUE(contains({receiver.pool.data() + got->payload, got->payload_len}, secret));
  EXPECT_FALSE(contains({third.pool.data(), third.pool.size()}, secret));
}

TEST_F(DatapathTest, KeepsDamagedPayloadsFromOtherUsers) {
  net::LinkConfig link = slow_link();
  link.corrupt = 1;
  build(net::Topology::star(3, link));
  const BareClient third = attach(2, 1002);
  BareClient sender = attach(0, 1000);
  const BareClient receiver = attach(1, 1001);
  const std::vector<std::uint8_t> secret(600, kSecret);
  for (int n = 0; n < 8; ++n) sender.put(plain_datagram(0, 1, secret), *sender.take_slot());
  poll_for(std::chrono::milliseconds(5));
  // All but the bit that was turned over.
  EXPECT_FALSE(contains({third.pool.data(), third.pool.size()}, std::span(secret).first(200)));
}

}  // namespace
}  // namespace cepheus::live
