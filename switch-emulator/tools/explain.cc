#include "switch-emulator/tools/explain.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/text_table.h"
#include "switch-emulator/ports/unique_fd.h"

namespace cepheus::tools {
namespace {

using wire::CallRecord;
using wire::RecordState;

std::optional<FoundReport> read_report(const std::string& path) {
  const fabric::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return std::nullopt;
  std::vector<std::uint8_t> bytes(wire::kReportBytes);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        pread(file.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    have += static_cast<std::size_t>(n);
  }
  auto report = wire::CallReport::parse(bytes);
  if (!report) return std::nullopt;
  const bool running = flock(file.get(), LOCK_SH | LOCK_NB) != 0;
  return FoundReport{std::move(*report), running};
}

// Rank by rank, what one path of one communicator was used for.
struct Tally {
  std::uint32_t lowest_rank = ~0u;
  PathUse use;

  void add(const CallRecord& record) {
    if (record.rank < lowest_rank) {
      lowest_rank = record.rank;
      use.calls = record.calls;
    }
    use.fewest = use.reporting == 0 ? record.calls : std::min(use.fewest, record.calls);
    use.most = std::max(use.most, record.calls);
    ++use.reporting;
  }
};

struct CommunicatorTally {
  std::uint32_t freed = 0;
  std::map<std::pair<std::string, std::string>, Tally> paths;
};

// Name and size; size 0 collects those that were freed.
using CommunicatorKey = std::pair<std::string, std::uint32_t>;

struct JobTally {
  JobUse use;
  std::map<CommunicatorKey, CommunicatorTally> communicators;

  void add(const FoundReport& found) {
    use.program = wire::get_text(found.report.header.program);
    ++use.processes;
    if (found.is_running) ++use.running;
    for (const CallRecord& record : found.report.records) {
      const bool folded = record.state == RecordState::kFolded;
      CommunicatorTally& tally =
          communicators[{wire::get_text(record.communicator), folded ? 0 : record.ranks}];
      if (folded) tally.freed = std::max(tally.freed, record.ranks);
      const auto key = std::pair(wire::get_text(record.path), wire::get_text(record.reason));
      Tally& path = tally.paths[key];
      path.use.path = key.first;
      path.use.reason = key.second;
      path.add(record);
    }
  }
  JobUse finish() {
    for (auto& [key, tally] : communicators) {
      CommunicatorUse one{key.first, key.second, tally.freed, {}};
      for (const auto& [names, path] : tally.paths) one.paths.push_back(path.use);
      std::stable_sort(one.paths.begin(), one.paths.end(),
                       [](const PathUse& a, const PathUse& b) { return a.calls > b.calls; });
      use.communicators.push_back(std::move(one));
    }
    // The freed ones, all in one row, come last.
    std::stable_partition(use.communicators.begin(), use.communicators.end(),
                          [](const CommunicatorUse& c) { return c.ranks != 0; });
    return std::move(use);
  }
};

std::string calls_text(const PathUse& use) {
  if (use.fewest == use.most) return std::to_string(use.calls);
  return std::to_string(use.calls) + " (" + std::to_string(use.fewest) + " to " +
         std::to_string(use.most) + ")";
}

std::string name_text(const CommunicatorUse& one) {
  return one.ranks != 0 ? one.name : std::to_string(one.freed) + " that were freed";
}

}  // namespace

wire::Result<std::vector<FoundReport>> read_reports(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error) {
    return wire::fail(wire::ErrorCode::kUnavailable,
                      "no reports in " + directory + ": " + error.message() +
                          "; no MPI program has used coll/cepheus as this user, or it wrote "
                          "elsewhere (CEPHEUS_REPORT_DIR)");
  }
  std::vector<FoundReport> reports;
  for (const auto& entry : files) {
    if (!entry.path().string().ends_with(wire::kReportSuffix)) continue;
    if (auto report = read_report(entry.path().string())) reports.push_back(std::move(*report));
  }
  std::sort(reports.begin(), reports.end(), [](const FoundReport& a, const FoundReport& b) {
    return a.report.header.pid < b.report.header.pid;
  });
  return reports;
}

std::vector<JobUse> explain(const std::vector<FoundReport>& reports) {
  std::map<std::string, JobTally> jobs;
  for (const FoundReport& found : reports) {
    std::string name = wire::get_text(found.report.header.job);
    if (name.empty()) name = "pid " + std::to_string(found.report.header.pid);
    JobTally& job = jobs[name];
    job.use.job = name;
    job.add(found);
  }
  std::vector<JobUse> result;
  for (auto& [name, job] : jobs) result.push_back(job.finish());
  std::stable_partition(result.begin(), result.end(),
                        [](const JobUse& job) { return job.running > 0; });
  return result;
}

nlohmann::json to_json(const std::vector<JobUse>& jobs) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobUse& job : jobs) {
    nlohmann::json communicators = nlohmann::json::array();
    for (const CommunicatorUse& one : job.communicators) {
      nlohmann::json paths = nlohmann::json::array();
      for (const PathUse& use : one.paths) {
        paths.push_back({{"path", use.path},
                         {"reason", use.reason},
                         {"calls", use.calls},
                         {"fewest", use.fewest},
                         {"most", use.most},
                         {"ranks_reporting", use.reporting}});
      }
      communicators.push_back({{"name", one.name},
                               {"ranks", one.ranks},
                               {"freed", one.freed},
                               {"paths", std::move(paths)}});
    }
    list.push_back({{"job", job.job},
                    {"program", job.program},
                    {"processes", job.processes},
                    {"running", job.running},
                    {"communicators", std::move(communicators)}});
  }
  return {{"jobs", std::move(list)}};
}

std::string to_text(const std::vector<JobUse>& jobs, bool colour) {
  if (jobs.empty()) return "no reports: no MPI program has used coll/cepheus lately\n";
  std::string text;
  for (const JobUse& job : jobs) {
    text += styled(job.job, live::Style::kTitle, colour) + ": " + job.program + ", " +
            std::to_string(job.processes) + (job.processes == 1 ? " process, " : " processes, ") +
            (job.running > 0 ? std::to_string(job.running) + " running" : "ended") + "\n";
    live::TextTable table({{"COMMUNICATOR"}, {"RANKS", true}, {"CALLS", true}, {"PATH"}, {"WHY"}});
    for (const CommunicatorUse& one : job.communicators) {
      std::string name = name_text(one);
      std::string ranks = one.ranks == 0 ? "-" : std::to_string(one.ranks);
      for (const PathUse& use : one.paths) {
        table.add({std::exchange(name, ""), std::exchange(ranks, ""), calls_text(use), use.path,
                   use.reason});
      }
    }
    text += table.to_text(colour);
  }
  return text;
}

}  // namespace cepheus::tools
