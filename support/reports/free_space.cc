#include "support/reports/free_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>

#include "support/reports/call_report.h"

namespace cepheus::reports {
namespace {

std::uint64_t part_of(std::uint64_t total, std::uint64_t part, std::uint64_t most) {
  return total == 0 ? most : std::min(total / part, most);
}

}  // namespace

FreeSpace FreeSpace::of(int fd) {
  struct statvfs there {};
  if (fstatvfs(fd, &there) != 0) return {};
  return {there.f_blocks * there.f_frsize, there.f_bavail * there.f_frsize};
}

bool FreeSpace::allows(std::uint64_t bytes) const {
  return total == 0 || free >= bytes + part_of(total, 4, 64 * kMiB);
}

std::uint64_t FreeSpace::limit_of_ended() const { return part_of(total, 32, 2 * kMiB); }

std::uint64_t FreeSpace::limit_of_one() const {
  return std::max<std::uint64_t>(part_of(total, 1024, kMostReportBytes), kReportStep);
}

std::string FreeSpace::text() const {
  char text[64];
  const auto in_mib = [](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kMiB);
  };
  std::snprintf(text, sizeof text, "%.1f of %.1f MiB are free", in_mib(free), in_mib(total));
  return text;
}

}  // namespace cepheus::reports
