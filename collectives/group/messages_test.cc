#include "collectives/group/messages.h"

#include <gtest/gtest.h>

#include "collectives/fakes/fake_mpi.h"

namespace cepheus::coll {
namespace {

TEST(Messages, AreSentThoughTheirSenderIsGone) {
  fake::Mpi mpi(2);
  const Team sender = Team::all(mpi.communicator(0), -10);
  const Team receiver = Team::all(mpi.communicator(1), -10);
  std::uint64_t value = 42, heard = 0;
  {
    Messages messages;
    ASSERT_EQ(messages.send(&value, sizeof value, 1, Tag::kReady, sender), Code::kDone);
  }
  value = 7;
  Messages messages;
  ASSERT_EQ(messages.receive(&heard, sizeof heard, 0, Tag::kReady, receiver), Code::kDone);
  mpi.deliver(mpi.deliverable().at(0));
  Code error = Code::kDone;
  EXPECT_TRUE(messages.test(error));
  EXPECT_EQ(error, Code::kDone);
  EXPECT_EQ(heard, 42u);
}

}  // namespace
}  // namespace cepheus::coll
