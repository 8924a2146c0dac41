// Eager and bulk lanes through the C API, over the fake device: buffers, bounds, callbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/recovery.h>
#include <mcast/write.h>

#include <array>
#include <cstring>

#include "libmcast/fake_group.h"

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;

std::string text_of(const fake::Posted& posted) {
  return {static_cast<const char*>(posted.address), posted.length};
}

class EagerLaneOverFake : public FakeGroup {
 protected:
  EagerLaneOverFake() { make_active(MCAST_LANE_EAGER); }
};

TEST_F(EagerLaneOverFake, CopiesWhatItSends) {
  char data[] = "before";
  ASSERT_EQ(mcast_send_eager(group_, data, 6, 5), MCAST_OK);
  std::memcpy(data, "after!", 6);
  ASSERT_EQ(pair().sends.size(), 1u);
  EXPECT_EQ(text_of(pair().sends.front()), "before");
  EXPECT_EQ(pair().sends.front().imm, 5u);
  ASSERT_EQ(mcast_send_eager(group_, nullptr, 0, 6), MCAST_OK);
  EXPECT_EQ(pair().sends.back().length, 0u);
}

TEST_F(EagerLaneOverFake, HasSoManyBuffersAsMayBeUnacknowledged) {
  for (unsigned i = 0; i < kDepth; ++i) ASSERT_EQ(mcast_send_eager(group_, kData, 8, i), MCAST_OK);
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 9), MCAST_ERR_AGAIN);
  EXPECT_EQ(mcast_group_outstanding(group_), kDepth);
  complete_send();
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 9), MCAST_OK);
  EXPECT_EQ(attr().messages_sent, kDepth + 1);
}

TEST_F(EagerLaneOverFake, RefusesWhatDoesNotFit) {
  EXPECT_EQ(mcast_send_eager(group_, buffer_, 65, 0), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("send it on a bulk lane"));
  const auto too_much = [](void*, void*) -> size_t { return 65; };
  EXPECT_EQ(mcast_send_eager_pack(group_, too_much, nullptr, 0, nullptr), MCAST_ERR_INVALID);
  EXPECT_TRUE(pair().sends.empty());
  for (unsigned i = 0; i < kDepth; ++i) {
    EXPECT_EQ(mcast_send_eager(group_, kData, 8, 0), MCAST_OK) << "no buffer was lost";
  }
}

TEST_F(EagerLaneOverFake, HandsDataOverInOrderAndPostsTheBufferAgain) {
  device_.deliver(pair(), "one", 1);
  deliver("two", 2);
  ASSERT_EQ(received_.size(), 2u);
  EXPECT_EQ(received_[0].data, "one");
  EXPECT_EQ(received_[1].imm, 2u);
  EXPECT_EQ(pair().receives.size(), kDepth);
}

TEST_F(EagerLaneOverFake, LeavesABufferToWhoeverKeepsIt) {
  answer_ = MCAST_INPROGRESS;
  deliver("kept", 1);
  EXPECT_EQ(pair().receives.size(), kDepth - 1);
  std::memset(static_cast<char*>(received_[0].at) - MCAST_RECV_HEADROOM, 1, MCAST_RECV_HEADROOM);
  mcast_recv_release(group_, received_[0].at);
  EXPECT_EQ(pair().receives.size(), kDepth);
  mcast_recv_release(group_, received_[0].at);
  EXPECT_EQ(pair().receives.size(), kDepth) << "given back twice";
  mcast_recv_release(group_, buffer_);
  EXPECT_EQ(pair().receives.size(), kDepth) << "never given out";
}

// Unacknowledged messages of a failed group can be sent another way.
TEST_F(EagerLaneOverFake, KeepsWhatNotAllMayHaveReceived) {
  for (const char* text : {"first!", "second", "third!"}) {
    ASSERT_EQ(mcast_send_eager(group_, text, 6, 3), MCAST_OK);
  }
  complete_send();
  const void* data = nullptr;
  size_t length = 0;
  std::uint32_t imm = 0;
  EXPECT_EQ(mcast_group_unacknowledged(group_, 0, &data, &length, &imm), MCAST_ERR_INVALID)
      << "the group stands";
  complete_send(IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(mcast_group_unacknowledged(group_, 0, &data, &length, &imm), MCAST_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(data), length), "second");
  ASSERT_EQ(mcast_group_unacknowledged(group_, 1, &data, &length, &imm), MCAST_OK);
  EXPECT_EQ(std::string(static_cast<const char*>(data), length), "third!");
  EXPECT_EQ(mcast_group_unacknowledged(group_, 2, &data, &length, &imm), MCAST_ERR_INVALID);
}

