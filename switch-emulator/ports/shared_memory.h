// Memory that two processes share: a sealed memfd and its mappings.
//
// The seals (no shrinking, no growing, no further seals) make a mapping safe to read: without them
// the other side could truncate the file, and every access would end in SIGBUS. Both sides check
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::fabric {

inline constexpr std::uint32_t kCacheLine = 64;  // bytes

// A zeroed, sealed, close-on-exec memfd of `bytes` bytes; `name` appears in /proc/PID/maps.
wire::Result<UniqueFd> create_shared_memory(const char* name, std::size_t bytes);

// One mapping of a shared file; unmapped with the object.
class Mapping {
 public:
  enum class Access { kRead, kReadWrite };

  Mapping() = default;
  // Refuses a file that is not sealed or ends before offset + bytes. `offset` is a multiple of the
  // page size.
  static wire::Result<Mapping> map(int fd, std::size_t offset, std::size_t bytes, Access access);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  // Replaces the shared bytes by private zeros.
  void isolate();

 private:
  Mapping(std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  void unmap();

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

std::size_t round_up_to_page(std::size_t bytes);

}  // namespace cepheus::fabric
