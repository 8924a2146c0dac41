// A program that knows UCT alone, over a live fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "libmcast/e2e/processes.h"

namespace cepheus::mcast::e2e {
namespace {

class UctBroadcast : public testing::Test {
 protected:
  UctBroadcast() { EXPECT_NE(mkdtemp(directory_), nullptr); }
  ~UctBroadcast() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + ("/" + name); }
  std::string output_of(int rank) const {
    std::ostringstream text;
    text << std::ifstream(path(std::to_string(rank))).rdbuf();
    return text.str();
  }
  // Each writes into a file of its own.
  void run(const Fabric& fabric, int ranks, const std::string& more = "") {
    std::vector<Process> processes;
    for (int i = 0; i < ranks; ++i) {
      const std::string command = std::string("exec " BROADCAST_EXAMPLE " " RC_MCAST " ") +
                                  std::to_string(i) + " " + std::to_string(ranks) + " " +
                                  path("socket" + std::to_string(ranks) + ".") + " " + more + " >" +
                                  path(std::to_string(i));
      processes.emplace_back(std::vector<std::string>{"/bin/sh", "-c", command}, 1,
                             on_host(fabric.socket(), i));
    }
    for (Process& process : processes) EXPECT_EQ(process.wait(60s), 0);
  }

 private:
  char directory_[24] = "/tmp/uct_test.XXXXXX";
};

class UctSourceChange : public UctBroadcast, public testing::WithParamInterface<const char*> {};

TEST_P(UctSourceChange, ReachesAllFromEachMemberInItsTurn) {
  const Fabric fabric = Fabric::lossy(
      4, 0.005, std::string("[[switch]]\nname = \"s0\"\nsource_change = \"") + GetParam() + "\"\n");
  run(fabric, 4);
  for (int rank = 0; rank < 4; ++rank) {
    std::string all;
    for (int source = 0; source < 4; ++source) {
      if (source == rank) continue;
      all += "rank " + std::to_string(rank) + " received: a line of rank " +
             std::to_string(source) + "\n";
    }
    EXPECT_EQ(output_of(rank), all);
  }
  EXPECT_TRUE(fabric.groups().empty()) << "the leader's endpoint unregisters the group";
}

INSTANTIATE_TEST_SUITE_P(All, UctSourceChange, testing::Values("rebase", "host-sync"),
                         [](const auto& how) {
                           return how.param == std::string("rebase") ? "Rebase" : "HostSync";
                         });

TEST_F(UctBroadcast, ServesTwoMembersAndEight) {
  for (const int ranks : {2, 8}) {
    const Fabric fabric = Fabric::of(ranks);
    run(fabric, ranks);
    EXPECT_THAT(output_of(0), testing::HasSubstr("a line of rank " + std::to_string(ranks - 1)));
  }
}

TEST_F(UctBroadcast, ReportsALostMember) {
  const Fabric fabric = Fabric::of(4);
  run(fabric, 4, "lose");
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(output_of(rank),
                testing::HasSubstr("rank " + std::to_string(rank) + ": a member was lost: "));
  }
}

}  // namespace
}  // namespace cepheus::mcast::e2e
