// How much a file system has left, and how much of it reports may take: /dev/shm is small in
// containers, and MPI libraries need it more.
#pragma once

#include <cstdint>
#include <string>

namespace cepheus::reports {

inline constexpr std::uint64_t kMiB = 1 << 20;

struct FileSystemSpace {
  std::uint64_t total = 0;  // bytes; 0: unlimited, or unknown
  std::uint64_t free = 0;   // bytes, for users other than root

  // Of the file system that `fd` lies on.
  static FileSystemSpace of(int fd);

  // Whether `bytes` more leave others what they may need: a quarter of the file system, but no more
  // than 64 MiB, stays free.
  bool allows(std::uint64_t bytes) const;
  // What all reports of ended processes of one user may take: 1/32 of it, at most 2 MiB.
  std::uint64_t share_of_ended() const;
  // What one report may take: 1/1024 of it, and no less than one step of a report's growth.
  std::uint64_t share_of_one() const;

  // "7.9 of 64.0 MiB are free": for whoever is refused.
  std::string text() const;
};

}  // namespace cepheus::reports
