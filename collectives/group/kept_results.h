// The results of a group's last units, for members that lack some after a failure, and those of the units
// under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cepheus::coll {

class KeptResults {
 public:
  explicit KeptResults(std::size_t units) : results_(units) {}

  // All of up to `bytes`: none allocates later.
  void reserve(std::size_t bytes) {
    for (std::vector<std::byte>& each : results_) each.reserve(sizeof(Header) + bytes);
  }
  // Memory for a unit's result, in the place of the oldest one.
  std::byte* prepare(std::uint32_t generation, std::uint64_t unit, std::size_t bytes) {
    std::vector<std::byte>& message = message_of(unit);
    message.resize(sizeof(Header) + bytes);
    const Header header{generation, unit};
    std::memcpy(message.data(), &header, sizeof header);
    return message.data() + sizeof header;
  }
  std::byte* result(std::uint64_t unit) { return message_of(unit).data() + sizeof(Header); }
  // The result as it travels to another member, with its name in front.
  std::vector<std::byte>& message_of(std::uint64_t unit) {
    return results_[static_cast<std::size_t>(unit % results_.size())];
  }
  // That message is this unit's.
  bool has(std::uint32_t generation, std::uint64_t unit) {
    Header header{};
    std::memcpy(&header, message_of(unit).data(), sizeof header);
    return header.generation == generation && header.unit == unit;
  }

 private:
  struct Header {
    std::uint64_t generation, unit;
  };

  std::vector<std::vector<std::byte>> results_;
};

}  // namespace cepheus::coll
