// Who may speak to a replica: whoever has the fabric's key, where it has one (wire/mrp_key.h).
#pragma once

#include <optional>
#include <vector>

#include "replica/control/messages.h"
#include "wire/mrp_key.h"

namespace cepheus::replica {

class VolumeKey {
 public:
  VolumeKey() = default;  // none: tags are zeros
  explicit VolumeKey(wire::MrpKey key) : key_(std::move(key)) {}
  // From the file that $CEPHEUS_KEY_FILE names. kInvalid says what is wrong with it.
  static wire::Result<VolumeKey> from_environment();

  // Zeros for more than can be signed, which fit nothing.
  Tag tag(std::vector<std::uint8_t> covered) const;
  // Takes the same time for any wrong tag.
  bool fits(const Tag& tag, std::vector<std::uint8_t> covered) const;

 private:
  std::optional<wire::MrpKey> key_;
};

Nonce random_nonce();
std::uint64_t random_number();

}  // namespace cepheus::replica
