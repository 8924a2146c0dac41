#include "collectives/reports/report_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "wire/clock.h"

namespace cepheus::coll {
namespace {

using reports::CallRecord;
using reports::CallReport;
using reports::FreeSpace;
using reports::RecordState;
using reports::ReportDirectory;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

class Report : public testing::Test {
 protected:
  Report() {
    char pattern[] = "/dev/shm/call-report-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  ~Report() override { std::filesystem::remove_all(directory_); }

  ReportDirectory directory() const { return std::move(*ReportDirectory::open(directory_)); }
  // The one report that is there.
  ReportDirectory::Entry entry() const {
    const auto entries = directory().list();
    EXPECT_EQ(entries.size(), 1u);
    return entries.empty() ? ReportDirectory::Entry{} : entries[0];
  }
  CallReport report() const {
    const wire::UniqueFd file = directory().open_report(entry().name, O_RDONLY);
    const auto parsed = ReportDirectory::read(file.get());
    EXPECT_TRUE(parsed);
    return parsed ? *parsed : CallReport{};
  }
  std::vector<CallRecord> records() const { return report().records; }
  bool is_held() const {
    const wire::UniqueFd file = directory().open_report(entry().name, O_RDONLY);
    return ReportDirectory::is_held(file.get());
  }

  std::string directory_;
};

struct OpenFile : ReportFile {
  explicit OpenFile(const std::string& directory) : ReportFile(directory) { EXPECT_TRUE(open()); }
};

TEST_F(Report, CountsCallsByPathAndReason) {
  OpenFile file(directory_);
  ReportScope world(file, "world", 2, 4);
  for (int i = 0; i < 3; ++i) world.count("eager lane", "multicast");
  world.count("bulk lane", "multicast");
  world.count("eager lane", "multicast");
  const auto found = records();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].calls, 4u);
  EXPECT_EQ(found[0].rank, 2u);
  EXPECT_EQ(found[0].ranks, 4u);
  EXPECT_EQ(reports::get_text(found[0].communicator), "world");
  EXPECT_EQ(reports::get_text(found[0].path), "eager lane");
  EXPECT_EQ(found[1].calls, 1u);
}

TEST_F(Report, FoldsCommunicatorsThatAreGoneSoThatThousandsFit) {
  OpenFile file(directory_);
  for (int i = 0; i < 5000; ++i) {
    ReportScope dup(file, "dup", 0, 2);
    dup.count("eager lane", "multicast");
    dup.count("eager lane", "multicast");
  }
  const auto found = records();
  std::uint64_t calls = 0, folded = 0;
  for (const CallRecord& record : found) {
    calls += record.calls;
    if (record.state == RecordState::kFolded) folded += record.ranks;
  }
  EXPECT_LT(found.size(), 100u);
  EXPECT_EQ(calls, 10'000u);
  EXPECT_GT(folded, 4900u);
}

TEST_F(Report, KeepsTheNameOfACommunicatorThatWasFreedLately) {
  OpenFile file(directory_);
  { ReportScope(file, "world", 0, 2).count("eager lane", "multicast"); }
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].state, RecordState::kClosed);
  EXPECT_EQ(reports::get_text(records()[0].communicator), "world");
}

TEST_F(Report, HasTheNewestChoiceForEachSizeAfterTheCommunicatorsEnd) {
  OpenFile file(directory_);
  {
    ReportScope world(file, "world", 0, 2);
    world.choose("up to 1 KiB", {"multicast", "open mpi"}, {1, 1, 30'000, 70'000});
    world.choose("up to 2 KiB", {"multicast", "open mpi"}, {1, 1, 40'000, 80'000});
    world.choose("up to 1 KiB", {"multicast", "open mpi"}, {0, 2, 900'000, 60'000});
  }
  const auto choices = report().choices;
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(reports::get_text(choices[0].sizes), "up to 1 KiB");
  EXPECT_EQ(choices[0].choice.comparisons, 2u);
  EXPECT_EQ(choices[0].choice.by_network, 0u);
  EXPECT_EQ(choices[1].choice.by_network, 1u);
  for (int i = 0; i < 5000; ++i)
    ReportScope(file, "dup", 0, 2)
        .choose("up to 1 KiB", {"multicast", "open mpi"}, {1, 1, 30'000, 70'000});
  EXPECT_LT(report().choices.size(), 100u) << "those of communicators long gone make room";
}

TEST_F(Report, CountsCallsWithoutARecord) {
  OpenFile file(directory_);
  std::vector<std::unique_ptr<ReportScope>> scopes;
  for (std::size_t i = 0; i < reports::kMostRecords + 5; ++i) {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
    scopes.back()->count("eager lane", "multicast");
  }
  EXPECT_EQ(records().size(), reports::kMostRecords);
  EXPECT_EQ(report().header.uncounted, 10u);
}

