// `cepheusctl explain`: the reports of all processes of this user (support/reports/), by job and
// communicator: the number of calls of each path, and the reasons. Files may contain anything.
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
  std::string name;  // of its file: unique
  reports::CallReport report;
  bool is_running = false;
  std::chrono::nanoseconds changed{};  // since the epoch; of an ended process: when it ended
};

// All reports in `directory`, by pid; skips files that are not reports. Deletes those that have
// passed their retention time. kUnavailable if the directory does not exist.
wire::Result<std::vector<FoundReport>> read_reports(const std::string& directory);

// One path of one communicator. Ranks have equal counts except for roots and calls in flight, so
// one rank's calls are shown, with the spread over the others.
struct PathUse {
  std::string path, reason;
  std::uint64_t calls = 0;             // of the lowest rank that reports
  std::uint64_t fewest = 0, most = 0;  // of any rank
  std::uint32_t ranks_reporting = 0;
};
// Way of calls of some sizes, and the time of one by either way.
struct SizesUse {
  std::string sizes, way, other;  // `other`: the alternative to the network
  double network_us = 0, other_us = 0;
  std::uint64_t comparisons = 0;
};
struct CommunicatorUse {
  std::string name;
  std::uint32_t ranks = 0;      // 0: communicators that were freed
  std::uint32_t freed = 0;      // number of freed ones
  std::vector<PathUse> paths;   // most used first
  std::vector<SizesUse> sizes;  // compared sizes, in the report's order
};
struct JobUse {
  std::string job;  // the launcher's name; "pid N" if it gave none
  std::string program;
  std::uint32_t processes = 0, running = 0;
  std::uint64_t uncounted = 0;  // calls of any rank without a row, because its report was full
  std::vector<CommunicatorUse> communicators;
  // RDMA devices with the reason for each, and the number of processes that have it.
  std::map<std::string, std::uint32_t> devices;
};

// By job: the running ones first, then the one that ended last.
std::vector<JobUse> explain(const std::vector<FoundReport>& reports);

nlohmann::json to_json(const std::vector<JobUse>& jobs);
std::string to_text(const std::vector<JobUse>& jobs, bool colour);

}  // namespace cepheus::tools
