#include "replica/server/digest.h"

#include <openssl/evp.h>

#include <algorithm>

namespace cepheus::replica {

Digest digest_of(std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> whole{};
  unsigned size = 0;
  // Fails only without memory: then zeros, which are no digest.
  if (EVP_Digest(bytes.data(), bytes.size(), whole.data(), &size, EVP_sha256(), nullptr) != 1) {
    whole.fill(0);
  }
  Digest digest;
  std::copy_n(whole.begin(), digest.size(), digest.begin());
  return digest;
}

void make_digests(Digests& digests, std::span<const std::uint8_t> data) {
  auto left = data.subspan(digests.request.offset, digests.request.length);
  while (!left.empty()) {
    const std::size_t size = std::min<std::size_t>(left.size(), digests.request.unit);
    digests.digests.push_back(digest_of(left.first(size)));
    left = left.subspan(size);
  }
}

}  // namespace cepheus::replica
