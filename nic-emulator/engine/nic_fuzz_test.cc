// The fuzzer's inputs without a fuzzer: random bytes in the ordinary tests, on every compiler.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kInputs = 10000;
constexpr std::size_t kLargestInput = 4000;

// Known opcodes and short lengths, so that most of an input reaches the engine.
std::vector<std::uint8_t> input(std::mt19937_64& random) {
  constexpr std::uint8_t kServices[] = {0x00, 0x00, 0x20, 0x60};
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < kLargestInput && random() % 64 != 0) {
    const std::size_t length = random() % 80;
    bytes.push_back(static_cast<std::uint8_t>(random()));
    bytes.push_back(static_cast<std::uint8_t>(random()));
    bytes.push_back(0);
    bytes.push_back(static_cast<std::uint8_t>(length));
    for (std::size_t i = 0; i < length; ++i) bytes.push_back(static_cast<std::uint8_t>(random()));
    if (length > 0) {
      bytes[bytes.size() - length] =
          static_cast<std::uint8_t>(kServices[random() % 4] | random() % 0x18);
    }
  }
  return bytes;
}

TEST(NicFuzz, InvariantsHoldForAnyPacketsAndPosts) {
  for (std::uint64_t seed = 1; seed <= kInputs; ++seed) {
    std::mt19937_64 random(seed);
    const auto bytes = input(random);
    ASSERT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0) << "seed " << seed;
  }
}

}  // namespace
