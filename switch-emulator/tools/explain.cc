// Reports are grouped by job, then communicator (name and size), then way and reason. Of a way the
// lowest rank's calls are shown, with the spread over all. Freed communicators share one row at the
// end. Files that are no reports are skipped, and old ones are deleted on the way.
//
// Communicators of one name and size are merged: their times are means by comparisons. Without a
// launcher's name each report is a job of its own.
#include "switch-emulator/tools/explain.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/reports/report_directory.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/live/status/text_table.h"
#include "wire/unique_fd.h"

namespace cepheus::tools {
namespace {

using reports::CallRecord;
using reports::ChoiceRecord;
using reports::ReportDirectory;

constexpr std::string_view kNoJobs =
    "no reports: no MPI program has used coll/cepheus in the last hour, or there was too little "
    "space for reports; run the program with coll_cepheus_verbose 1 to see the cause\n";

// Calls of one path of one communicator, rank by rank.
struct Tally {
  std::uint32_t lowest_rank = ~0u;
  PathUse use;

  void add(const CallRecord& record) {
    if (record.rank < lowest_rank) {
      lowest_rank = record.rank;
      use.calls = record.calls;
    }
    use.fewest = use.ranks_reporting == 0 ? record.calls : std::min(use.fewest, record.calls);
    use.most = std::max(use.most, record.calls);
    ++use.ranks_reporting;
  }
};

struct CommunicatorTally {
  std::uint32_t freed = 0;
  std::map<std::pair<std::string, std::string>, Tally> paths;
  std::vector<SizesUse> sizes;
};

SizesUse use_of(const ChoiceRecord& record) {
  SizesUse use;
  use.sizes = reports::get_text(record.sizes);
  use.other = reports::get_text(record.other);
  use.way = record.choice.by_network != 0 ? reports::get_text(record.network) : use.other;
  use.network_us = static_cast<double>(record.choice.network_ns) / 1e3;
  use.other_us = static_cast<double>(record.choice.other_ns) / 1e3;
  use.comparisons = record.choice.comparisons;
  return use;
}

// Several communicators may have one name and size: their times' mean is shown.
void merge(std::vector<SizesUse>& all, SizesUse use) {
  const auto known = std::ranges::find_if(all, [&](const SizesUse& each) {
    return each.sizes == use.sizes && each.way == use.way && each.other == use.other;
  });
  if (known == all.end()) return all.push_back(std::move(use));
  const auto before = static_cast<double>(known->comparisons);
  known->comparisons += use.comparisons;
  if (known->comparisons == 0) return;
  const double share = 1 - before / static_cast<double>(known->comparisons);
  known->network_us += share * (use.network_us - known->network_us);
  known->other_us += share * (use.other_us - known->other_us);
}

struct JobTally {
  JobUse use;
  std::chrono::nanoseconds changed{};
  // By name and size; size 0 collects those that were freed.
  std::map<std::pair<std::string, std::uint32_t>, CommunicatorTally> communicators;

