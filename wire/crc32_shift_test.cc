#include "wire/crc32_shift.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace cepheus::wire {
namespace {

// The definition: bit by bit, zeros included.
std::uint32_t reference(std::vector<std::uint8_t> message, std::size_t zeros) {
  message.resize(message.size() + zeros);
  std::uint32_t crc = 0;
  for (const std::uint8_t byte : message) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return crc;
}

void expect_reference(const std::vector<std::uint8_t>& bytes, std::size_t zeros) {
  const std::uint32_t expected = reference(bytes, zeros);
  RC_ASSERT(crc32_shift(bytes, zeros) == expected);
  RC_ASSERT(crc32_shift_portable(bytes, zeros) == expected);
}

RC_GTEST_PROP(Crc32Shift, EqualsTheDefinition, (const std::vector<std::uint8_t>& bytes)) {
  expect_reference(bytes, *rc::gen::inRange<std::size_t>(0, 4097));
}

RC_GTEST_PROP(Crc32Shift, EqualsTheDefinitionBeyondItsTable, ()) {
  const auto length = *rc::gen::inRange<std::size_t>(100, 700);
  const auto bytes =
      *rc::gen::container<std::vector<std::uint8_t>>(length, rc::gen::arbitrary<std::uint8_t>());
  expect_reference(bytes, *rc::gen::inRange<std::size_t>(4000, 20000));
}

TEST(Crc32Shift, IsRightAtEverySmallLength) {
  std::vector<std::uint8_t> bytes;
  for (std::uint8_t n = 0; n <= 140; ++n) {
    for (const std::size_t zeros : {0, 1, 2, 3, 4, 5, 4095, 4096, 4097, 8191, 8192, 65535}) {
      ASSERT_EQ(crc32_shift(bytes, zeros), reference(bytes, zeros)) << int{n} << " + " << zeros;
      ASSERT_EQ(crc32_shift_portable(bytes, zeros), reference(bytes, zeros))
          << int{n} << " + " << zeros;
    }
    bytes.push_back(static_cast<std::uint8_t>(n * 37 + 1));
  }
}

}  // namespace
}  // namespace cepheus::wire
