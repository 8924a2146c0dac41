// A file is created, sized, and then sealed, so its size never changes (memfd_create(2),
// F_ADD_SEALS). map() refuses an unsealed or too small one before it maps anything. isolate() maps
// private zeros over the same addresses, so pointers stay valid in a forked child.
#include "switch-emulator/ports/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "wire/remedy.h"

namespace cepheus::fabric {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

wire::Result<UniqueFd> create_shared_memory(const char* name, std::size_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return wire::call_failed("can't create shared memory (memfd_create)");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    return wire::unavailable("can't size shared memory to " + std::to_string(bytes) +
                             " bytes: " + std::strerror(error) + wire::remedy(error));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return wire::call_failed("can't seal shared memory");
  }
  return fd;
}

wire::Result<Mapping> Mapping::map(int fd, std::size_t offset, std::size_t bytes, Access access) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return wire::fail(wire::ErrorCode::kRefused, "shared memory from the other side is not sealed");
  }
  struct stat file {};
  if (fstat(fd, &file) != 0) return wire::call_failed("can't examine shared memory");
  const auto size = static_cast<std::size_t>(file.st_size);
  if (bytes == 0 || offset > size || bytes > size - offset) {
    return wire::fail(wire::ErrorCode::kRefused, "shared memory from the other side is too small");
  }
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return wire::call_failed("can't map shared memory");
  return Mapping(static_cast<std::uint8_t*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Mapping::~Mapping() { unmap(); }

void Mapping::isolate() {
  if (data_ == nullptr) return;
  mmap(data_, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void Mapping::unmap() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

std::size_t round_up_to_page(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace cepheus::fabric
