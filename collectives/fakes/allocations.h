// Allocations of the code under test. Those of the fakes are not counted.
#pragma once

#include <cstddef>

namespace cepheus::coll::fake {

// Allocations while they were counted, since the program began.
std::size_t allocations();
// Bytes of all that is allocated now.
std::size_t held_bytes();
// True: allocations with std::nothrow fail.
void make_memory_scarce(bool is_scarce);

// While one is in scope, allocations are counted, or not. They are not where there is none.
class Counting {
 public:
  explicit Counting(bool on);
  ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  const bool before_;
};

}  // namespace cepheus::coll::fake
