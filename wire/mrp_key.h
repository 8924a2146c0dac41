// Authentication of registration: HMAC-SHA256 with a key that the fabric's switches and members
// share.
//
//   signed datagram = MRP message, then 20 bytes of the HMAC over (source IPv4, message)
//
// The message's own length does not count the signature: a process without a key refuses signed
// datagrams as malformed, and one with a key refuses unsigned ones. A switch signs again all that
// it splits, merges or passes on.
//
// The signature covers (McstID, epoch, leader instance). A replay within its registration only
// repeats an idempotent message. A replay from another host has the wrong source. A replay of a
// past registration meets a tombstone or another epoch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/mrp.h"
#include "wire/result.h"

namespace cepheus::wire {

class MrpKey {
 public:
  static constexpr std::size_t kTagSize = MrpMessage::kSignatureSize;
  static constexpr std::size_t kMinBytes = 16;

  // The content of a key file: at least 32 hexadecimal digits, white space ignored. kInvalid, with
  // the remedy, otherwise.
  static Result<MrpKey> parse(std::string_view text);
  // ... of the file itself; kInvalid with the text `unreadable` if it can't be read.
  static Result<MrpKey> read(const std::string& path, const std::string& unreadable);

  using Tag = std::array<std::uint8_t, kTagSize>;
  // Empty if the message is too long for a signature.
  std::optional<Tag> tag(Ipv4 source, std::span<const std::uint8_t> message) const;
  // Appends the tag to the first `size` bytes of `buffer`, the message. Returns the size of both,
  // or 0 if the buffer is too small.
  std::size_t sign(Ipv4 source, std::span<std::uint8_t> buffer, std::size_t size) const;
  // The message without its tag; empty if the tag is missing or wrong. Constant time over wrong
  // tags.
  std::optional<std::span<const std::uint8_t>> verify(Ipv4 source,
                                                      std::span<const std::uint8_t> datagram) const;

 private:
  explicit MrpKey(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::uint8_t> bytes_;
};

}  // namespace cepheus::wire
