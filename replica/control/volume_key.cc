#include "replica/control/volume_key.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

namespace cepheus::replica {

wire::Result<VolumeKey> VolumeKey::from_environment() {
  const char* path = std::getenv("CEPHEUS_KEY_FILE");
  if (path == nullptr || *path == '\0') return VolumeKey();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open()) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      std::string("CEPHEUS_KEY_FILE: can't read ") + path);
  }
  auto key = wire::MrpKey::parse(text);
  if (!key) return wire::fail(key.error().code, std::string(path) + ": " + key.error().text);
  return VolumeKey(std::move(*key));
}

Tag VolumeKey::tag(std::vector<std::uint8_t> covered) const {
  Tag tag{};
  if (!key_) return tag;
  static_assert(sizeof(Tag) == wire::MrpKey::kTagSize);
  const std::size_t size = covered.size();
  covered.resize(size + tag.size());
  if (key_->sign(wire::Ipv4{}, covered, size) == 0) return tag;  // too long for a signature
  std::copy(covered.begin() + static_cast<std::ptrdiff_t>(size), covered.end(), tag.begin());
  return tag;
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
