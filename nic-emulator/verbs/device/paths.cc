// The C library's path functions, preceded by the device's files (device_files.h).
//
// All other paths pass through unchanged. No fortification: it would replace the functions defined
// here.
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "nic-emulator/verbs/cancellation.h"
#include "nic-emulator/verbs/connection_manager.h"
#include "nic-emulator/verbs/device/device_files.h"
#include "wire/write_signals.h"

#define CEPHEUS_EXPORT extern "C" __attribute__((visibility("default")))

namespace cepheus::verbs {
namespace {

constexpr const char* kStandIn = "/dev/null";

// The C library's own function, looked up at its first use. Constant-initialised: libraries open
// files before our initialisers run.
template <typename Function>
class LibraryFunction {
 public:
  explicit constexpr LibraryFunction(const char* name) : name_(name) {}
  template <typename... Args>
  auto operator()(Args... args) {
    Function* function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(args...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

constinit LibraryFunction<int(const char*, int, ...)> library_open("open");
constinit LibraryFunction<int(int, const char*, int, ...)> library_openat("openat");
constinit LibraryFunction<int(const char*, int)> library_open_2("__open_2");
constinit LibraryFunction<FILE*(const char*, const char*)> library_fopen("fopen");
constinit LibraryFunction<int(const char*, struct stat*)> library_stat("stat");
constinit LibraryFunction<int(const char*, struct stat64*)> library_stat64("stat64");
constinit LibraryFunction<int(const char*, struct stat*)> library_lstat("lstat");
constinit LibraryFunction<int(const char*, struct stat64*)> library_lstat64("lstat64");
constinit LibraryFunction<int(const char*, int)> library_access("access");
constinit LibraryFunction<ssize_t(const char*, char*, size_t)> library_readlink("readlink");
constinit LibraryFunction<char*(const char*, char*)> library_realpath("realpath");
constinit LibraryFunction<char*(const char*, char*, size_t)> library_realpath_chk("__realpath_chk");
constinit LibraryFunction<DIR*(const char*)> library_opendir("opendir");

// Out of line, so that the callers' non-null attributes do not remove its check. Never throws into
// a C program: if a look-up fails, the path is not the device's.
__attribute__((noinline)) std::optional<DeviceFile> find(const char* path) {
  const Uncancelled uncancelled;  // the look-up may attach to the fabric
  const int saved = errno;
  try {
    auto found = find_device_file(path);
    errno = saved;
    return found;
  } catch (...) {
    errno = saved;
    return std::nullopt;
  }
}

// The library's result for a path that is not the device's.
int noted(const char* path, int result) {
  note_opening(path, result);
  return result;
}

int fail(int error) {
  errno = error;
  return -1;
}

int open_text(const std::string& text, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) return fail(EACCES);
  const int fd = ::memfd_create("cepheus-sysfs", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0u);
  if (fd < 0) return -1;
  const wire::WithoutWriteSignals quiet;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::lseek(fd, 0, SEEK_SET) != 0) {
    const int error = errno;
    ::close(fd);
    return fail(error);
  }
  return fd;
}

int open_device_file(const DeviceFile& file, int flags) {
  switch (file.kind) {
    case DeviceFile::Kind::kCharacterDevice:
      return library_open(kStandIn, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
    case DeviceFile::Kind::kText:
      return (flags & O_DIRECTORY) != 0 ? fail(ENOTDIR) : open_text(file.text, flags);
    case DeviceFile::Kind::kDirectory:
      break;
  }
  return fail(EACCES);  // it has no listing
}

FILE* fopen_device_file(const DeviceFile& file, const char* mode) {
  const bool writes = std::strpbrk(mode, "wa+") != nullptr;
  int flags = writes ? O_RDWR : O_RDONLY;
  if (std::strchr(mode, 'e') != nullptr) flags |= O_CLOEXEC;
  const int fd = open_device_file(file, flags);
  if (fd < 0) return nullptr;
  FILE* const stream = ::fdopen(fd, mode);
  if (stream == nullptr) ::close(fd);
  return stream;
}

// Stat and stat64 are the same structure under two names.
template <typename Stat, typename LibraryStat>
int stat_device_file(const DeviceFile& file, Stat* out, LibraryStat& library_function) {
  if (file.kind == DeviceFile::Kind::kCharacterDevice) return library_function(kStandIn, out);
  *out = {};
  const bool is_text = file.kind == DeviceFile::Kind::kText;
  out->st_mode = is_text ? S_IFREG | 0444 : S_IFDIR | 0555;
  out->st_nlink = 1;
  out->st_size = static_cast<off_t>(file.text.size());
  out->st_blksize = 4096;
  return 0;
}

char* copy_path(const char* path, char* out) {
  if (out == nullptr) return ::strdup(path);
  std::strncpy(out, path, PATH_MAX - 1);
  out[PATH_MAX - 1] = '\0';
  return out;
}

mode_t creation_mode(int flags, va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace cepheus::verbs

using namespace cepheus::verbs;

CEPHEUS_EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = creation_mode(flags, arguments);
  va_end(arguments);
  if (const auto file = find(path)) return open_device_file(*file, flags);
  return noted(path, library_open(path, flags, mode));
}

CEPHEUS_EXPORT int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = creation_mode(flags, arguments);
  va_end(arguments);
  if (const auto file = find(path)) return open_device_file(*file, flags);
  return noted(path, library_openat(directory, path, flags, mode));
}

// Calls of fortified programs.
CEPHEUS_EXPORT int __open_2(const char* path, int flags) {
  if (const auto file = find(path)) return open_device_file(*file, flags);
  return noted(path, library_open_2(path, flags));
}

CEPHEUS_EXPORT FILE* fopen(const char* path, const char* mode) {
  if (const auto file = find(path)) return fopen_device_file(*file, mode);
  return library_fopen(path, mode);
}

// Offsets always have 64 bits.
#define CEPHEUS_SAME_AS(name) extern "C" __attribute__((visibility("default"), alias(name)))
CEPHEUS_SAME_AS("open") int open64(const char* path, int flags, ...);
CEPHEUS_SAME_AS("openat") int openat64(int directory, const char* path, int flags, ...);
CEPHEUS_SAME_AS("__open_2") int __open64_2(const char* path, int flags);
CEPHEUS_SAME_AS("fopen") FILE* fopen64(const char* path, const char* mode);
static_assert(sizeof(off_t) == 8);

CEPHEUS_EXPORT int stat(const char* path, struct stat* out) noexcept {
  if (const auto file = find(path)) return stat_device_file(*file, out, library_stat);
  return library_stat(path, out);
}

CEPHEUS_EXPORT int stat64(const char* path, struct stat64* out) noexcept {
  if (const auto file = find(path)) return stat_device_file(*file, out, library_stat64);
  return library_stat64(path, out);
}

CEPHEUS_EXPORT int lstat(const char* path, struct stat* out) noexcept {
  if (const auto file = find(path)) return stat_device_file(*file, out, library_lstat);
  return library_lstat(path, out);
}

CEPHEUS_EXPORT int lstat64(const char* path, struct stat64* out) noexcept {
  if (const auto file = find(path)) return stat_device_file(*file, out, library_lstat64);
  return library_lstat64(path, out);
}

CEPHEUS_EXPORT int access(const char* path, int mode) noexcept {
  if (const auto file = find(path)) {
    const bool writable = file->kind == DeviceFile::Kind::kCharacterDevice;
    const bool executable = file->kind == DeviceFile::Kind::kDirectory;
    const bool denied = ((mode & W_OK) != 0 && !writable) || ((mode & X_OK) != 0 && !executable);
    return denied ? fail(EACCES) : 0;
  }
  return library_access(path, mode);
}

CEPHEUS_EXPORT ssize_t readlink(const char* path, char* out, size_t size) noexcept {
  if (find(path)) return fail(EINVAL);  // none of them is a link
  return library_readlink(path, out, size);
}

CEPHEUS_EXPORT char* realpath(const char* path, char* out) noexcept {
  if (find(path)) return copy_path(path, out);
  return library_realpath(path, out);
}

CEPHEUS_EXPORT char* __realpath_chk(const char* path, char* out, size_t size) noexcept {
  if (find(path) && size >= PATH_MAX) return copy_path(path, out);
  return library_realpath_chk(path, out, size);
}

CEPHEUS_EXPORT DIR* opendir(const char* path) {
  if (const auto file = find(path)) {
    errno = file->kind == DeviceFile::Kind::kDirectory ? EACCES : ENOTDIR;
    return nullptr;
  }
  return library_opendir(path);
}
