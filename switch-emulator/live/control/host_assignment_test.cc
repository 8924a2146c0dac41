#include "switch-emulator/live/control/host_assignment.h"

#include <gmock/gmock.h>

#include <set>

namespace cepheus::live {
namespace {

using testing::HasSubstr;

constexpr fabric::ReservationId kJob = 0x1234, kOtherJob = 0x5678;
constexpr pid_t kLauncher = 42;
constexpr uid_t kUser = 1000, kOtherUser = 1001;

// Four hosts h0 to h3; tests mark their ports as taken.
class Assignment : public testing::Test, private HostAssignment::Ports {
 protected:
  static fabric::HostsWanted free_ones(std::uint32_t number) {
    return {.number = number, .names = ""};
  }
  static fabric::HostsWanted named(std::string names) { return {.names = std::move(names)}; }
  static fabric::AttachRequest hello(std::string host, fabric::ReservationId id = 0) {
    return {.host = std::move(host), .reservation = id};
  }
  static fabric::AttachRequest or_any(std::string host) {
    return {.host = std::move(host), .or_any = true};
  }
  // The name of the host that this client gets, or the reason why it gets none.
  std::string becomes(const fabric::AttachRequest& client, uid_t user = kUser) {
    const auto choice = assignment_.choose(client, user);
    return choice.status == fabric::WelcomeStatus::kGranted ? "h" + std::to_string(choice.host)
                                                            : choice.text;
  }
  // The hosts of a launcher, or the reason why it gets none.
  std::string gets(const fabric::HostsWanted& wanted, fabric::ReservationId id) {
    const auto reserved = assignment_.reserve(wanted, id, {kLauncher, kUser});
    return reserved.status == fabric::WelcomeStatus::kGranted ? reserved.names : reserved.text;
  }

  std::set<std::size_t> taken_;
  HostAssignment assignment_{{{"h0", wire::Ipv4(10, 0, 0, 1)},
                              {"h1", wire::Ipv4(10, 0, 0, 2)},
                              {"h2", wire::Ipv4(10, 0, 0, 3)},
                              {"h3", wire::Ipv4(10, 0, 0, 4)}},
                             *this};

 private:
  bool is_free(std::size_t host) override { return !taken_.contains(host); }
  std::string why_not_free(std::size_t) const override { return "is held by pid 7"; }
};

TEST_F(Assignment, FindsAHostByNameAddressAndIndexAndTheFirstFreeOne) {
  taken_ = {0};
  EXPECT_EQ(becomes(hello("h2")), "h2");
  EXPECT_EQ(becomes(hello("10.0.0.4")), "h3");
  EXPECT_EQ(becomes(hello("#1")), "h1");
  EXPECT_EQ(becomes(hello("")), "h1");
}

TEST_F(Assignment, NamesAHostsHolderAndTheKnownHosts) {
  taken_ = {0};
  EXPECT_EQ(becomes(hello("h0")), "host h0 is held by pid 7");
  for (const char* stranger : {"h9", "#4", "#", "#1x", "10.0.0.9"}) {
    EXPECT_THAT(becomes(hello(stranger)), HasSubstr("it has h0 .. h3")) << stranger;
  }
}

TEST_F(Assignment, GivesAClientOfAnyHostAFreeOne) {
  taken_ = {0, 1};
  EXPECT_EQ(becomes(or_any("#0")), "h2");
  EXPECT_EQ(becomes(or_any("h3")), "h3");
  EXPECT_THAT(becomes(or_any("#4")), HasSubstr("no host '#4'"));
  taken_ = {0, 1, 2, 3};
  EXPECT_THAT(becomes(or_any("#0")), HasSubstr("all 4 hosts of the fabric are taken"));
}

TEST_F(Assignment, KeepsReservedHostsForTheirJob) {
  ASSERT_EQ(gets(free_ones(2), kJob), "h0,h1");
  EXPECT_EQ(becomes(hello("")), "h2");
  EXPECT_EQ(becomes(or_any("#0")), "h2");
  EXPECT_THAT(becomes(hello("h1")), HasSubstr("host h1 is reserved by pid 42 for its job"));
  EXPECT_THAT(becomes(hello("h1", kOtherJob)), HasSubstr("is reserved by pid 42"));
  EXPECT_EQ(becomes(hello("h1", kJob)), "h1");
  taken_ = {1};
  EXPECT_EQ(becomes(hello("h1", kJob)), "host h1 is held by pid 7");
  taken_ = {2, 3};
  // A reserved host goes only to clients that name it.
  EXPECT_THAT(becomes(hello("", kJob)), HasSubstr("all 4 hosts"));
}

// The number may have leaked: it is in the environment of the job's processes.
TEST_F(Assignment, DeniesReservedHostsToAnotherUserThatKnowsTheNumber) {
  ASSERT_EQ(gets(free_ones(2), kJob), "h0,h1");
  EXPECT_THAT(becomes(hello("h1", kJob), kOtherUser), HasSubstr("is reserved by pid 42"));
  EXPECT_EQ(becomes(hello("h2", kJob), kOtherUser), "h2");
  EXPECT_EQ(becomes(hello("h1", kJob)), "h1");
}

TEST_F(Assignment, GivesTwoJobsDifferentHostsOrRefusesOne) {
  EXPECT_EQ(gets(free_ones(3), kJob), "h0,h1,h2");
  EXPECT_THAT(gets(free_ones(2), kOtherJob),
              HasSubstr("2 free hosts are wanted, and the fabric has 1 of 4"));
  EXPECT_EQ(becomes(hello("h3")), "h3");  // no host was reserved
  EXPECT_EQ(gets(free_ones(1), kOtherJob), "h3");
}

TEST_F(Assignment, ReservesAllFreeHostsWithoutANumber) {
  taken_ = {1};
  EXPECT_EQ(gets(free_ones(0), kJob), "h0,h2,h3");
  EXPECT_THAT(gets(free_ones(0), kOtherJob),
              HasSubstr("1 free host is wanted, and the fabric has 0 of 4"));
}

TEST_F(Assignment, ReservesHostsByNameInTheRequestedOrderOrNone) {
  EXPECT_EQ(gets(named("h3,10.0.0.1"), kJob), "h3,h0");
  EXPECT_THAT(gets(named("h1,h3"), kOtherJob), HasSubstr("host h3 is reserved by pid 42"));
  EXPECT_THAT(gets(named("h1,h1"), kOtherJob), HasSubstr("host h1 is named twice"));
  EXPECT_THAT(gets(named("h1,"), kOtherJob), HasSubstr("no host ''"));
  EXPECT_EQ(assignment_.reserved_by(1), std::nullopt);
}

TEST_F(Assignment, ReleasesAReservationAtItsEnd) {
  ASSERT_EQ(gets(free_ones(2), kJob), "h0,h1");
  ASSERT_EQ(gets(free_ones(1), kOtherJob), "h2");
  EXPECT_EQ(assignment_.reserved_by(0), kLauncher);
  assignment_.end(kJob);
  EXPECT_EQ(assignment_.reserved_by(0), std::nullopt);
  EXPECT_EQ(assignment_.reserved_by(2), kLauncher);
  EXPECT_EQ(becomes(hello("")), "h0");
}

}  // namespace
}  // namespace cepheus::live
