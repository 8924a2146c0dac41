#include "nic-emulator/verbs/device/device_files.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cepheus::verbs {
namespace {

using Kind = DeviceFile::Kind;

class Files : public ::testing::Test {
 protected:
  Files() { ::setenv("CEPHEUS_FABRIC", "/nowhere/fabric", 1); }
  ~Files() override { ::unsetenv("CEPHEUS_FABRIC"); }
  static std::optional<Kind> kind(const char* path) {
    const auto file = find_device_file(path);
    return file ? std::optional(file->kind) : std::nullopt;
  }
};

TEST_F(Files, AreTheDeviceItsDirectoriesAndItsTexts) {
  EXPECT_EQ(kind("/dev/infiniband/uverbs_cepheus0"), Kind::kCharacterDevice);
  EXPECT_EQ(kind("/sys/class/infiniband/cepheus0"), Kind::kDirectory);
  EXPECT_EQ(kind("/sys/class/infiniband/cepheus0/"), Kind::kDirectory);
  EXPECT_EQ(kind("/sys/class/infiniband/cepheus0/ports/1"), Kind::kDirectory);
  const auto type = find_device_file("/sys/class/infiniband/cepheus0/ports/1/gid_attrs/types/0");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->text, "RoCE v2\n");
  EXPECT_EQ(find_device_file("/sys/class/infiniband_verbs/uverbs_cepheus0/ibdev")->text,
            "cepheus0\n");
}

TEST_F(Files, OfOtherPathsAreNotTheDevices) {
  for (const char* path : {"/sys/class/infiniband/cepheus01", "/sys/class/infiniband/mlx5_0",
                           "/sys/class/infiniband/cepheus0/ports/2", "/etc/passwd", "relative", "",
                           "/sys/class/infiniband/cepheus0/ports/1/gid_attrs/types/1"}) {
    EXPECT_EQ(kind(path), std::nullopt) << path;
  }
  EXPECT_EQ(kind(nullptr), std::nullopt);
}

TEST_F(Files, OfIdentityNeedAFabric) {
  EXPECT_EQ(kind("/sys/class/infiniband/cepheus0/node_guid"), std::nullopt);
}

TEST_F(Files, AreMissingWithoutAFabric) {
  ::unsetenv("CEPHEUS_FABRIC");
  EXPECT_EQ(kind("/dev/infiniband/uverbs_cepheus0"), std::nullopt);
  EXPECT_EQ(kind("/sys/class/infiniband/cepheus0"), std::nullopt);
}

}  // namespace
}  // namespace cepheus::verbs