TEST_F(FakeGroup, EagerBuffersAreBounded) {
  open({.time_limit_ms = 0, .max_eager_memory = 1000});
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_NO_MEMORY);
  EXPECT_THAT(mcast_last_error(), HasSubstr("raise max_eager_memory"));
  EXPECT_TRUE(device_.pairs.back() == nullptr) << "nothing is left of it";
}

class BulkLaneOverFake : public FakeGroup {
 protected:
  BulkLaneOverFake() { make_active(MCAST_LANE_BULK); }
};

TEST_F(BulkLaneOverFake, SendsFromTheCallersMemoryAndCompletesWhenAllHaveIt) {
  Op op;
  ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 4, &op), MCAST_INPROGRESS);
  EXPECT_EQ(pair().sends.front().address, kData);
  EXPECT_EQ(device_.regions, 1u) << "registered for the operation";
  EXPECT_EQ(op.calls, 0);
  complete_send();
  EXPECT_EQ(op.status, MCAST_OK);
  EXPECT_EQ(op.length, 8u);
  EXPECT_EQ(op.calls, 1);
  EXPECT_EQ(device_.regions, 0u);
}

TEST_F(BulkLaneOverFake, ReceivesInTheOrderPosted) {
  Op first, second;
  ASSERT_EQ(mcast_recv(group_, buffer_, 16, nullptr, &first), MCAST_INPROGRESS);
  ASSERT_EQ(mcast_recv(group_, buffer_ + 16, 16, nullptr, &second), MCAST_INPROGRESS);
  deliver("short", 4);
  EXPECT_EQ(first.status, MCAST_OK);
  EXPECT_EQ(first.length, 5u);
  EXPECT_EQ(first.imm, 4u);
  EXPECT_EQ(second.calls, 0);
  EXPECT_EQ(attr().recvs_posted, 1u);
  EXPECT_EQ(std::string(buffer_, 5), "short");
  drop();  // before the operations
}

TEST_F(BulkLaneOverFake, TakesMemoryThatCoversTheBufferOnly) {
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(context_, buffer_, 64, &memory), MCAST_OK);
  Op op;
  EXPECT_EQ(mcast_send(group_, buffer_ + 32, 33, memory, 0, &op), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("not inside the registered memory"));
  EXPECT_EQ(mcast_send(group_, buffer_ + 32, 32, memory, 0, &op), MCAST_INPROGRESS);
  EXPECT_EQ(device_.regions, 1u) << "the caller's";
  complete_send();
  mcast_mem_deregister(memory);
  EXPECT_EQ(device_.regions, 0u);
}

TEST_F(BulkLaneOverFake, SendsFromMemoryThatMayOnlyBeReadAndReceivesNothingThere) {
  device_.is_memory_read_only = true;
  mcast_mem_h memory = nullptr;
  ASSERT_EQ(mcast_mem_register(context_, buffer_, 64, &memory), MCAST_OK);
  EXPECT_EQ(device_.registrations.back(), 0u);
  Op registered, unregistered;
  EXPECT_EQ(mcast_send(group_, buffer_, 64, memory, 0, &registered), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_send(group_, buffer_, 64, nullptr, 0, &unregistered), MCAST_INPROGRESS);
  Op refused;
  EXPECT_EQ(mcast_recv(group_, buffer_, 64, memory, &refused), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("can't be written to"));
  EXPECT_EQ(mcast_recv(group_, buffer_, 64, nullptr, &refused), MCAST_ERR_INVALID);
  mcast_mem_h shared = nullptr;
  EXPECT_EQ(mcast_mem_register_writable(context_, buffer_, 64, &shared), MCAST_ERR_INVALID);
  device_.complete_send(pair());
  complete_send();
  mcast_mem_deregister(memory);
  EXPECT_EQ(device_.regions, 0u);
}

TEST_F(BulkLaneOverFake, HasAsManyOperationsAsItsDepths) {
  Op ops[2 * kDepth], one_more;
  for (unsigned i = 0; i < kDepth; ++i) {
    ASSERT_EQ(mcast_send(group_, kData, 8, nullptr, 0, &ops[i]), MCAST_INPROGRESS);
    ASSERT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &ops[kDepth + i]), MCAST_INPROGRESS);
  }
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 0, &one_more), MCAST_ERR_AGAIN);
  EXPECT_EQ(mcast_recv(group_, buffer_, 8, nullptr, &one_more), MCAST_ERR_AGAIN);
  drop();
  for (const Op& op : ops) EXPECT_EQ(op.status, MCAST_ERR_CANCELED);
  EXPECT_EQ(one_more.calls, 0);
}

