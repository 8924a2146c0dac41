// The free space of a file system, and the part that reports may take. /dev/shm is small in
// containers, and MPI libraries need it more.
#pragma once

#include <cstdint>
#include <string>

namespace cepheus::reports {

inline constexpr std::uint64_t kMiB = 1 << 20;

struct FreeSpace {
  std::uint64_t total = 0;  // bytes; 0: unlimited, or unknown
  std::uint64_t free = 0;   // bytes, for users other than root

  // Of the file system of `fd`.
  static FreeSpace of(int fd);

  // True if `bytes` more leave enough for other programs: a quarter of the file system, at most
  // 64 MiB, stays free.
  bool allows(std::uint64_t bytes) const;
  // Limit of all reports of a user's ended processes: 1/32 of the file system, at most 2 MiB.
  std::uint64_t limit_of_ended() const;
  // Limit of one report: 1/1024 of the file system, at least one step of a report's growth.
  std::uint64_t limit_of_one() const;

  // "7.9 of 64.0 MiB are free", for refusals.
  std::string text() const;
};

}  // namespace cepheus::reports
