#include "replica/control/volume_key.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace cepheus::replica {

wire::Result<VolumeKey> VolumeKey::from_environment() {
  const char* path = std::getenv("CEPHEUS_KEY_FILE");
  if (path == nullptr || *path == '\0') return VolumeKey();
  return wire::MrpKey::read(path, std::string("CEPHEUS_KEY_FILE: can't read ") + path)
      .map([](wire::MrpKey key) { return VolumeKey(std::move(key)); });
}

Tag VolumeKey::tag(std::span<const std::uint8_t> covered) const {
  return key_ ? key_->tag(wire::Ipv4{}, covered).value_or(Tag{}) : Tag{};
}

bool VolumeKey::fits(const Tag& tag, std::vector<std::uint8_t> covered) const {
  if (!key_) return tag == Tag{};
  covered.insert(covered.end(), tag.begin(), tag.end());
  return key_->verify(wire::Ipv4{}, covered).has_value();
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

Nonce random_nonce() {
  Nonce nonce;
  std::random_device random;
  for (std::uint8_t& byte : nonce) byte = static_cast<std::uint8_t>(random());
  return nonce;
}

}  // namespace cepheus::replica