TEST_F(Report, ResumesCountingOnceThereIsSpaceAgain) {
  OpenFile file(directory_);
  std::vector<std::unique_ptr<ReportScope>> scopes;
  for (std::size_t i = 0; i < reports::kMostRecords; ++i) {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
  }
  ReportScope late(file, "late", 0, 2);
  for (int i = 0; i < 3; ++i) late.count("eager lane", "multicast");
  scopes.resize(scopes.size() / 2);
  for (int i = 0; i < 3; ++i) late.count("eager lane", "multicast");
  EXPECT_EQ(report().header.uncounted, 4u) << "asked again at the fifth call";
  const auto found = records();
  EXPECT_EQ(std::count_if(
                found.begin(), found.end(),
                [](const CallRecord& r) { return reports::get_text(r.communicator) == "late"; }),
            1);
}

TEST_F(Report, IsOnePageUntilItNeedsMore) {
  OpenFile file(directory_);
  std::vector<std::unique_ptr<ReportScope>> scopes;
  const auto add = [&] {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
  };
  while (scopes.size() < reports::records_in(reports::kReportStep)) add();
  EXPECT_EQ(entry().bytes, reports::kReportStep);
  add();
  EXPECT_EQ(entry().bytes, 2 * reports::kReportStep);
  EXPECT_EQ(records().size(), scopes.size());
  for (const auto& scope : scopes) scope->count("eager lane", "multicast");
  for (const CallRecord& record : records()) EXPECT_EQ(record.calls, 2u);
}

TEST_F(Report, HoldsOnlyWhatIsInUseOnceItsProcessHasEnded) {
  OpenFile file(directory_);
  {
    std::vector<std::unique_ptr<ReportScope>> scopes;
    for (int i = 0; i < 900; ++i) {
      scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
      scopes.back()->count("eager lane", "multicast");
    }
  }
  EXPECT_GT(entry().bytes, 50 * reports::kReportStep);
  file.end();
  EXPECT_LE(entry().bytes, 5 * reports::kReportStep);
  EXPECT_FALSE(is_held());
  std::uint64_t calls = 0;
  for (const CallRecord& record : records()) calls += record.calls;
  EXPECT_EQ(calls, 900u);
}

// A thread may be in the middle of a broadcast when another one calls exit().
TEST_F(Report, ThreadsMayCountWhileItEndsAndShrinks) {
  OpenFile file(directory_);
  constexpr std::size_t kScopes = 400, kStay = 50;
  std::vector<std::unique_ptr<ReportScope>> scopes;
  for (std::size_t i = 0; i < kScopes; ++i) {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
  }
  scopes.erase(scopes.begin(), scopes.end() - kStay);  // those at the file's end stay
  std::atomic<int> rounds = 0;
  std::atomic<bool> ended = false;
  std::thread thread([&] {
    for (bool last = false; !last; ++rounds) {
      last = ended;
      for (const auto& scope : scopes) scope->count("eager lane", "multicast");
    }
  });
  while (rounds < 100) std::this_thread::yield();
  const std::uint64_t before = entry().bytes;
  file.end();
  ended = true;
  thread.join();
  EXPECT_LT(entry().bytes, before / 2);
  std::uint64_t calls = 0;
  for (const CallRecord& record : records()) calls += record.calls;
  EXPECT_GE(calls, kScopes + 100 * kStay);
}

TEST_F(Report, CountsNoMoreAfterItsEnd) {
  OpenFile file(directory_);
  ReportScope scope(file, "c", 0, 2);
  scope.count("eager lane", "multicast");
  file.end();
  scope.count("eager lane", "multicast");
  scope.count("bulk lane", "multicast");
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].calls, 1u);
}

TEST_F(Report, EndsWithItsProcess) {
  const auto child_that = [&](auto&& leave) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("CEPHEUS_REPORT_DIR", directory_.c_str(), 1);
      if (!ReportFile::instance().open()) ::_exit(1);
      auto* scope = new ReportScope(ReportFile::instance(), "c", 0, 2);
      scope->count("eager lane", "multicast");
      leave();
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  };
  child_that([] { std::exit(0); });
  EXPECT_EQ(report().header.ended, 1u);
  EXPECT_FALSE(is_held());
  std::filesystem::remove(directory_ + "/" + entry().name);
  child_that([] { ::_exit(0); });
  EXPECT_EQ(report().header.ended, 0u) << "it had no chance to say so";
  EXPECT_FALSE(is_held());
  EXPECT_EQ(records().size(), 1u);
}

TEST_F(Report, IsRefusedIfOthersNeedTheSpace) {
  FreeSpace space{64 * kMiB, 60 * kMiB};
  ReportFile file(directory_, [&](int) { return space; });
  space.free = 15 * kMiB;
  const auto refused = file.open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("15.0 of 64.0 MiB are free"));
  ReportScope scope(file, "c", 0, 2);
  scope.count("eager lane", "multicast");
  space.free = 60 * kMiB;
  EXPECT_TRUE(file.open());
}

TEST_F(Report, LooksForSpaceEverMoreRarely) {
  int looks = 0;
  FreeSpace space{64 * kMiB, 15 * kMiB};
  ReportFile file(directory_, [&](int) { return ++looks, space; });
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(file.open());
  EXPECT_LT(looks, 30);
  EXPECT_THAT(file.open().error().text, HasSubstr("too little space"));
}

