#include "replica/server/volume_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "replica/server/record_file.h"

namespace cepheus::replica {
namespace {

wire::Error failed(const std::string& path, int error) {
  return {wire::ErrorCode::kFailed, path + ": " + std::strerror(error)};
}

}  // namespace

wire::Result<void> VolumeFile::create(const std::string& path, std::uint64_t size) {
  const wire::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return tl::unexpected(failed(path, errno));
  int error = posix_fallocate(file.get(), 0, static_cast<off_t>(size));
  if (error == 0 && fsync(file.get()) != 0) error = errno;
  if (error == 0) error = synchronise_directory_of(path);
  if (error != 0) {
    unlink(path.c_str());
    return tl::unexpected(failed(path, error));
  }
  return {};
}

wire::Result<VolumeFile> VolumeFile::open(const std::string& path, std::uint64_t size) {
  wire::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(failed(path, errno));
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return tl::unexpected(failed(path, errno));
    return wire::fail(wire::ErrorCode::kRefused,
                      path + " is served by another process: end it first");
  }
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return tl::unexpected(failed(path, errno));
  if (static_cast<std::uint64_t>(found.st_size) != size) {
    return wire::fail(wire::ErrorCode::kInvalid, path + " has " + std::to_string(found.st_size) +
                                                     " bytes, its record says " +
                                                     std::to_string(size));
  }
  if (const int error = posix_fallocate(file.get(), 0, found.st_size)) {
    return tl::unexpected(failed(path, error));
  }
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return tl::unexpected(failed(path, errno));
  return VolumeFile(std::move(file), {static_cast<std::uint8_t*>(at), size});
}

VolumeFile::~VolumeFile() {
  if (!data_.empty()) munmap(data_.data(), data_.size());
}

int VolumeFile::flush() const {
  if (msync(data_.data(), data_.size(), MS_SYNC) != 0) return errno;
  return fdatasync(file_.get()) == 0 ? 0 : errno;
}

}  // namespace cepheus::replica
