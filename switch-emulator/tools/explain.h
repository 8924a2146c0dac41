// `cepheusctl explain`: the reports of all processes of this user (support/reports/), gathered by
// job and communicator: how many calls took which path, and why. Files may hold anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "support/reports/call_report.h"
#include "wire/result.h"

namespace cepheus::tools {

// A process's report and whether that process still runs.
struct FoundReport {
  std::string name;  // of its file: no two have the same
  reports::CallReport report;
  bool is_running = false;
  std::chrono::nanoseconds changed{};  // since the epoch; if it has ended: when
};

// Every report in `directory`, by process number; files that are no reports are skipped. Clears
// those that are kept no longer. kUnavailable if there is no such directory.
wire::Result<std::vector<FoundReport>> read_reports(const std::string& directory);

// One path of one communicator. Ranks count alike but for roots and calls in flight, so the calls
// of one rank are shown, and how far the others are apart.
struct PathUse {
  std::string path, reason;
  std::uint64_t calls = 0;             // of the lowest rank that reports
  std::uint64_t fewest = 0, most = 0;  // of any rank
  std::uint32_t reporting = 0;         // ranks
};
// Which way serves broadcasts of some sizes, and what one takes by either.
struct SizesUse {
  std::string sizes, way, other;  // `other`: the way beside multicast
  double multicast_us = 0, other_us = 0;
  std::uint64_t comparisons = 0;
};
struct CommunicatorUse {
  std::string name;
  std::uint32_t ranks = 0;      // 0: communicators that were freed
  std::uint32_t freed = 0;      // how many
  std::vector<PathUse> paths;   // most used first
  std::vector<SizesUse> sizes;  // that were compared, in the report's order
};
struct JobUse {
  std::string job;  // the launcher's name; "pid N" if it gave none
  std::string program;
  std::uint32_t processes = 0, running = 0;
  std::uint64_t uncounted = 0;  // calls of any rank that are in no row: its report was full
  std::vector<CommunicatorUse> communicators;
  // RDMA devices with the reason why each was taken, and how many processes have it.
  std::map<std::string, std::uint32_t> devices;
};

// By job: the running ones first, then the one that ended last.
std::vector<JobUse> explain(const std::vector<FoundReport>& reports);

nlohmann::json to_json(const std::vector<JobUse>& jobs);
std::string to_text(const std::vector<JobUse>& jobs, bool colour);

}  // namespace cepheus::tools
