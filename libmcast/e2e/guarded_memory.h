// Whole pages between two guard pages: a write beside them ends the process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <system_error>

namespace cepheus::mcast::e2e {

class GuardedMemory {
 public:
  static constexpr std::uint8_t kUntouched = 0xEE;

  // At least `size` bytes, rounded up to pages, all kUntouched.
  explicit GuardedMemory(std::size_t size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t pages = (size + page - 1) / page * page;
    all_ = pages + 2 * page;
    void* at = mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    base_ = static_cast<std::uint8_t*>(at);
    memory_ = {base_ + page, pages};
    if (mprotect(memory_.data(), pages, PROT_READ | PROT_WRITE) != 0) {
      throw std::system_error(errno, std::generic_category(), "mprotect");
    }
    std::fill(memory_.begin(), memory_.end(), kUntouched);
  }
  ~GuardedMemory() { munmap(base_, all_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::span<std::uint8_t> bytes() const { return memory_; }

 private:
  std::uint8_t* base_;
  std::size_t all_;
  std::span<std::uint8_t> memory_;
};

}  // namespace cepheus::mcast::e2e
