// Unix sockets on which a fabric listens, and the lock of their paths.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "switch-emulator/ports/unique_fd.h"
#include "wire/result.h"

namespace cepheus::live {

// Held while a fabric serves a socket path: an flock on <path>.lock, which ends with the process in
// any case. The holder knows that an existing socket at the path is a leftover.
class PathLock {
 public:
  // Refused if another process holds it; the error names its pid.
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

// Text for peers when descriptors run out.
inline constexpr std::string_view kOutOfDescriptors =
    "the fabric has no descriptors left: end other clients, or raise its limit of open files";

class ListeningSocket {
 public:
  static constexpr int kAcceptsAtOnce = 16;  // before the turn of other descriptors

  // Listens without blocking on `path`, and replaces a leftover. `type` is SOCK_SEQPACKET or
  // SOCK_STREAM; `mode` has the socket's permissions.
  static wire::Result<ListeningSocket> open(const std::string& path, int type, mode_t mode);
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket() { close(); }

  // Removes the socket from the file system, and disconnects peers that were not accepted.
  void close();
  int fd() const { return fd_.get(); }
  wire::Result<void> set_mode(mode_t mode);
  // The next connection, non-blocking; closed if there is none. When descriptors run out, the peer
  // gets `when_full` and is disconnected, because it must neither wait for ever nor keep waking
  // this thread.
  fabric::UniqueFd accept(std::span<const std::uint8_t> when_full);
  // Whether the kernel stops peers from sending descriptors along (control_thread.h).
  bool refuses_descriptors() const { return refuses_descriptors_; }

 private:
  ListeningSocket(fabric::UniqueFd fd, std::string path);

  fabric::UniqueFd fd_;
  std::string path_;
  fabric::UniqueFd spare_;  // lent to a peer that is sent away
  bool refuses_descriptors_ = false;
};

}  // namespace cepheus::live
