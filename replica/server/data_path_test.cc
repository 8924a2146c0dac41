// A replica's memory over a fake device: how often it is registered.
#include "replica/server/data_path.h"

#include <gtest/gtest.h>

#include "libmcast/fake_device.h"

namespace cepheus::replica {
namespace {

class DataPathOverFake : public testing::Test {
 protected:
  void join(Multicast multicast = Multicast::kCepheus) {
    const auto joined = path_.join({0x0A000002, 0x500, 1}, multicast);
    ASSERT_TRUE(joined) << joined.error().text;
    keys_.push_back(joined->rkey);
    EXPECT_EQ(joined->address, reinterpret_cast<std::uintptr_t>(data_.data()));
  }

  mcast::fake::Device& device_ = mcast::fake::Device::fresh();
  std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(1 << 20);
  std::vector<std::uint32_t> keys_;
  DataPath path_{"", data_, /*maps_file=*/true};
};

// Other replicas leave and return: each change of the group is a join of this one.
TEST_F(DataPathOverFake, IsRegisteredOnceForAllJoinsOfAKillAndReturn) {
  ASSERT_TRUE(path_.open());
  for (int change = 0; change < 4; ++change) {
    join();
    path_.progress();
  }
  join(Multicast::kMcRdma);
  EXPECT_EQ(device_.registrations.size(), 1u);
  EXPECT_EQ(device_.regions, 1u);
  EXPECT_EQ(device_.opened, 1) << "groups and reads share a port";
  for (const std::uint32_t key : keys_) EXPECT_EQ(key, keys_.front());
}

TEST_F(DataPathOverFake, EndsConnectionsOfTheLastJoinWithTheNextOne) {
  join();
  ASSERT_EQ(device_.pairs.size(), 2u);
  join();
  ASSERT_EQ(device_.pairs.size(), 4u);
  EXPECT_EQ(device_.pairs[0], nullptr);
  EXPECT_EQ(device_.pairs[1], nullptr);
  path_.fence();
  EXPECT_EQ(device_.pairs[2], nullptr);
  EXPECT_EQ(device_.pairs[3], nullptr);
}

TEST_F(DataPathOverFake, RegistersAgainOnAnotherPortOnceItsOwnIsGone) {
  join();
  device_.is_up = false;
  EXPECT_FALSE(path_.join({0x0A000002, 0x500, 1}, Multicast::kCepheus));
  EXPECT_EQ(device_.regions, 0u);
  device_.is_up = true;
  join();
  EXPECT_EQ(device_.registrations.size(), 2u);
  EXPECT_EQ(device_.regions, 1u);
}

// A flush of a mapped file writes back dirty pages only, and a device's DMA makes none dirty.
TEST_F(DataPathOverFake, RefusesAMappedFileIfTheDeviceStoresByDma) {
  device_.is_emulated = false;
  device_.address = wire::Ipv4(127, 0, 0, 1);
  const auto opened = path_.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, wire::ErrorCode::kInvalid);
  EXPECT_NE(opened.error().text.find("--cache direct"), std::string::npos) << opened.error().text;
  EXPECT_EQ(device_.registrations.size(), 0u);
  DataPath own_memory("", data_, /*maps_file=*/false);
  EXPECT_TRUE(own_memory.open());
}

}  // namespace
}  // namespace cepheus::replica
