// Authentication of registration: HMAC-SHA256 with a key that the fabric's switches and members
// share.
//
//   signed datagram = MRP message, then 20 bytes of the HMAC over (source IPv4, message)
//
// The message's own length does not count it: who has no key refuses a signed datagram as
// malformed, and who has one refuses everything that is not signed. A switch signs again what it
// splits, merges or passes on. What is signed names (McstID, epoch, leader instance): a replay in
// the same registration repeats what is idempotent, one from another host carries the wrong source,
// one of a past registration meets its tombstone or another epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wire/mrp.h"
#include "wire/result.h"

namespace cepheus::wire {

class MrpKey {
 public:
  static constexpr std::size_t kTagSize = MrpMessage::kSignatureSize;
  static constexpr std::size_t kMinBytes = 16;

  // A key file's content: at least 32 hexadecimal digits, white space ignored. kInvalid, with what
  // to do, if it is not.
  static Result<MrpKey> parse(std::string_view text);

  // Appends the tag to the `size` bytes of message at the beginning of `buffer`; the size of both,
  // or 0 if the buffer is too small.
  std::size_t sign(Ipv4 source, std::span<std::uint8_t> buffer, std::size_t size) const;
  // The message without its tag; empty if the tag is missing or wrong. Takes the same time for any
  // wrong tag.
  std::optional<std::span<const std::uint8_t>> verify(Ipv4 source,
                                                      std::span<const std::uint8_t> datagram) const;

 private:
  explicit MrpKey(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  std::vector<std::uint8_t> bytes_;
};

}  // namespace cepheus::wire
