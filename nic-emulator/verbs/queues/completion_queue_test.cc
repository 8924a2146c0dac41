#include "nic-emulator/verbs/queues/completion_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace cepheus::verbs {
namespace {

class Queue : public ::testing::Test {
 protected:
  bool push(std::uint64_t wr_id, bool solicited = false, WcStatus status = WcStatus::kSuccess,
            Qpn qpn = Qpn(1)) {
    Completion entry;
    entry.wr_id = wr_id;
    entry.qpn = qpn;
    entry.solicited = solicited;
    entry.status = status;
    return queue_.push(entry);
  }
  static constexpr Qpn kOther{2};
  bool push_of_other(std::uint64_t wr_id) { return push(wr_id, false, WcStatus::kSuccess, kOther); }
  std::vector<std::uint64_t> take(int most) {
    std::vector<std::uint64_t> ids;
    queue_.take(most, [&](const Completion& e) { ids.push_back(e.wr_id); });
    return ids;
  }
  bool is_readable() const {
    pollfd want{channel_->fd(), POLLIN, 0};
    return ::poll(&want, 1, 0) == 1;
  }
  // Fetches one event without waiting.
  void* fetch() { return is_readable() ? channel_->take() : nullptr; }

  std::atomic<int> armed_{0};
  std::unique_ptr<CompletionChannel> channel_ = *CompletionChannel::create();
  int owner_ = 0;
  CompletionQueue queue_{4, channel_.get(), &owner_, armed_};
};

TEST_F(Queue, GivesCompletionsInOrderAndRefusesOneTooMany) {
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(push(i));
  EXPECT_FALSE(push(4));
  EXPECT_EQ(take(3), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_TRUE(push(5));
  EXPECT_EQ(take(16), (std::vector<std::uint64_t>{3, 5}));
  EXPECT_TRUE(queue_.is_empty());
}

TEST_F(Queue, ReportsItsOverrunOnce) {
  EXPECT_TRUE(queue_.report_overrun());
  EXPECT_FALSE(queue_.report_overrun());
}

TEST_F(Queue, NotifiesOncePerArming) {
  push(0);
  EXPECT_FALSE(is_readable());
  take(1);
  queue_.arm(false);
  EXPECT_EQ(armed_, 1);
  push(1);
  EXPECT_EQ(armed_, 0);
  EXPECT_EQ(fetch(), &owner_);
  push(2);
  EXPECT_FALSE(is_readable());
}

TEST_F(Queue, NotifiesAtOnceIfACompletionCameUnseenBeforeArming) {
  push(0);
  queue_.arm(false);
  EXPECT_EQ(fetch(), &owner_);
  EXPECT_EQ(armed_, 0);
}

TEST_F(Queue, IsSilentAboutAnnouncedCompletions) {
  queue_.arm(false);
  push(0);
  EXPECT_EQ(fetch(), &owner_);
  queue_.arm(false);  // 0 is still unpolled, but it has been announced
  EXPECT_FALSE(is_readable());
  push(1);
  EXPECT_EQ(fetch(), &owner_);
}

TEST_F(Queue, IsSilentAboutTakenCompletions) {
  push(0);
  take(1);
  queue_.arm(false);
  EXPECT_FALSE(is_readable());
}

TEST_F(Queue, ArmedForSolicitedIgnoresOthersButNotFailures) {
  queue_.arm(true);
  push(0);
  EXPECT_FALSE(is_readable());
  push(1, true);
  EXPECT_EQ(fetch(), &owner_);
  queue_.arm(true);
  push(2, false, WcStatus::kFlush);
  EXPECT_EQ(fetch(), &owner_);
}

TEST_F(Queue, ArmingForSolicitedDoesNotWeakenArmingForAll) {
  queue_.arm(false);
  queue_.arm(true);
  push(0);
  EXPECT_EQ(fetch(), &owner_);
}

TEST_F(Queue, RetiringWithdrawsItsEventAndReturnsTheFetchedCount) {
  queue_.arm(false);
  push(0);
  fetch();
  take(1);
  queue_.arm(false);
  push(1);
  ASSERT_TRUE(is_readable());
  EXPECT_EQ(queue_.retire(), 1u);
  EXPECT_FALSE(is_readable());
}

// The program may destroy the channel as soon as no queue counts as its user.
TEST_F(Queue, LeavesItsChannelAloneOnceItHasRetired) {
  queue_.retire();
  queue_.arm(false);
  EXPECT_EQ(armed_, 0);
  push(0);
  EXPECT_FALSE(is_readable());
  channel_.reset();
}

TEST_F(Queue, ChannelServesItsQueuesInTurn) {
  int second_owner = 0;
  CompletionQueue second(4, channel_.get(), &second_owner, armed_);
  second.arm(false);
  second.push({});
  queue_.arm(false);
  push(0);
  EXPECT_EQ(fetch(), &second_owner);
  EXPECT_EQ(fetch(), &owner_);
  EXPECT_FALSE(is_readable());
}

TEST_F(Queue, NonBlockingChannelReturnsEagainAndABlockingOneWaits) {
  const int flags = ::fcntl(channel_->fd(), F_GETFL);
  ::fcntl(channel_->fd(), F_SETFL, flags | O_NONBLOCK);
  errno = 0;
  EXPECT_EQ(channel_->take(), nullptr);
  EXPECT_EQ(errno, EAGAIN);

  ::fcntl(channel_->fd(), F_SETFL, flags);
  queue_.arm(false);
  std::jthread producer([&] { push(7); });
  EXPECT_EQ(channel_->take(), &owner_);
}

TEST_F(Queue, ForgetsCompletionsOfAQueuePairAndKeepsTheOrderOfOthers) {
  push(0);
  take(1);
  push_of_other(1);
  push(2);
  push_of_other(3);
  push(4);
  EXPECT_FALSE(push(5)) << "full";
  queue_.forget(kOther);
  EXPECT_TRUE(push(5));
  EXPECT_TRUE(push(6));
  EXPECT_EQ(take(16), (std::vector<std::uint64_t>{2, 4, 5, 6}));
  push_of_other(7);
  queue_.forget(kOther);
  EXPECT_TRUE(queue_.is_empty());
}

TEST_F(Queue, NotifiesOfACompletionThatStaysWhenOthersAreForgotten) {
  push(0, true);
  push_of_other(1);
  queue_.forget(kOther);
  queue_.arm(true);
  EXPECT_EQ(fetch(), &owner_);
}

TEST_F(Queue, IsSilentAboutForgottenCompletions) {
  push_of_other(0);
  queue_.forget(kOther);
  queue_.arm(false);
  EXPECT_FALSE(is_readable());
  push(1);
  EXPECT_EQ(fetch(), &owner_);
}

TEST_F(Queue, PositionsWrap) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(push(i));
    ASSERT_EQ(take(4), std::vector<std::uint64_t>{i});
  }
}

TEST_F(Queue, ResizedKeepsWaitingCompletionsInOrder) {
  ASSERT_TRUE(queue_.resize(8));
  for (std::uint64_t id = 1; id <= 6; ++id) ASSERT_TRUE(push(id));
  EXPECT_EQ(take(3), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_FALSE(queue_.resize(2)) << "three are waiting";
  ASSERT_TRUE(queue_.resize(4));
  EXPECT_EQ(queue_.capacity(), 4u);
  EXPECT_TRUE(push(7));
  EXPECT_FALSE(push(8));
  ASSERT_TRUE(queue_.resize(16));
  EXPECT_TRUE(push(9));
  EXPECT_EQ(take(10), (std::vector<std::uint64_t>{4, 5, 6, 7, 9}));
}

}  // namespace
}  // namespace cepheus::verbs
