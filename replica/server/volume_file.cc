// open() refuses a file of another size, one that another process serves (flock(2)), and for
// kDirect one that is no multiple of kDirectBlock. It allocates missing blocks, maps the file or
// reads it into own memory, and never changes a byte. flush() of a mapped file is msync(2) of all
// of it; of a direct file it writes the given chunks. Both end with fdatasync(2).
#include "replica/server/volume_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "replica/server/record_file.h"
#include "wire/whole_io.h"

namespace cepheus::replica {

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

wire::Result<VolumeFile> VolumeFile::open(const std::string& path, std::uint64_t size,
                                          Cache cache) {
  const bool is_direct = cache == Cache::kDirect;
  if (is_direct && size % kDirectBlock != 0) {
    return wire::invalid(path + " has " + std::to_string(size) +
                         " bytes; past the page cache it has "
                         "to be a multiple of " +
                         std::to_string(kDirectBlock));
  }
  wire::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | (is_direct ? O_DIRECT : 0)));
  if (!file.is_open() && is_direct && errno == EINVAL) {
    return wire::invalid(path + ": its file system has no O_DIRECT; serve it with --cache page");
  }
  if (!file.is_open()) return tl::unexpected(failed(path, errno));
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return tl::unexpected(failed(path, errno));
    return wire::fail(wire::ErrorCode::kRefused,
                      path + " is served by another process: end it first");
  }
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return tl::unexpected(failed(path, errno));
  if (static_cast<std::uint64_t>(found.st_size) != size) {
    return wire::invalid(path + " has " + std::to_string(found.st_size) +
                         " bytes, its record says " + std::to_string(size));
  }
  if (const int error = posix_fallocate(file.get(), 0, found.st_size)) {
    return tl::unexpected(failed(path, error));
  }
  const int flags = is_direct ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, is_direct ? -1 : file.get(), 0);
  if (at == MAP_FAILED) return tl::unexpected(failed(path, errno));
  VolumeFile volume(std::move(file), cache, {static_cast<std::uint8_t*>(at), size});
  if (is_direct && wire::read_whole(volume.file_.get(), volume.data_, 0) < size) {
    return tl::unexpected(failed(path, errno != 0 ? errno : EIO));  // 0: the file has shrunk
  }
  return volume;
}

VolumeFile::~VolumeFile() {
  if (!data_.empty()) munmap(data_.data(), data_.size());
}

int VolumeFile::write_back(const ChunkBitmap& chunks, std::uint32_t bytes) const {
  for (std::uint32_t c = 0; c < chunks.chunks(); ++c) {
    if (!chunks.has(c)) continue;
    const std::uint64_t at = std::uint64_t{c} * bytes;
    const auto chunk = data_.subspan(at, std::min<std::uint64_t>(bytes, data_.size() - at));
    if (const int error = wire::write_whole(file_.get(), chunk, at)) return error;
  }
  return 0;
}

int VolumeFile::flush(const ChunkBitmap& chunks, std::uint32_t bytes) const {
  const int error = cache_ == Cache::kDirect                          ? write_back(chunks, bytes)
                    : msync(data_.data(), data_.size(), MS_SYNC) != 0 ? errno
                                                                      : 0;
  if (error != 0) return error;
  return fdatasync(file_.get()) == 0 ? 0 : errno;
}

}  // namespace cepheus::replica