TEST_F(BulkLaneOverFake, ADeviceThatRefusesCostsNothingButTheCall) {
  device_.sends_left = 0;
  Op op;
  EXPECT_EQ(mcast_send(group_, kData, 8, nullptr, 0, &op), MCAST_ERR_FABRIC);
  EXPECT_EQ(op.calls, 0);
  EXPECT_EQ(device_.regions, 0u);
}

TEST_F(BulkLaneOverFake, RefusesEagerCalls) {
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 0), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_send(group_, kData, (std::size_t{1} << 30) + 1, nullptr, 0, nullptr),
            MCAST_ERR_INVALID);
}

// The fake device has a path MTU of 1024.
class NarrowWay : public FakeGroup {
 protected:
  static constexpr std::uint32_t kWindow = 4;
  mcast_status_t send(std::size_t bytes, Op& op) {
    return mcast_send(group_, memory_.data(), bytes, nullptr, 0, &op);
  }
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(16 * 1024);
};

TEST_F(NarrowWay, TakesAsManyPacketsAsItsSwitchAnnounces) {
  make_active(MCAST_LANE_BULK, kWindow);
  EXPECT_EQ(attr().window, kWindow);
  EXPECT_EQ(attr().portion, 2 * 1024u);
  Op first, second, third;
  EXPECT_EQ(send(2 * 1024, first), MCAST_INPROGRESS);
  EXPECT_EQ(send(2 * 1024, second), MCAST_INPROGRESS);
  EXPECT_EQ(send(1, third), MCAST_ERR_AGAIN);
  EXPECT_THAT(mcast_last_error(), HasSubstr("4 packets may be under way"));
  inject_window(wire::MrpType::kRefresh, 5);
  EXPECT_EQ(attr().window, 5u);
  EXPECT_EQ(attr().portion, 2 * 1024u) << "all members have the same portion";
  EXPECT_EQ(send(1, third), MCAST_INPROGRESS);
  complete_send();
  EXPECT_EQ(first.status, MCAST_OK);
  drop();
}

TEST_F(NarrowWay, RefusesAMessageThatIsLongerAndNamesTheLimit) {
  make_active(MCAST_LANE_BULK, kWindow);
  EXPECT_EQ(attr().max_message, 4 * 1024u);
  Op op;
  EXPECT_EQ(send(4 * 1024 + 1, op), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a queue on the way takes 4 packets, so 4096 at most"));
  EXPECT_EQ(send(4 * 1024, op), MCAST_INPROGRESS);
  drop();  // before the operation goes
}

// The data moves while the program makes no calls.
TEST_F(NarrowWay, GetsAllAtOnceFromANicThatKeepsToIt) {
  device_.window = kWindow;
  open({});
  make_active(MCAST_LANE_BULK, kWindow);
  EXPECT_EQ(attr().portion, 2 * 1024u) << "all members have the same portion";
  EXPECT_EQ(attr().max_message, device_.max_message);
  Op sent, written, third;
  EXPECT_EQ(send(16 * 1024, sent), MCAST_INPROGRESS);
  EXPECT_EQ(mcast_write(group_, memory_.data(), 16 * 1024, nullptr, 7, 0, nullptr, &written),
            MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), 2u);
  EXPECT_EQ(pair().sends.back().length, 16 * 1024u);
  inject_window(wire::MrpType::kRefresh, kWindow - 1);
  EXPECT_EQ(send(1, third), MCAST_ERR_AGAIN);
  complete_send();
  complete_send();
  EXPECT_EQ(send(1, third), MCAST_INPROGRESS);
  drop();
}

TEST_F(NarrowWay, TakesEagerMessagesOneByOne) {
  make_active(MCAST_LANE_EAGER, 1);
  ASSERT_EQ(mcast_send_eager(group_, kData, 8, 0), MCAST_OK);
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 0), MCAST_ERR_AGAIN);
  complete_send();
  EXPECT_EQ(mcast_send_eager(group_, kData, 8, 0), MCAST_OK);
}

class WriteInParts : public NarrowWay {
 protected:
  WriteInParts() { make_active(MCAST_LANE_BULK, kWindow); }
  mcast_status_t write(std::size_t bytes) {
    return mcast_write(group_, memory_.data(), bytes, nullptr, 7, 100, &kImm, &op_);
  }
  static constexpr std::uint32_t kImm = 5;
  Op op_;
};

