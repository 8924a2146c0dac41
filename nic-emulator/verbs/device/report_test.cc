#include "nic-emulator/verbs/device/report.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>

namespace cepheus::verbs {
namespace {

constexpr std::size_t kLength = 100;

bool is_other_memory_intact = false;
std::string seen;

// Created before the thread's first error, so it is destroyed after the object that holds the
// error.
struct EndsLast {
  const std::string text = std::string(kLength, 'e');
  ~EndsLast() {
    const auto other = std::make_unique<char[]>(kLength + 1);  // reuses freed memory
    std::memset(other.get(), 'x', kLength);
    set_last_error(text);
    seen = last_error();
    is_other_memory_intact = std::string(other.get(), kLength) == std::string(kLength, 'x');
  }
};

TEST(LastError, MayBeSetAtTheEndOfItsThread) {
  std::thread([] {
    thread_local const EndsLast ends_last;
    set_last_error(ends_last.text);
  }).join();
  EXPECT_TRUE(is_other_memory_intact);
  EXPECT_EQ(seen, std::string(kLength, 'e'));
}

TEST(LastError, IsTruncatedIfTooLong) {
  set_last_error(std::string(5000, 'e'));
  const std::string text = last_error();
  EXPECT_GE(text.size(), 500u);
  EXPECT_LT(text.size(), 5000u);
  EXPECT_EQ(text, std::string(text.size(), 'e'));
}

}  // namespace
}  // namespace cepheus::verbs
