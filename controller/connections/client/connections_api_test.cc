#include <cepheus/connections.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

bool is_other_memory_intact = false;
std::string last, seen;

// Made before the thread's first error, so it is destroyed after the error.
struct EndsLast {
  const char* name = "";
  ~EndsLast() {
    const std::string other(last.size(), 'x');  // takes memory that has been freed
    (void)cepheus_cmd_open(nullptr, nullptr);
    seen = cepheus_cmd_last_error();
    is_other_memory_intact = other.find_first_not_of('x') == std::string::npos;
  }
};

TEST(ConnectionsLastError, MayBeSetByWhatEndsWithItsThread) {
  std::thread([] {
    thread_local EndsLast ends_last;
    ends_last.name = "this thread's";
    (void)cepheus_cmd_open(nullptr, nullptr);
    last = cepheus_cmd_last_error();
  }).join();
  EXPECT_EQ(last, "out is NULL: name where to put it");
  EXPECT_EQ(seen, last);
  EXPECT_TRUE(is_other_memory_intact);
}

}  // namespace