TEST_F(WriteInParts, IsOneWriteForItsCallerAndItsReceivers) {
  ASSERT_EQ(write(7 * 1024), MCAST_INPROGRESS);
  Op other;
  EXPECT_EQ(send(8, other), MCAST_ERR_AGAIN) << "it would come before the last part";
  std::size_t offset = 0;
  for (const std::size_t length : {2048, 2048, 2048, 1024}) {
    EXPECT_EQ(op_.status, MCAST_INPROGRESS);
    ASSERT_FALSE(pair().sends.empty());
    EXPECT_LE(pair().sends.size(), 2u);
    const fake::Posted& part = pair().sends.front();
    EXPECT_EQ(part.length, length);
    EXPECT_EQ(part.address, memory_.data() + offset);
    EXPECT_EQ(part.remote_address, 100 + offset);
    EXPECT_EQ(part.opcode, length == 1024 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
    offset += length;
    complete_send();
  }
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(op_.length, 7 * 1024u);
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(attr().messages_sent, 1u);
  EXPECT_EQ(send(8, other), MCAST_INPROGRESS);
  drop();
}

TEST_F(NarrowWay, IsFilledByTheShortPartsOfAWrite) {
  make_active(MCAST_LANE_BULK, 512);
  constexpr std::size_t kPart = 64 * 1024;  // the longest portion
  memory_.resize(9 * kPart);
  Op op;
  ASSERT_EQ(mcast_write(group_, memory_.data(), memory_.size(), nullptr, 7, 0, nullptr, &op),
            MCAST_INPROGRESS);
  EXPECT_EQ(pair().sends.size(), 8u);
  drop();
}

// Each has parts under way from its beginning, so the ends of its parts post the others.
TEST_F(NarrowWay, TakesWritesInPartsOneBehindTheOther) {
  make_active(MCAST_LANE_BULK, 640);
  memory_.resize(std::size_t{10} * 64 * 1024);
  std::array<Op, 20> ops;
  for (Op& op : ops) {
    mcast_status_t status = MCAST_ERR_AGAIN;
    for (int tries = 0; tries < 20 && status == MCAST_ERR_AGAIN; ++tries) {
      status = mcast_write(group_, memory_.data(), memory_.size(), nullptr, 7, 0, nullptr, &op);
      if (status == MCAST_ERR_AGAIN) complete_send();
    }
    EXPECT_EQ(status, MCAST_INPROGRESS);
    EXPECT_FALSE(pair().sends.empty());
    if (HasFailure()) break;
  }
  while (!pair().sends.empty()) complete_send();
  for (const Op& op : ops) {
    EXPECT_EQ(op.status, MCAST_OK);
    EXPECT_EQ(op.calls, 1);
  }
  EXPECT_EQ(attr().sends_outstanding, 0u);
  drop();  // before the operations go
}

// All parts of the first one have been posted, and some of the second one.
TEST_F(NarrowWay, EndsWritesInPartsInTheirOrder) {
  constexpr std::size_t kPart = 64 * 1024;
  memory_.resize(9 * kPart);
  for (const bool is_refused : {false, true}) {
    make_active(MCAST_LANE_BULK, 640);
    std::vector<const mcast_op_t*> ended;
    const auto note = [](mcast_op_t* op, mcast_status_t, size_t, std::uint32_t) {
      static_cast<std::vector<const mcast_op_t*>*>(op->user)->push_back(op);
    };
    mcast_op_t first{note, &ended}, second{note, &ended};
    for (const auto& [op, parts] : {std::pair(&first, 3), std::pair(&second, 9)}) {
      ASSERT_EQ(mcast_write(group_, memory_.data(), parts * kPart, nullptr, 7, 0, nullptr, op),
                MCAST_INPROGRESS);
    }
    device_.sends_left = is_refused ? 0 : -1;
    device_.complete_send(pair(), is_refused ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
    progress();
    device_.sends_left = -1;
    EXPECT_EQ(ended, (std::vector<const mcast_op_t*>{&first, &second}));
    drop();
  }
}

TEST_F(WriteInParts, EndsOnceIfAPartFails) {
  ASSERT_EQ(write(16 * 1024), MCAST_INPROGRESS);
  complete_send(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
}

TEST_F(WriteInParts, EndsWithItsGroup) {
  ASSERT_EQ(write(16 * 1024), MCAST_INPROGRESS);
  drop();
  EXPECT_EQ(op_.status, MCAST_ERR_CANCELED);
  EXPECT_EQ(op_.calls, 1);
}

TEST_F(WriteInParts, EndsIfTheDeviceRefusesAPart) {
  ASSERT_EQ(write(16 * 1024), MCAST_INPROGRESS);
  device_.sends_left = 0;
  complete_send();
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(op_.calls, 1);
}

}  // namespace
}  // namespace cepheus::mcast
