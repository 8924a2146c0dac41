#include "support/reports/report_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

namespace cepheus::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::UniqueFd;

constexpr std::time_t kHour = 3600;

class Directory : public testing::Test {
 protected:
  Directory() {
    char pattern[] = "/dev/shm/reports-XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~Directory() override { std::filesystem::remove_all(path_); }

  ReportDirectory directory(FreeSpace space = {24'000 * kMiB, 24'000 * kMiB}) const {
    auto made = ReportDirectory::make(path_, [space](int) { return space; });
    EXPECT_TRUE(made) << made.error().text;
    return std::move(*made);
  }
  static ReportHeader header() {
    ReportHeader header;
    header.pid = static_cast<std::uint32_t>(::getpid());
    put_text(header.program, "prog");
    put_text(header.job, "job");
    put_text(header.device, "");
    return header;
  }
  ReportDirectory::Own make_report() const {
    auto own = directory().create(header());
    EXPECT_TRUE(own) << own.error().text;
    return std::move(*own);
  }
  // Records in use, as the report's process writes them.
  static void put_records(const ReportDirectory::Own& own, std::size_t n) {
    CallRecord record{};
    record.state = RecordState::kLive;
    record.calls = 7;
    const auto bytes = CallReport{header(), std::vector<CallRecord>(n, record)}.bytes();
    EXPECT_EQ(::pwrite(own.file.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }
  // A report of a process that ended in order `seconds` ago.
  std::string put_ended(std::time_t seconds, std::size_t bytes = kReportStep) const {
    auto own = make_report();
    const std::string name = own.name;
    EXPECT_TRUE(directory().grow(own, bytes));
    put_records(own, records_in(bytes));
    directory().end(own);
    set_age(name, seconds);
    return name;
  }
  // A report of a process that died without ending it; its last change was its beginning.
  std::string put_dead(std::time_t seconds) const {
    const std::string name = make_report().name;
    set_age(name, seconds);
    return name;
  }
  void put_file(const std::string& name, const std::string& text, std::time_t seconds) const {
    std::ofstream(path_ + "/" + name) << text;
    set_age(name, seconds);
  }
  void set_age(const std::string& name, std::time_t seconds) const {
    const timespec then{std::time(nullptr) - seconds, 0};
    const timespec times[2] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, (path_ + "/" + name).c_str(), times, 0), 0);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : directory().list()) names.push_back(entry.name);
    return names;
  }
  std::uint64_t bytes_taken() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : directory().list()) bytes += entry.bytes;
    return bytes;
  }
  std::optional<CallReport> read(const std::string& name) const {
    return ReportDirectory::read(directory().open_report(name, O_RDONLY).get());
  }

  std::string path_;
};

TEST_F(Directory, TwoThatLookAtAReportDoNotTakeEachOtherForItsProcess) {
  const std::string name = put_ended(0);
  const UniqueFd one = directory().open_report(name, O_RDONLY);
  const UniqueFd other = directory().open_report(name, O_RDONLY);
  EXPECT_FALSE(ReportDirectory::is_held(one.get()));
  EXPECT_FALSE(ReportDirectory::is_held(other.get()));
}

TEST_F(Directory, ReportsOfOneProcessNumberAreDifferentFiles) {
  const auto one = make_report(), other = make_report();
  EXPECT_NE(one.name, other.name);
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Directory, AnEndedReportShrinksToWhatIsInUse) {
  auto own = make_report();
  ASSERT_TRUE(directory().grow(own, 8 * kReportStep));
  EXPECT_EQ(bytes_taken(), 8 * kReportStep);
  const std::string name = own.name;
  put_records(own, 1);
  directory().end(own);
  EXPECT_EQ(bytes_taken(), kReportStep);
  ASSERT_TRUE(read(name));
  EXPECT_EQ(read(name)->header.ended, 1u);
  EXPECT_EQ(read(name)->records.at(0).calls, 7u);
  EXPECT_FALSE(ReportDirectory::is_held(directory().open_report(name, O_RDONLY).get()));
}

