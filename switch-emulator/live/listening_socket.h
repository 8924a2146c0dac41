// Unix sockets that a fabric listens on, and the lock that makes them its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::live {

// Held while a fabric serves a socket path: an flock on <path>.lock, which ends with the process
// however it ends. Who holds it knows that a socket found at the path is a leftover.
class PathLock {
 public:
  // Refused if another process holds it; its pid is named.
  static wire::Result<PathLock> take(const std::string& path);
  PathLock(PathLock&&) = default;
  PathLock& operator=(PathLock&&) = delete;
  ~PathLock();  // removes the lock file

 private:
  PathLock(fabric::UniqueFd file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  fabric::UniqueFd file_;
  std::string path_;
};

// What a peer is told where descriptors run out.
inline constexpr std::string_view kOutOfDescriptors =
    "the fabric has no descriptors left: end other clients, or raise its limit of open files";

class ListeningSocket {
 public:
  static constexpr int kAcceptsAtOnce = 16;  // before other descriptors have their turn

  // Listens without blocking on `path`, replacing a leftover. `type` is SOCK_SEQPACKET or
  // SOCK_STREAM; `mode` are the socket's permissions.
  static wire::Result<ListeningSocket> open(const std::string& path, int type, mode_t mode);
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();  // removes the socket from the file system

  int fd() const { return fd_.get(); }
  wire::Result<void> set_mode(mode_t mode);
  // The next connection, non-blocking; closed if there is none. Where descriptors run out it is
  // told `when_full` and closed: it must not wait for ever, nor keep waking us.
  fabric::UniqueFd accept(std::span<const std::uint8_t> when_full);
  // Whether the kernel keeps peers from sending descriptors along (control_thread.h).
  bool refuses_descriptors() const { return refuses_descriptors_; }

 private:
  ListeningSocket(fabric::UniqueFd fd, std::string path);

  fabric::UniqueFd fd_;
  std::string path_;
  fabric::UniqueFd spare_;  // its place is used to turn somebody away
  bool refuses_descriptors_ = false;
};

}  // namespace cepheus::live
