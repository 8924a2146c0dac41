#include "collectives/group/messages.h"

#include <gtest/gtest.h>

#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

TEST(Messages, AreSentThoughTheirSenderIsGone) {
  fake::Mpi mpi(2);
  const Team sender = Team::all(mpi.communicator(0), -10);
  const Team receiver = Team::all(mpi.communicator(1), -10);
  std::uint64_t value = 42, received = 0;
  {
    Messages messages;
    ASSERT_EQ(messages.send(&value, sizeof value, 1, Tag::kReady, sender), Code::kDone);
  }
  value = 7;
  Messages messages;
  ASSERT_EQ(messages.receive(&received, sizeof received, 0, Tag::kReady, receiver), Code::kDone);
  mpi.deliver(mpi.deliverable().at(0));
  Code error = Code::kDone;
  EXPECT_TRUE(messages.test(error));
  EXPECT_EQ(error, Code::kDone);
  EXPECT_EQ(received, 42u);
}

// The last request of a communicator that the program has freed ends it, and with it other messages.
TEST(Messages, ThatWereForgottenMayDestroyTheirCommunicatorWhenTheyAreFreed) {
  fake::Mpi mpi(3);
  const Team first = Team::all(mpi.communicator(0), -10);
  const Team second = Team::all(mpi.communicator(2), -10);
  const std::uint64_t value = 42;
  auto inner = std::make_unique<Messages>();
  ASSERT_EQ(inner->send(&value, sizeof value, 1, Tag::kReady, second), Code::kDone);
  bool is_destroyed = false;
  mpi.communicator(0).object = std::shared_ptr<void>(nullptr, [&](void*) {
    inner.reset();
    is_destroyed = true;
  });
  ASSERT_EQ(Messages::post(&value, sizeof value, 1, Tag::kControl, first), Code::kDone);
  mpi.communicator(0).object.reset();
  ASSERT_EQ(mpi.sender(0), 2);
  mpi.deliver(1);
  EXPECT_FALSE(is_destroyed);
  ASSERT_EQ(Messages::post(&value, sizeof value, 1, Tag::kControl, second), Code::kDone);
  EXPECT_FALSE(is_destroyed) << "the caller may hold locks";
  Messages::free_completed();
  EXPECT_TRUE(is_destroyed);
}

}  // namespace
}  // namespace cepheus::coll