TEST_F(Report, StopsGrowingIfOthersNeedTheSpace) {
  FreeSpace space{64 * kMiB, 60 * kMiB};
  ReportFile file(directory_, [&](int) { return space; });
  ASSERT_TRUE(file.open());
  space.free = 15 * kMiB;
  std::vector<std::unique_ptr<ReportScope>> scopes;
  for (int i = 0; i < 20; ++i) {
    scopes.push_back(std::make_unique<ReportScope>(file, "many", 0, 2));
    scopes.back()->count("eager lane", "multicast");
  }
  EXPECT_EQ(entry().bytes, reports::kReportStep);
  EXPECT_EQ(report().header.uncounted, 20 - reports::records_in(reports::kReportStep));
}

TEST_F(Report, LongReasonsAreTruncatedAndStillOne) {
  OpenFile file(directory_);
  ReportScope scope(file, "c", 0, 2);
  const std::string reason(400, 'r');
  scope.count("open mpi", reason.c_str());
  scope.count("open mpi", reason.c_str());
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records()[0].calls, 2u);
}

TEST_F(Report, IsHeldByALockWhileTheProcessLives) {
  {
    OpenFile file(directory_);
    EXPECT_TRUE(is_held());
  }
  EXPECT_FALSE(is_held());
}

TEST_F(Report, ClearsWhenItBeginsAndWhenItEnds) {
  const auto put_old = [&](const std::string& name) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << "x";
    const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
    return path;
  };
  const std::string before = put_old("1.calls");
  OpenFile file(directory_);
  EXPECT_FALSE(std::filesystem::exists(before));
  const std::string meanwhile = put_old("2.calls");
  file.end();
  EXPECT_FALSE(std::filesystem::exists(meanwhile));
}

TEST_F(Report, AForkedChildCountsNothingInItsParentsReport) {
  OpenFile file(directory_);
  ReportScope scope(file, "c", 0, 2);
  scope.count("eager lane", "multicast");
  const pid_t child = fork();
  if (child == 0) {
    scope.count("eager lane", "multicast");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(records()[0].calls, 1u);
}

// A lock that the other thread had at the fork stays locked in the child.
TEST_F(Report, AForkedChildHasAReportOfItsOwnWhateverOtherThreadsWereAt) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) ReportFile::instance().set_device("fake0");
  });
  int status = 0;
  for (int i = 0; i < 100 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      ReportFile::instance().set_device("fake1");
      ::_exit(0);
    }
    ::waitpid(child, &status, 0);
  }
  stop = true;
  other.join();
  EXPECT_EQ(status, 0);
}

TEST_F(Report, AForkedChildThatExitsLeavesItsParentsReportOpen) {
  OpenFile file(directory_);
  const pid_t child = ::fork();
  if (child == 0) {
    file.end();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_held());
  EXPECT_EQ(report().header.ended, 0u);
}

TEST_F(Report, KeepsCallsWithTheirTimesOnlyWhileSomebodyRecords) {
  ReportFile file(directory_);
  EXPECT_EQ(file.begin_call(), 0) << "the first call makes the report, and finds no recorder";
  ReportScope world(file, "world", 2, 4);
  world.count("eager lane", "multicast");
  EXPECT_TRUE(reports::find_rings(directory_).empty());

  auto lease = reports::RecordingLease::open(directory_);
  ASSERT_TRUE(lease);
  lease->extend(wire::monotonic_now().time_since_epoch().count() + 60'000'000'000);
  const std::int64_t began = file.begin_call();
  ASSERT_GT(began, 0);
  world.keep("eager lane", "multicast", began, 8, 1);
  const auto rings = reports::find_rings(directory_);
  ASSERT_EQ(rings.size(), 1u);
  const auto calls = reports::CallRingReader::open(rings[0])->take();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].begin_ns, began);
  EXPECT_GE(calls[0].end_ns, began);
  EXPECT_EQ(calls[0].bytes, 8u);
  EXPECT_EQ(calls[0].root, 1u);
  EXPECT_EQ(calls[0].text.rank, 2u);
  EXPECT_EQ(reports::get_text(calls[0].text.communicator), "world");
  EXPECT_EQ(reports::get_text(calls[0].text.path), "eager lane");

  lease->extend(1);  // the recorder has died
  EXPECT_EQ(file.begin_call(), 0);
  file.end();
  EXPECT_TRUE(reports::find_rings(directory_).empty()) << "nobody is going to read it";
}

TEST_F(Report, LeavesItsCallsToWhoeverStillRecords) {
  auto lease = reports::RecordingLease::open(directory_);
  ASSERT_TRUE(lease);
  lease->extend(wire::monotonic_now().time_since_epoch().count() + 60'000'000'000);
  {
    ReportFile file(directory_);
    const std::int64_t began = file.begin_call();
    ASSERT_GT(began, 0);
    ReportScope world(file, "world", 0, 4);
    world.keep("bulk lane", "multicast", began, 8, 0);
  }
  const auto rings = reports::find_rings(directory_);
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_TRUE(reports::CallRingReader::open(rings[0])->is_abandoned());
}

}  // namespace
}  // namespace cepheus::coll
