// Proves that a peer has the fabric's key, if the fabric has one (wire/mrp_key.h).
#pragma once

#include <optional>
#include <vector>

#include "replica/control/messages.h"
#include "wire/mrp_key.h"

namespace cepheus::replica {

class VolumeKey {
 public:
  VolumeKey() = default;  // no key: tags are zeros
  explicit VolumeKey(wire::MrpKey key) : key_(std::move(key)) {}
  // From the file in $CEPHEUS_KEY_FILE. kInvalid: the error names the problem.
  static wire::Result<VolumeKey> from_environment();

  // Zeros for bytes beyond the limit of signatures; they fit no message.
  Tag tag(std::span<const std::uint8_t> covered) const;
  // Takes the same time for any wrong tag.
  bool fits(const Tag& tag, std::vector<std::uint8_t> covered) const;

 private:
  std::optional<wire::MrpKey> key_;
};

Nonce random_nonce();
std::uint64_t random_number();

}  // namespace cepheus::replica