// Otherwise a thread that still counts would get SIGBUS.
TEST_F(Directory, WhatIsMappedOfAReportStaysWhenItShrinks) {
  auto own = make_report();
  ASSERT_TRUE(directory().grow(own, 8 * kReportStep));
  void* const memory =
      ::mmap(nullptr, 8 * kReportStep, PROT_READ | PROT_WRITE, MAP_SHARED, own.file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  directory().end(own);
  EXPECT_EQ(bytes_taken(), kReportStep);
  static_cast<volatile char*>(memory)[7 * kReportStep] = 1;
  ::munmap(memory, 8 * kReportStep);
}

TEST_F(Directory, AChildThatOutlivesItsParentHoldsNoEndedReport) {
  auto own = make_report();
  const std::string name = own.name;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();  // has the descriptor of the report, and its lock
  if (child == 0) {
    writing.reset();
    char c;
    while (::read(reading.get(), &c, 1) > 0) {
    }
    ::_exit(0);
  }
  directory().end(own);
  EXPECT_FALSE(ReportDirectory::is_held(directory().open_report(name, O_RDONLY).get()));
  writing.reset();
  ::waitpid(child, nullptr, 0);
}

TEST_F(Directory, ClearsReportsThatEndedMoreThanAnHourAgo) {
  const std::string old = put_ended(kHour + 5), fresh = put_ended(kHour - 60);
  put_file("9.calls", "of an older version", kHour + 5);
  put_file("notes", "no report", kHour + 5);
  directory().clear();
  EXPECT_THAT(names(), ElementsAre(fresh));
  EXPECT_TRUE(exists("notes"));
}

TEST_F(Directory, NeverClearsTheReportOfALivingProcess) {
  const auto own = make_report();
  set_age(own.name, 100 * kHour);
  for (std::size_t i = 0; i < ReportDirectory::kMostEnded + 3; ++i) put_ended(10);
  directory().clear();
  directory().clear();
  EXPECT_TRUE(exists(own.name));
  EXPECT_EQ(names().size(), ReportDirectory::kMostEnded + 1) << "it is not one of the ended";
}

TEST_F(Directory, KeepsWhatADeadProcessLeftForAnHourFromWhenItIsFound) {
  const std::string dead = put_dead(100 * kHour);
  directory().clear();
  EXPECT_TRUE(exists(dead));
  EXPECT_EQ(read(dead)->header.ended, 1u);
  directory().clear();
  EXPECT_TRUE(exists(dead));
  set_age(dead, kHour + 5);
  directory().clear();
  EXPECT_FALSE(exists(dead));
}

TEST_F(Directory, TheOldestEndedOnesGoFirstWhenThereAreTooMany) {
  std::vector<std::string> ended;
  for (std::size_t i = 0; i < ReportDirectory::kMostEnded + 20; ++i) {
    ended.push_back(put_ended(1000 - static_cast<std::time_t>(i)));
  }
  directory().clear();
  ended.erase(ended.begin(), ended.begin() + 20);
  EXPECT_EQ(names(), ended);
}

TEST_F(Directory, RunningOnesTakeNoSpaceFromEndedOnes) {
  const std::string ended = put_ended(100);
  std::vector<ReportDirectory::Own> running;
  for (int i = 0; i < 70; ++i) {
    running.push_back(make_report());
    ASSERT_TRUE(directory().grow(running.back(), 4 * kReportStep));
  }
  directory(FreeSpace{32 * kMiB, 32 * kMiB}).clear();
  EXPECT_TRUE(exists(ended));
}

TEST_F(Directory, EndedOnesTakeNoMoreBytesThanTheirShare) {
  const std::string oldest = put_ended(100, 4 * kReportStep);
  for (int i = 0; i < 70; ++i) put_ended(50, 4 * kReportStep);
  EXPECT_GT(bytes_taken(), kMiB);
  // 1/32 of a container's 32 MiB.
  const FreeSpace small{32 * kMiB, 32 * kMiB};
  directory(small).clear();
  EXPECT_EQ(bytes_taken(), kMiB);
  EXPECT_FALSE(exists(oldest));
}

TEST_F(Directory, ClearsAmongAnyNumberOfFiles) {
  for (int i = 0; i < 5000; ++i) put_file("x" + std::to_string(i), "", 0);
  const std::string old = put_ended(kHour + 5);
  for (int i = 0; i < 5000; ++i) put_file("y" + std::to_string(i), "", 0);
  directory().clear();
  EXPECT_FALSE(exists(old));
}

TEST_F(Directory, ClearsWhatDiedWhileItMadeAReport) {
  put_file(".7-left.calls", "", 300);
  put_file(".8-busy.calls", "", 1);
  directory().clear();
  EXPECT_FALSE(exists(".7-left.calls"));
  EXPECT_TRUE(exists(".8-busy.calls"));
  EXPECT_THAT(names(), IsEmpty()) << "nobody sees a report that is being made";
}

TEST_F(Directory, ListsPlainFilesOnly) {
  ASSERT_EQ(::mkfifo((path_ + "/fifo.calls").c_str(), 0600), 0);
  std::filesystem::create_directory(path_ + "/directory.calls");
  std::filesystem::create_symlink("/etc/passwd", path_ + "/link.calls");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Directory, RefusesAReportWhereTheFileSystemIsNearlyFull) {
  const auto refused = directory({64 * kMiB, 15 * kMiB}).create(header());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("15.0 of 64.0 MiB are free"));
  EXPECT_THAT(refused.error().text, HasSubstr("CEPHEUS_REPORT_DIR"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Directory, NoReportGrowsWhereTheFileSystemIsNearlyFullOrBeyondItsShare) {
  const auto own = make_report();
  EXPECT_FALSE(directory({64 * kMiB, 15 * kMiB}).grow(own, 2 * kReportStep));
  EXPECT_TRUE(directory({64 * kMiB, 64 * kMiB}).grow(own, 16 * kReportStep));
  EXPECT_FALSE(directory({64 * kMiB, 64 * kMiB}).grow(own, 17 * kReportStep));
}

TEST_F(Directory, IsTheUsersOrTheGivenOne) {
  ::setenv("CEPHEUS_REPORT_DIR", "/elsewhere", 1);
  EXPECT_EQ(default_directory(), "/elsewhere");
  ::unsetenv("CEPHEUS_REPORT_DIR");
  EXPECT_EQ(default_directory(), "/dev/shm/cepheus-" + std::to_string(::getuid()));
}

TEST_F(Directory, GetsAnotherNameWhereAnotherUserHasTakenIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play other users: run the tests as root";
  const std::string wanted = path_ + "/cepheus-0";
  EXPECT_EQ(first_not_taken(wanted), wanted);
  for (const std::string& taken : {wanted, wanted + ".1"}) {
    ASSERT_EQ(::mkdir(taken.c_str(), 0777), 0);
    ASSERT_EQ(::chown(taken.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(ReportDirectory::make(taken));
  }
  const std::string name = first_not_taken(wanted);
  EXPECT_EQ(name, wanted + ".2");
  EXPECT_TRUE(ReportDirectory::make(name));
  EXPECT_EQ(first_not_taken(wanted), name) << "for all processes of the user";
}

TEST_F(Directory, RefusesADirectoryThatIsALink) {
  const std::string link = path_ + "/link";
  std::filesystem::create_directory_symlink("/tmp", link);
  const auto made = ReportDirectory::make(link);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text, HasSubstr("CEPHEUS_REPORT_DIR"));
}

TEST_F(Directory, EmptyFilesAreBoundedInNumber) {
  for (std::size_t i = 0; i < ReportDirectory::kMostEnded + 9; ++i) {
    put_file(std::to_string(i) + ".calls", "", 100);
  }
  EXPECT_EQ(bytes_taken(), 0u);
  directory().clear();
  EXPECT_EQ(names().size(), ReportDirectory::kMostEnded);
}

TEST_F(Directory, OneProcessClearsAtATime) {
  UniqueFd other(::open((path_ + "/.clearing").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(other.get(), LOCK_EX | LOCK_NB), 0);
  const std::string old = put_ended(kHour + 5);
  directory().clear();
  EXPECT_TRUE(exists(old)) << "the other one is at it";
  other.reset();
  directory().clear();
  EXPECT_FALSE(exists(old));
}

TEST_F(Directory, AProcessThatIsStoppedWhileItClearsHoldsNobodyUp) {
  UniqueFd other(::open((path_ + "/.clearing").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(other.get(), LOCK_EX | LOCK_NB), 0);
  set_age(".clearing", 61);
  const std::string old = put_ended(kHour + 5);
  directory().clear();
  EXPECT_FALSE(exists(old));
}

// Otherwise another process's clear() could remove it as a report without a writer.
TEST_F(Directory, AReportIsHeldFromTheMomentItIsSeen) {
  std::atomic<bool> done = false;
  std::atomic<int> seen = 0;
  int free = 0;
  std::thread other([&] {
    const ReportDirectory here = directory();
    while (!done) {
      for (const auto& entry : here.list()) {
        const UniqueFd file = here.open_report(entry.name, O_RDONLY);
        struct stat now {};
        const bool is_free = file.is_open() && !ReportDirectory::is_held(file.get());
        if (file.is_open() && ::fstat(file.get(), &now) == 0 && now.st_nlink > 0) {
          ++seen;
          if (is_free) ++free;
        }
      }
    }
  });
  const ReportDirectory here = directory();
  ReportDirectory::Own last = make_report();
  for (int i = 0; i < 20'000 || (seen == 0 && i < 1'000'000); ++i) {
    auto own = here.create(header());
    if (!own) break;
    ::unlink((path_ + "/" + last.name).c_str());
    last = std::move(*own);
  }
  done = true;
  other.join();
  EXPECT_EQ(free, 0) << "of " << seen;
  EXPECT_GT(seen, 0);
}

// Processes start and end at the same moments, with a tiny limit for ended ones: the clear() of one
// never removes the report of a running one.
TEST_F(Directory, ManyProcessesAtOnceLeaveEachOthersReportsAlone) {
  constexpr int kProcesses = 16, kRounds = 50;
  constexpr std::size_t kMayStay = 2;
  const FreeSpace space{32 * kMayStay * kReportStep, 32 * kMayStay * kReportStep};
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const ReportDirectory mine = directory(space);
      for (int round = 0; round < kRounds; ++round) {
        mine.clear();
        auto own = mine.create(header());
        // The first to be removed if it had ended.
        if (own) set_age(own->name, kHour / 2);
        mine.clear();
        if (!own || !exists(own->name)) ::_exit(1);
        mine.end(*own);
        mine.clear();
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  directory(space).clear();  // reports that ended while another process cleared
  EXPECT_EQ(names().size(), kMayStay);
}

}  // namespace
}  // namespace cepheus::reports
