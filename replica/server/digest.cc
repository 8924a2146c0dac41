#include "replica/server/digest.h"

#include <openssl/evp.h>

#include <algorithm>

namespace cepheus::replica {

Digest digest_of(std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> whole{};
  unsigned size = 0;
  // Fails only where there is no memory: zeros, which no bytes have.
  if (EVP_Digest(bytes.data(), bytes.size(), whole.data(), &size, EVP_sha256(), nullptr) != 1) {
    whole.fill(0);
  }
  Digest digest;
  std::copy_n(whole.begin(), digest.size(), digest.begin());
  return digest;
}

}  // namespace cepheus::replica