  void add(const FoundReport& found) {
    use.program = reports::get_text(found.report.header.program);
    ++use.processes;
    if (found.is_running) ++use.running;
    use.uncounted += found.report.header.uncounted;
    const std::string device = reports::get_text(found.report.header.device);
    if (!device.empty()) ++use.devices[device];
    changed = std::max(changed, found.changed);
    for (const CallRecord& record : found.report.records) {
      const bool folded = record.state == reports::RecordState::kFolded;
      CommunicatorTally& tally =
          communicators[{reports::get_text(record.communicator), folded ? 0 : record.ranks}];
      if (folded) tally.freed = std::max(tally.freed, record.ranks);
      const auto key = std::pair(reports::get_text(record.path), reports::get_text(record.reason));
      Tally& path = tally.paths[key];
      path.use.path = key.first;
      path.use.reason = key.second;
      path.add(record);
    }
    for (const ChoiceRecord& record : found.report.choices)
      merge(communicators[{reports::get_text(record.communicator), record.ranks}].sizes,
            use_of(record));
  }
  JobUse finish() {
    for (auto& [key, tally] : communicators) {
      CommunicatorUse one{key.first, key.second, tally.freed, {}, std::move(tally.sizes)};
      for (const auto& [names, path] : tally.paths) one.paths.push_back(path.use);
      std::ranges::stable_sort(one.paths, std::greater{}, &PathUse::calls);
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

std::string us_text(double us) { return live::decimal(us) + " us"; }

// Time of one call by each way, by size.
std::string sizes_text(const JobUse& job, bool colour) {
  live::TextTable table({{"COMMUNICATOR"},
                         {"CLASS"},
                         {"CHOICE"},
                         {"NETWORK", true},
                         {"OTHER", true},
                         {"COMPARED", true}});
  bool is_empty = true;
  for (const CommunicatorUse& one : job.communicators) {
    std::string name = one.name;
    for (const SizesUse& use : one.sizes) {
      table.add({std::exchange(name, ""), use.sizes, use.way, us_text(use.network_us),
                 us_text(use.other_us), std::to_string(use.comparisons)});
      is_empty = false;
    }
  }
  return is_empty ? "" : table.to_text(colour);
}

std::string name_text(const CommunicatorUse& one) {
  return one.ranks != 0 ? one.name : std::to_string(one.freed) + " freed";
}

}  // namespace

wire::Result<std::vector<FoundReport>> read_reports(const std::string& path) {
  const auto directory = ReportDirectory::open(path);
  if (!directory) {
    return wire::fail(directory.error().code,
                      "no reports in " + directory.error().text +
                          "; no MPI program of this user has used coll/cepheus; check that "
                          "CEPHEUS_REPORT_DIR is the program's");
  }
  directory->clear();
  std::vector<FoundReport> found;
  for (const ReportDirectory::Entry& entry : directory->list()) {
    const wire::UniqueFd file = directory->open_report(entry.name, O_RDONLY);
    if (!file.is_open()) continue;
    auto report = ReportDirectory::read(file.get());
    if (!report) continue;
    found.push_back(
        {entry.name, std::move(*report), ReportDirectory::is_held(file.get()), entry.changed});
  }
  std::ranges::stable_sort(found, {}, [](const FoundReport& r) { return r.report.header.pid; });
  return found;
}

std::vector<JobUse> explain(const std::vector<FoundReport>& reports) {
  std::map<std::string, JobTally> tallies;
  for (const FoundReport& found : reports) {
    const std::string name = reports::get_text(found.report.header.job);
    // Without a launcher every process is a job; its pid alone may have been another's before.
    JobTally& job = tallies[name.empty() ? "/" + found.name : name];
    job.use.job = name.empty() ? "pid " + std::to_string(found.report.header.pid) : name;
    job.add(found);
  }
  std::vector<JobTally*> jobs;
  for (auto& [key, job] : tallies) jobs.push_back(&job);
  std::ranges::stable_sort(jobs, [](const JobTally* a, const JobTally* b) {
    const bool a_runs = a->use.running > 0, b_runs = b->use.running > 0;
    return a_runs != b_runs ? a_runs : !a_runs && a->changed > b->changed;
  });
  std::vector<JobUse> result;
  for (JobTally* job : jobs) result.push_back(job->finish());
  return result;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PathUse, path, reason, calls, fewest, most, ranks_reporting)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SizesUse, sizes, way, other, network_us, other_us, comparisons)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommunicatorUse, name, ranks, freed, paths, sizes)

nlohmann::json to_json(const std::vector<JobUse>& jobs) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobUse& job : jobs) {
    nlohmann::json devices = nlohmann::json::array();
    for (const auto& [device, processes] : job.devices) {
      devices.push_back({{"device", device}, {"processes", processes}});
    }
    list.push_back({{"job", job.job},
                    {"program", job.program},
                    {"processes", job.processes},
                    {"running", job.running},
                    {"uncounted", job.uncounted},
                    {"devices", std::move(devices)},
                    {"communicators", job.communicators}});
  }
  return {{"jobs", std::move(list)}};
}

std::string to_text(const std::vector<JobUse>& jobs, bool colour) {
  if (jobs.empty()) return std::string(kNoJobs);
  std::string text;
  for (const JobUse& job : jobs) {
    text += styled(job.job, live::Style::kTitle, colour) + ": " + live::printable(job.program) +
            ", " + std::to_string(job.processes) +
            (job.processes == 1 ? " process, " : " processes, ") +
            (job.running > 0 ? std::to_string(job.running) + " running" : "ended") + "\n";
    live::TextTable table(
        {{"COMMUNICATOR"}, {"RANKS", true}, {"CALLS", true}, {"PATH"}, {"REASON"}});
    for (const CommunicatorUse& one : job.communicators) {
      std::string name = name_text(one);
      std::string ranks = one.ranks == 0 ? "-" : std::to_string(one.ranks);
      for (const PathUse& use : one.paths) {
        table.add({std::exchange(name, ""), std::exchange(ranks, ""), calls_text(use), use.path,
                   use.reason});
      }
    }
    text += table.to_text(colour) + sizes_text(job, colour);
    for (const auto& [device, processes] : job.devices) {
      text += "  device of " + std::to_string(processes) +
              (processes == 1 ? " process: " : " processes: ") + live::printable(device) + "\n";
    }
    if (job.uncounted > 0) {
      text += "  and " + std::to_string(job.uncounted) +
              " calls without a row: the ranks' reports were full\n";
    }
  }
  return text;
}

}  // namespace cepheus::tools
