#include "nic-emulator/verbs/device/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace cepheus::verbs {
namespace {

using ::testing::HasSubstr;

class EnvironmentVariables : public ::testing::Test {
 protected:
  EnvironmentVariables() { clear(); }
  ~EnvironmentVariables() override { clear(); }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

  static void clear() {
    for (const char* name :
         {"CEPHEUS_FABRIC", "CEPHEUS_HOST", "CEPHEUS_HOSTS", "CEPHEUS_RESERVATION",
          "CEPHEUS_VERBOSE", "CEPHEUS_RANKS_PER_HOST", "CEPHEUS_CONGESTION", "CEPHEUS_NIC_PROFILE",
          "OMPI_COMM_WORLD_RANK", "OMPI_PARENT_PORT", "PMIX_RANK", "PMI_RANK", "PMI_SPAWNED",
          "SLURM_PROCID"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(EnvironmentVariables, NothingSetMeansAnyHostOfNoFabric) {
  const Environment e = Environment::read();
  EXPECT_EQ(e.fabric, "");
  EXPECT_EQ(e.host, "");
  EXPECT_TRUE(e.or_any);
  EXPECT_EQ(e.reservation, 0u);
  EXPECT_FALSE(e.is_rank);
  EXPECT_FALSE(e.verbose);
}

TEST_F(EnvironmentVariables, ARankWouldBeTheHostOfThatIndex) {
  set("PMI_RANK", "9");
  set("PMIX_RANK", "3");
  const Environment e = Environment::read();
  EXPECT_TRUE(e.is_rank);
  EXPECT_EQ(e.host, "#3");
  EXPECT_TRUE(e.or_any);
}

TEST_F(EnvironmentVariables, OfTheRanksOnAHostTheFirstHasItsPort) {
  set("CEPHEUS_RANKS_PER_HOST", "4");
  set("OMPI_COMM_WORLD_RANK", "8");
  EXPECT_EQ(Environment::read().host, "#2");
  EXPECT_EQ(Environment::read().refusal, "");
  set("OMPI_COMM_WORLD_RANK", "11");
  EXPECT_EQ(Environment::read().host, "#2");
  EXPECT_THAT(Environment::read().refusal, HasSubstr("rank 11 shares its host with rank 8"));
}

TEST_F(EnvironmentVariables, NameTheRanksHostsInTheirOrder) {
  set("CEPHEUS_HOSTS", "h4,h6,h5");
  set("CEPHEUS_RESERVATION", "00ff00000000a001");
  set("OMPI_COMM_WORLD_RANK", "1");
  Environment e = Environment::read();
  EXPECT_EQ(e.host, "h6");
  EXPECT_FALSE(e.or_any);
  EXPECT_EQ(e.reservation, 0x00ff'0000'0000'a001u);
  set("OMPI_COMM_WORLD_RANK", "2");
  EXPECT_EQ(Environment::read().host, "h5");
  set("OMPI_COMM_WORLD_RANK", "3");
  EXPECT_THAT(Environment::read().refusal, HasSubstr("has no host for rank 3"));
  set("CEPHEUS_RANKS_PER_HOST", "2");
  e = Environment::read();
  EXPECT_EQ(e.host, "h6");
  EXPECT_THAT(e.refusal, HasSubstr("rank 3 shares its host with rank 2"));
}

TEST_F(EnvironmentVariables, ListHostsForRanksOnly) {
  set("CEPHEUS_HOSTS", "h4,h6");
  const Environment e = Environment::read();
  EXPECT_EQ(e.host, "");
  EXPECT_TRUE(e.or_any);
}

// Spawned ranks count from 0 again, so their parents' hosts are not theirs.
TEST_F(EnvironmentVariables, SpawnedRanksTakeAnyHost) {
  struct Launcher {
    const char *rank, *mark, *value;
  };
  for (const Launcher& each :
       {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_PARENT_PORT", "1249574913.0:1563680542"},
        Launcher{"PMI_RANK", "PMI_SPAWNED", "1"}}) {
    clear();
    set("CEPHEUS_HOSTS", "h4,h6");
    set(each.rank, "1");
    set(each.mark, each.value);
    const Environment e = Environment::read();
    EXPECT_TRUE(e.is_rank) << each.mark;
    EXPECT_EQ(e.host, "") << each.mark;
    EXPECT_TRUE(e.or_any) << each.mark;
    EXPECT_EQ(e.refusal, "") << each.mark;
  }
}

TEST_F(EnvironmentVariables, TheUsersHostGoesBeforeTheRank) {
  set("OMPI_COMM_WORLD_RANK", "3");
  set("CEPHEUS_HOSTS", "h0,h1,h2,h3");
  set("CEPHEUS_RESERVATION", "a001");
  set("CEPHEUS_HOST", "h7");
  const Environment e = Environment::read();
  EXPECT_EQ(e.host, "h7");
  EXPECT_FALSE(e.or_any);
  EXPECT_EQ(e.reservation, 0xa001u);
}

TEST_F(EnvironmentVariables, ARankThatIsNoNumberIsIgnored) {
  set("PMIX_RANK", "wildcard");
  EXPECT_FALSE(Environment::read().is_rank);
  EXPECT_EQ(Environment::read().host, "");
}

TEST_F(EnvironmentVariables, VerboseZeroIsQuiet) {
  set("CEPHEUS_VERBOSE", "0");
  EXPECT_FALSE(Environment::read().verbose);
  set("CEPHEUS_VERBOSE", "1");
  EXPECT_TRUE(Environment::read().verbose);
}

class FabricSocket : public ::testing::Test {
 protected:
  FabricSocket() {
    char pattern[] = "/tmp/cepheus-environment-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    path_ = directory_ / "fabric";
  }
  ~FabricSocket() override {
    if (fd_ >= 0) ::close(fd_);
    std::filesystem::remove_all(directory_);
  }
  void listen(int type) {
    fd_ = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (type != SOCK_DGRAM) {
      ASSERT_EQ(::listen(fd_, 1), 0);
    }
  }
  bool listens() { return fabric_listens(path_.string(), reason_); }

  std::filesystem::path directory_, path_;
  int fd_ = -1;
  std::string reason_;
};

TEST_F(FabricSocket, IsRecognisedWithoutDisturbingTheListener) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    listen(type);
    EXPECT_TRUE(listens()) << reason_;
    pollfd pending{fd_, POLLIN, 0};
    EXPECT_EQ(::poll(&pending, 1, 0), 0);  // no connection waits
    ::close(fd_);
    std::filesystem::remove(path_);
  }
  fd_ = -1;
}

TEST_F(FabricSocket, IsRefusedWithTheReasonIfMissingOrDeadOrAnotherFile) {
  EXPECT_FALSE(listens());
  EXPECT_THAT(reason_, HasSubstr("no such socket; start cepheus-switch"));

  listen(SOCK_SEQPACKET);
  ::close(fd_);
  fd_ = -1;
  EXPECT_FALSE(listens());
  EXPECT_THAT(reason_, HasSubstr("no fabric serves this socket any more"));

  std::filesystem::remove(path_);
  listen(SOCK_DGRAM);
  EXPECT_FALSE(listens());
  EXPECT_THAT(reason_, HasSubstr("not a fabric's socket"));

  path_ = std::string(200, 'x');
  EXPECT_FALSE(listens());
  EXPECT_THAT(reason_, HasSubstr("use a shorter one"));
}

}  // namespace
}  // namespace cepheus::verbs
