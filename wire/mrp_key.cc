// The covered bytes are put together on the stack, so a message has at most kMostMessage bytes. A
// tag is the digest's first kTagSize bytes, compared in constant time. A key with an odd number of
// digits or fewer than 32 is refused. Errors never quote the key. Source: RFC 2104.
#include "wire/mrp_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <fstream>

#include "wire/byte_order.h"

namespace cepheus::wire {
namespace {

constexpr std::size_t kSha256 = 32;
constexpr std::size_t kMostMessage = 2048;

using Digest = std::array<std::uint8_t, kSha256>;

std::optional<Digest> digest_of(std::span<const std::uint8_t> key, Ipv4 source,
                                std::span<const std::uint8_t> message) {
  std::array<std::uint8_t, 4 + kMostMessage> covered;
  if (message.size() > kMostMessage) return std::nullopt;
  store_be32(covered.data(), source.value());
  std::memcpy(covered.data() + 4, message.data(), message.size());
  Digest digest;
  unsigned length = 0;
  const bool made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), covered.data(),
                         4 + message.size(), digest.data(), &length) != nullptr;
  return made && length == kSha256 ? std::optional(digest) : std::nullopt;
}

}  // namespace

Result<MrpKey> MrpKey::parse(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](unsigned char c) { return std::isspace(c) != 0; });
  if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return invalid("a key is hexadecimal digits: make one with `openssl rand -hex 32`");
  }
  if (digits.size() % 2 != 0 || digits.size() < 2 * kMinBytes) {
    return invalid(
        "a key has an even number of hexadecimal digits, 32 or more: make one with "
        "`openssl rand -hex 32`");
  }
  std::vector<std::uint8_t> bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::from_chars(&digits[2 * i], &digits[2 * i] + 2, bytes[i], 16);
  }
  return MrpKey(std::move(bytes));
}

Result<MrpKey> MrpKey::read(const std::string& path, const std::string& unreadable) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  if (!file.is_open() || file.bad()) return invalid(unreadable);  // bad: a directory, for example
  auto key = parse(text);
  if (!key) return invalid(path + ": " + key.error().text);
  return key;
}

std::optional<MrpKey::Tag> MrpKey::tag(Ipv4 source, std::span<const std::uint8_t> message) const {
  const auto digest = digest_of(bytes_, source, message);
  if (!digest) return std::nullopt;
  Tag tag;
  std::copy_n(digest->begin(), tag.size(), tag.begin());
  return tag;
}

std::size_t MrpKey::sign(Ipv4 source, std::span<std::uint8_t> buffer, std::size_t size) const {
  if (buffer.size() < kTagSize || size > buffer.size() - kTagSize) return 0;
  const auto made = tag(source, buffer.first(size));
  if (!made) return 0;
  std::memcpy(buffer.data() + size, made->data(), kTagSize);
  return size + kTagSize;
}

std::optional<std::span<const std::uint8_t>> MrpKey::verify(
    Ipv4 source, std::span<const std::uint8_t> datagram) const {
  if (datagram.size() < MrpHeader::kSize + kTagSize) return std::nullopt;
  const auto message = datagram.first(datagram.size() - kTagSize);
  const auto digest = digest_of(bytes_, source, message);
  if (!digest || CRYPTO_memcmp(digest->data(), datagram.data() + message.size(), kTagSize) != 0) {
    return std::nullopt;
  }
  return message;
}

}  // namespace cepheus::wire
