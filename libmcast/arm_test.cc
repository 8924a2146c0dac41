// mcast_context_arm() over the fake device: completions wake a sleeping program, and other events
// do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/wait.h>
#include <poll.h>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;
using wire::MrpType;

bool is_readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

class ArmedContext : public FakeGroup {
 protected:
  ArmedContext() { make_active(MCAST_LANE_BULK); }
  int armed() {
    int fd = -1;
    EXPECT_EQ(mcast_context_arm(context_, &fd), MCAST_OK) << mcast_last_error();
    return fd;
  }
  void send(Op& op) { ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_INPROGRESS); }
};

TEST_F(ArmedContext, IsReadableOnceSomethingCompletesAndUntilArmedAgain) {
  Op first, second;
  send(first);
  send(second);
  const int fd = armed();
  EXPECT_FALSE(is_readable(fd));
  device_.complete_send(pair());
  EXPECT_TRUE(is_readable(fd));
  progress();
  EXPECT_EQ(first.status, MCAST_OK);
  EXPECT_EQ(armed(), fd);
  EXPECT_FALSE(is_readable(fd)) << "what woke once wakes no more";
  device_.complete_send(pair());
  EXPECT_TRUE(is_readable(fd));
  progress();
  EXPECT_EQ(second.status, MCAST_OK);
}

TEST_F(ArmedContext, ArmedTwiceWakesOnce) {
  Op op;
  send(op);
  const int fd = armed();
  EXPECT_EQ(armed(), fd);
  device_.complete_send(pair());
  EXPECT_TRUE(is_readable(fd));
  progress();
  armed();
  EXPECT_FALSE(is_readable(fd));
}

TEST_F(ArmedContext, LooksAtControlMessagesInTheNextCall) {
  mcast_progress(context_);
  device_.inject(kLeader, about(MrpType::kUnregister));
  armed();
  mcast_progress(context_);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_CANCELED) << attr().reason;
}

TEST_F(ArmedContext, IsNotArmedInACallback) {
  struct Arming : mcast_op_t {
    mcast_context_h context = nullptr;
    mcast_status_t status = MCAST_OK;
  } op;
  op.context = context_;
  op.done = [](mcast_op_t* self, mcast_status_t, size_t, uint32_t) {
    auto& arming = *static_cast<Arming*>(self);
    int fd = -1;
    arming.status = mcast_context_arm(arming.context, &fd);
  };
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 1, &op), MCAST_INPROGRESS);
  complete_send();
  EXPECT_EQ(op.status, MCAST_ERR_AGAIN);
  EXPECT_THAT(mcast_last_error(), HasSubstr("not from a callback"));
}

TEST_F(FakeGroup, ADeviceWithoutCompletionChannelsIsReported) {
  mcast_context_destroy(context_);
  context_ = nullptr;
  device_.has_channels = false;
  open({});
  int fd = 0;
  EXPECT_EQ(mcast_context_arm(context_, &fd), MCAST_ERR_NO_DEVICE);
  EXPECT_EQ(fd, -1);
  EXPECT_THAT(mcast_last_error(), HasSubstr("poll mcast_progress()"));
}

}  // namespace
}  // namespace cepheus::mcast
