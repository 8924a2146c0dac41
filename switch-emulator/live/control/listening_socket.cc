// A fabric holds flock() on PATH.lock while it runs. The file is opened without following links,
// since the directory may be writable for others, and checked again after the lock: its last holder
// may have removed it.
//
// Without a free descriptor, accept() lends the spare one to a peer, sends it the reason, and
// closes: else the peer would wait, and poll(2) would never rest.
#include "switch-emulator/live/control/listening_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "wire/remedy.h"

namespace cepheus::live {
namespace {

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // asm-generic/socket.h, Linux 6.16
#endif

constexpr int kBacklog = 1024;
constexpr int kLockAttempts = 16;

std::string first_line_of(int file) {
  std::array<char, 32> text{};
  const ssize_t length = pread(file, text.data(), text.size() - 1, 0);
  const std::string all(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return all.substr(0, all.find('\n'));
}

fabric::UniqueFd open_spare() { return fabric::UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

fabric::UniqueFd accept_from(int fd) {
  return fabric::UniqueFd(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

// The last holder may have removed the file between open() and flock().
bool is_still_at(int file, const std::string& path) {
  struct stat ours {
  }, there{};
  return fstat(file, &ours) == 0 && lstat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

// The directory may be writable for other users. A link that they put there must not lead to a file
// that is not a lock: it would be emptied.
bool is_lock_file(int file) {
  struct stat found {};
  return fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink <= 1;
}

// Truncates last, and only a longer file: that may wait for a busy disk.
bool write_all(int file, const std::string& text) {
  struct stat found {};
  return pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
         fstat(file, &found) == 0 &&
         (found.st_size == static_cast<off_t>(text.size()) ||
          ftruncate(file, static_cast<off_t>(text.size())) == 0);
}

}  // namespace

wire::Result<PathLock> PathLock::take(const std::string& path) {
  const std::string lock_path = path + ".lock";
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    fabric::UniqueFd file(
        open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!file.is_open() && errno != ELOOP) return wire::call_failed("can't create " + lock_path);
    if (!file.is_open() || !is_lock_file(file.get())) {
      return wire::unavailable(lock_path +
                               " is a link, or not a regular file: find its owner, and remove "
                               "it");
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return wire::fail(wire::ErrorCode::kRefused,
                        "a fabric is already running at " + path + " (pid " +
                            first_line_of(file.get()) +
                            "): stop it with cepheusctl, or choose another --fabric");
    }
    if (!is_still_at(file.get(), lock_path)) continue;
    const std::string pid = std::to_string(getpid()) + "\n";
    if (!write_all(file.get(), pid)) {
      const int error = errno;
      return wire::unavailable("can't write " + lock_path + ": " + std::strerror(error) +
                               wire::remedy(error));
    }
    return PathLock(std::move(file), lock_path);
  }
  return wire::fail(wire::ErrorCode::kAgain,
                    lock_path + " is being created and removed all the time");
}

PathLock::~PathLock() {
  if (file_.is_open()) unlink(path_.c_str());
}

wire::Result<ListeningSocket> ListeningSocket::open(const std::string& path, int type,
                                                    mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return wire::invalid("socket path '" + path + "' must have 1 to " +
                         std::to_string(sizeof address.sun_path - 1) + " characters");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) {
    return wire::unavailable(path + " exists and is not a socket: remove it");
  }
  unlink(path.c_str());
  fabric::UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return wire::call_failed("can't make a socket");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd.get(), kBacklog) != 0) {
    return wire::call_failed("can't listen on " + path);
  }
  return ListeningSocket(std::move(fd), path);
}

void ListeningSocket::close() {
  if (fd_.is_open()) unlink(path_.c_str());
  fd_.reset();
}

ListeningSocket::ListeningSocket(fabric::UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), spare_(open_spare()) {
  const int no = 0;  // connections inherit it
  refuses_descriptors_ = setsockopt(fd_.get(), SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0;
}

wire::Result<void> ListeningSocket::set_mode(mode_t mode) {
  if (chmod(path_.c_str(), mode) == 0) return {};
  return wire::call_failed("can't set the permissions of " + path_);
}

fabric::UniqueFd ListeningSocket::accept(std::span<const std::uint8_t> when_full) {
  fabric::UniqueFd socket = accept_from(fd_.get());
  if (socket.is_open() || (errno != EMFILE && errno != ENFILE)) return socket;
  spare_.reset();
  socket = accept_from(fd_.get());
  if (socket.is_open()) {
    send(socket.get(), when_full.data(), when_full.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    socket.reset();
  }
  spare_ = open_spare();
  return socket;
}

}  // namespace cepheus::live
