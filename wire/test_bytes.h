// For tests of codecs and of code that reads bytes: messages, and their bytes.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/frame.h"
#include "wire/mrp.h"

namespace cepheus::wire {

// Of the leader's first process and the group's first registration.
inline MrpMessage mrp_message(MrpType type, McstId group) {
  MrpMessage message;
  message.header = {type, 0, 1, 0, 1, group, 1};
  return message;
}

// All bytes of a frame, Ethernet header to ICRC. Bytes that to_bytes() leaves alone would be seen.
inline std::vector<std::uint8_t> bytes_of(const Frame& frame) {
  std::vector<std::uint8_t> bytes(frame.size(), 0xA5);
  EXPECT_EQ(frame.to_bytes(bytes), bytes.size());
  return bytes;
}

// A message of registration; bytes that emit() leaves alone would be seen.
template <typename Message>
std::vector<std::uint8_t> bytes_of(const Message& message) {
  std::vector<std::uint8_t> bytes(MrpMessage::kMaxDatagram, 0xA5);
  bytes.resize(message.emit(bytes));
  return bytes;
}

// The same of a header.
template <typename Header>
std::array<std::uint8_t, Header::kSize> header_bytes(const Header& header) {
  std::array<std::uint8_t, Header::kSize> bytes;
  bytes.fill(0xA5);
  header.emit(bytes);
  return bytes;
}

// Copies `bytes` with another value in one place.
template <typename Bytes>
Bytes with(Bytes bytes, std::size_t at, std::uint8_t value) {
  bytes[at] = value;
  return bytes;
}

// No beginning of `bytes` may parse.
template <typename Parsed>
void expect_refused_if_short(std::span<const std::uint8_t> bytes) {
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Parsed::parse(bytes.first(n))) << n;
  }
}

}  // namespace cepheus::wire
