#include "replica/control/volume_key.h"

#include <gtest/gtest.h>

namespace cepheus::replica {
namespace {

VolumeKey key_of(const char* hex) { return VolumeKey(*wire::MrpKey::parse(hex)); }

const char kOne[] = "000102030405060708090a0b0c0d0e0f";
const char kOther[] = "000102030405060708090a0b0c0d0e10";

TEST(VolumeKey, FitsItsOwnTagsOnly) {
  const Nonce nonce = random_nonce();
  VolumeHello hello;
  hello.volume = "v";
  const Tag tag = key_of(kOne).tag(covered(nonce, hello));
  EXPECT_TRUE(key_of(kOne).fits(tag, covered(nonce, hello)));
  EXPECT_FALSE(key_of(kOther).fits(tag, covered(nonce, hello)));
  EXPECT_FALSE(VolumeKey().fits(tag, covered(nonce, hello)));
  EXPECT_FALSE(key_of(kOne).fits(VolumeKey().tag(covered(nonce, hello)), covered(nonce, hello)));
  // A recorded greeting fits no other connection and no other place.
  EXPECT_FALSE(key_of(kOne).fits(tag, covered(random_nonce(), hello)));
  hello.place = 1;
  EXPECT_FALSE(key_of(kOne).fits(tag, covered(nonce, hello)));
}

TEST(VolumeKey, ALongNameDoesNotBypassTheKey) {
  VolumeHello hello;
  hello.volume.assign(60'000, 'v');  // longer than the limit of signatures
  const Tag zeros{};
  EXPECT_FALSE(key_of(kOne).fits(zeros, covered(random_nonce(), hello)));
}

}  // namespace
}  // namespace cepheus::replica
