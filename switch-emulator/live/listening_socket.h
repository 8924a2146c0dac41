// Unix sockets that a fabric listens on, and the lock that makes them its own.
#pragma once

#include <sys/types.h>

#include <string>

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

class ListeningSocket {
 public:
  // Listens without blocking on `path`, replacing a leftover. `type` is SOCK_SEQPACKET or
  // SOCK_STREAM; `mode` are the socket's permissions.
  static wire::Result<ListeningSocket> open(const std::string& path, int type, mode_t mode);
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();  // removes the socket from the file system

  int fd() const { return fd_.get(); }
  // The next connection, non-blocking; closed if there is none.
  fabric::UniqueFd accept() const;

 private:
  ListeningSocket(fabric::UniqueFd fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)) {}

  fabric::UniqueFd fd_;
  std::string path_;
};

}  // namespace cepheus::live
