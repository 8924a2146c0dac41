// Reductions through the C API, over the fake device: slots, bounds, results, failures.
#include <gmock/gmock.h>
#include <mcast/recovery.h>
#include <mcast/write.h>

#include <string>
#include <utility>

#include "libmcast/fake_reductions.h"

namespace cepheus::mcast {
namespace {

using testing::HasSubstr;

TEST_F(ReductionLaneOverFake, PostsItsReceivesBeforeItContributes) {
  EXPECT_EQ(pair().receives.size(), kWindow);
  EXPECT_EQ(pair().receives.front().length, kMtu);
  EXPECT_EQ(
      mcast_reduce(group_, "12345678", nullptr, buffer_, nullptr, 8, MCAST_BOR, MCAST_UINT8, &op_),
      MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("not active yet"));
  become_active();
  EXPECT_EQ(attr().lane, MCAST_LANE_REDUCTION);
  EXPECT_EQ(attr().max_message, 8 * kMtu);
}

TEST_F(ReductionLaneOverFake, ReducesValues) {
  become_active();
  std::int64_t number = 0;
  ASSERT_EQ(
      mcast_reduce(group_, "12345678", nullptr, &number, nullptr, 1, MCAST_SUM, MCAST_INT64, &op_),
      MCAST_INPROGRESS);
  EXPECT_EQ(sent(0), "12345678");
  const ReductionUnits::Kind sum{arithmetic::Operation::kSum, arithmetic::Type::kInt64};
  EXPECT_EQ(pair().sends.front().imm, imm(0, sum));
  FakeGroup::deliver(std::string(8, '\1'), imm(0, sum));
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(number, 0x0101'0101'0101'0101);
}

TEST_F(ReductionLaneOverFake, RefusesOperationsThatSwitchesDoNotHave) {
  become_active();
  EXPECT_EQ(
      mcast_reduce(group_, "1234", nullptr, buffer_, nullptr, 1, MCAST_BOR, MCAST_FLOAT, &op_),
      MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("bitwise and logical operations with integers only"));
  EXPECT_EQ(mcast_reduce(group_, "1234", nullptr, buffer_, nullptr, 1,
                         static_cast<mcast_reduction_t>(0), MCAST_UINT8, &op_),
            MCAST_ERR_INVALID);
  EXPECT_EQ(
      mcast_reduce(group_, "1234", nullptr, buffer_, nullptr, 1, MCAST_SUM, MCAST_FLOAT, &op_),
      MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("floating_sums, or use mcast_gather()"));
  EXPECT_EQ(mcast_reduce(group_, "1", nullptr, buffer_, nullptr, SIZE_MAX / 4, MCAST_SUM,
                         MCAST_INT64, &op_),
            MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("count is too large"));
}

class FloatingSumsOverFake : public FakeGroup {
 protected:
  FloatingSumsOverFake() {
    reduction_ = {wire::MrpReduction::kOrdered, kMtu, kWindow};
    mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
    params.lane = MCAST_LANE_REDUCTION;
    params.reduction_window = kWindow;
    params.floating_sums = 1;
    make(params);
  }
  ~FloatingSumsOverFake() override { drop(); }

  Op op_;  // as long as the group
};

TEST_F(FloatingSumsOverFake, AreSentAsTheyAre) {
  become_active();
  double number = 1.5;
  ASSERT_EQ(
      mcast_reduce(group_, &number, nullptr, &number, nullptr, 1, MCAST_SUM, MCAST_DOUBLE, &op_),
      MCAST_INPROGRESS);
  const std::uint32_t imm = wire::ReductionImm{9, 9, kEpoch, 0}.value();
  EXPECT_EQ(pair().sends.front().imm, imm);
  const double sum = 3.25;
  FakeGroup::deliver(std::string(reinterpret_cast<const char*>(&sum), sizeof sum), imm);
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(number, sum);
}

// Each constant of the API has its code of the wire in the immediate data.
TEST_F(ReductionLaneOverFake, SendsTheCodeOfEachOperationAndType) {
  become_active();
  std::uint16_t unit = 0;
  const auto sent_as = [&](mcast_reduction_t operation, mcast_type_t type) {
    EXPECT_EQ(mcast_reduce(group_, "12345678", nullptr, buffer_, nullptr, 1, operation, type, &op_),
              MCAST_INPROGRESS);
    const std::uint32_t sent = pair().sends.front().imm;
    const std::string data = this->sent(0);
    complete_send();
    FakeGroup::deliver(data, sent);
    EXPECT_EQ(op_.status, MCAST_OK);
    EXPECT_EQ(wire::ReductionImm::from(sent).unit, unit++);
    return std::pair<int, int>(wire::ReductionImm::from(sent).operation,
                               wire::ReductionImm::from(sent).type);
  };
  const mcast_reduction_t operations[] = {MCAST_BOR,  MCAST_BAND, MCAST_BXOR, MCAST_LOR,
                                          MCAST_LAND, MCAST_LXOR, MCAST_MIN,  MCAST_MAX,
                                          MCAST_SUM,  MCAST_PROD};
  int code = 1;
  for (const mcast_reduction_t one : operations) {
    EXPECT_EQ(sent_as(one, MCAST_UINT16), std::pair(code++, 2));
  }
  const mcast_type_t types[] = {MCAST_UINT8, MCAST_INT8,   MCAST_UINT16, MCAST_INT16, MCAST_UINT32,
                                MCAST_INT32, MCAST_UINT64, MCAST_INT64,  MCAST_FLOAT, MCAST_DOUBLE};
  code = 0;
  for (const mcast_type_t one : types) EXPECT_EQ(sent_as(MCAST_MIN, one), std::pair(8 - 1, code++));
}

TEST_F(ReductionLaneOverFake, SendsItsBlockAmongZerosAndTakesAllBlocks) {
  become_active();
  ASSERT_EQ(mcast_gather(group_, "own", 3, 4, buffer_, 9, &op_), MCAST_INPROGRESS);
  ASSERT_EQ(pair().sends.size(), 1u);
  EXPECT_EQ(sent(0), std::string("\0\0\0\0own\0\0", 9));
  EXPECT_EQ(pair().sends.front().imm, imm(0));
  complete_send();
  EXPECT_EQ(op_.calls, 0) << "the switch has it, and perhaps no member";
  deliver(0, "leftownri");
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(op_.length, 9u);
  EXPECT_EQ(std::string(buffer_, 9), "leftownri");
  EXPECT_EQ(pair().receives.size(), kWindow);
  EXPECT_EQ(attr().messages_sent, 1u);
  EXPECT_EQ(attr().bytes_received, 9u);
}

TEST_F(ReductionLaneOverFake, MayHaveItsResultWhereItsContributionWas) {
  become_active(0, 256);
  data_.assign(600, 'a');
  ASSERT_EQ(mcast_reduce(group_, data_.data(), nullptr, data_.data(), nullptr, data_.size(),
                         MCAST_BOR, MCAST_UINT8, &op_),
            MCAST_INPROGRESS);
  deliver(0, std::string(256, 'b'));
  ASSERT_EQ(pair().sends.size(), 3u);
  EXPECT_EQ(sent(0), std::string(256, 'a')) << "a slot keeps it until the group has the result";
  EXPECT_EQ(sent(2), std::string(88, 'a'));
  deliver(1, std::string(256, 'b'));
  EXPECT_EQ(op_.calls, 0);
  deliver(2, std::string(88, 'b'));
  EXPECT_EQ(op_.status, MCAST_OK);
  EXPECT_EQ(data_, std::string(600, 'b'));
}

TEST_F(ReductionLaneOverFake, DividesABlockAmongPackets) {
  become_active(0, 256);
  data_.assign(600, '?');
  ASSERT_EQ(mcast_gather(group_, std::string(300, 'x').data(), 300, 250, data_.data(), 600, &op_),
            MCAST_INPROGRESS);
  EXPECT_EQ(sent(0), std::string(250, '\0') + std::string(6, 'x'));
  EXPECT_EQ(sent(1), std::string(256, 'x'));
  EXPECT_EQ(sent(2), std::string(38, 'x') + std::string(50, '\0'));
}

TEST_F(ReductionLaneOverFake, OfABarrierIsOnePacketWithoutBytes) {
  become_active();
  ASSERT_EQ(mcast_barrier(group_, &op_), MCAST_INPROGRESS);
  EXPECT_EQ(pair().sends.front().length, 0u);
  EXPECT_EQ(pair().sends.front().imm, imm(0, {}));
  FakeGroup::deliver("", imm(0, {}));
  EXPECT_EQ(op_.status, MCAST_OK);
}

TEST_F(ReductionLaneOverFake, HasAsManyPacketsUnderWayAsItsWindow) {
  become_active();
  for (unsigned i = 0; i < kWindow; ++i) {
    ASSERT_EQ(mcast_reduce(group_, "x", nullptr, &results_[i], nullptr, 1, MCAST_BOR, MCAST_UINT8,
                           &ops_[i]),
              MCAST_INPROGRESS);
  }
  EXPECT_EQ(mcast_reduce(group_, "x", nullptr, results_, nullptr, 1, MCAST_BOR, MCAST_UINT8,
                         &ops_[kWindow]),
            MCAST_ERR_AGAIN);
  EXPECT_THAT(mcast_last_error(), HasSubstr("mcast_progress()"));
  complete_send();
  EXPECT_EQ(mcast_barrier(group_, &ops_[kWindow]), MCAST_ERR_AGAIN) << "custody is no credit";
  deliver(0, "y");
  EXPECT_EQ(ops_[0].status, MCAST_OK);
  EXPECT_EQ(results_[0], 'y');
  EXPECT_EQ(mcast_barrier(group_, &ops_[kWindow]), MCAST_INPROGRESS);
  deliver(1, "z");
  EXPECT_EQ(ops_[1].status, MCAST_OK);
  EXPECT_EQ(ops_[2].calls, 0);
  EXPECT_EQ(mcast_barrier(group_, &ops_[0]), MCAST_ERR_AGAIN) << "its slot is being sent";
}

TEST_F(ReductionLaneOverFake, RefusesWhatItDoesNotServeAndNamesTheLimit) {
  become_active();
  data_.assign(8 * kMtu + 1, 'a');
  EXPECT_EQ(mcast_gather(group_, "x", 1, 0, data_.data(), data_.size(), &op_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a gather of 8193 bytes: at most 8192"));
  EXPECT_EQ(mcast_reduce(group_, data_.data(), nullptr, data_.data(), nullptr, 8 * kMtu, MCAST_BOR,
                         MCAST_UINT8, &op_),
            MCAST_INPROGRESS);
  EXPECT_EQ(mcast_gather(group_, "x", 2, 7, buffer_, 8, &op_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("inside of the result"));
  EXPECT_EQ(mcast_gather(group_, "x", 1, SIZE_MAX, buffer_, 8, &op_), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_gather(group_, nullptr, 1, 0, buffer_, 8, &op_), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_reduce(group_, "x", nullptr, nullptr, nullptr, 1, MCAST_BOR, MCAST_UINT8, &op_),
            MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_barrier(group_, nullptr), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_send_eager(group_, "x", 1, 0), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("an eager send on a reduction lane"));
  EXPECT_EQ(mcast_send(group_, "x", 1, nullptr, 0, &op_), MCAST_ERR_INVALID);
  EXPECT_EQ(mcast_region_publish(group_, 1, buffer_, 8), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("has no regions"));
  EXPECT_EQ(op_.calls, 0);
}

TEST_F(ReductionLaneOverFake, IsNoLongerThanAQueueOnTheWay) {
  become_active(4);
  EXPECT_EQ(attr().max_message, 4 * kMtu);
  data_.assign(4 * kMtu + 1, 'a');
  EXPECT_EQ(mcast_gather(group_, "x", 1, 0, data_.data(), data_.size(), &op_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a queue on the way takes 4 packets, so 4096 at most"));
  EXPECT_EQ(mcast_reduce(group_, data_.data(), nullptr, data_.data(), nullptr, 4 * kMtu, MCAST_BOR,
                         MCAST_UINT8, &op_),
            MCAST_INPROGRESS);
  EXPECT_EQ(mcast_barrier(group_, &ops_[0]), MCAST_ERR_AGAIN);
}

TEST_F(FakeGroup, ReductionsNeedTheirLane) {
  make_active(MCAST_LANE_BULK);
  Op op;
  EXPECT_EQ(mcast_barrier(group_, &op), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("a reduction on a bulk lane"));
}

TEST_F(FakeGroup, FloatingSumsAreOfReductionsAlone) {
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.floating_sums = 1;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("floating_sums: only of reduction lanes"));
}

TEST_F(FakeGroup, ReductionWindowsAreChecked) {
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.reduction_window = 64;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID);
  EXPECT_THAT(mcast_last_error(), HasSubstr("only of reduction lanes"));
  params.lane = MCAST_LANE_REDUCTION;
  for (const unsigned window : {4u, 100u, 512u}) {
    params.reduction_window = window;
    EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_INVALID) << window;
    EXPECT_THAT(mcast_last_error(), HasSubstr("a power of two from 8 to 256"));
  }
}

TEST_F(FakeGroup, ReductionSlotsFitPacketsOfItsSettingsIfThePortsMtuChanges) {
  bool is_first = true;
  device_.on_call = [&](const std::string& call) {
    if (call == "port" && !std::exchange(is_first, false)) device_.mtu = IBV_MTU_4096;
  };
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_REDUCTION;
  make(params);
  EXPECT_EQ(attr().path_mtu, kMtu);
  EXPECT_EQ(pair().receives.front().length, kMtu);
  device_.on_call = nullptr;
}

TEST_F(FakeGroup, ReductionSlotsAreBounded) {
  open({.time_limit_ms = 0, .max_eager_memory = 1000});
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_REDUCTION;
  EXPECT_EQ(mcast_group_create(context_, &params, &group_), MCAST_ERR_NO_MEMORY);
  EXPECT_THAT(mcast_last_error(), HasSubstr("raise max_eager_memory"));
}

TEST_F(ReductionLaneOverFake, FailsWithAResultThatItDoesNotWaitFor) {
  become_active();
  ASSERT_EQ(
      mcast_reduce(group_, "12345678", nullptr, buffer_, nullptr, 8, MCAST_BOR, MCAST_UINT8, &op_),
      MCAST_INPROGRESS);
  deliver(0, "1234567");
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_FABRIC);
  EXPECT_THAT(attr().reason, HasSubstr("the members have called different reductions"));
  progress();
  EXPECT_EQ(op_.calls, 1);
  EXPECT_EQ(op_.status, MCAST_ERR_FABRIC);
  EXPECT_EQ(std::string(buffer_, 8), std::string(8, '\0')) << "a wrong result was handed over";
}

TEST_F(ReductionLaneOverFake, EndsEachOperationOnceInOrderIfItsGroupFails) {
  become_active();
  ASSERT_EQ(
      mcast_reduce(group_, "x", nullptr, buffer_, nullptr, 1, MCAST_BOR, MCAST_UINT8, &ops_[0]),
      MCAST_INPROGRESS);
  for (const unsigned i : {1u, 2u}) {
    ASSERT_EQ(mcast_barrier(group_, &ops_[i]), MCAST_INPROGRESS);
  }
  device_.deliver(pair(), "y", imm(0));  // it had come before
  mcast_group_stop(group_, "told to");
  progress();
  EXPECT_EQ(ops_[0].status, MCAST_OK);
  EXPECT_EQ(buffer_[0], 'y');
  for (const unsigned i : {1u, 2u}) {
    EXPECT_EQ(ops_[i].calls, 1);
    EXPECT_EQ(ops_[i].status, MCAST_ERR_FABRIC);
    EXPECT_EQ(ops_[i].place, ops_[i - 1].place + 1);
  }
  EXPECT_EQ(mcast_barrier(group_, &ops_[1]), MCAST_ERR_FABRIC);
  EXPECT_EQ(ops_[1].calls, 1);
}

// All its receives have come back, so none is left that a failed queue pair could flush.
TEST_F(ReductionLaneOverFake, EndsItsOperationsIfTheDeviceRefusesEachReceive) {
  become_active();
  device_.receives_left = 0;
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    ASSERT_EQ(mcast_reduce(group_, "x", nullptr, buffer_ + i, nullptr, 1, MCAST_BOR, MCAST_UINT8,
                           &ops_[i]),
              MCAST_INPROGRESS);
    device_.deliver(pair(), "y", imm(i));
  }
  progress();
  EXPECT_EQ(ops_[0].status, MCAST_OK);
  for (std::uint32_t i = 1; i < kWindow; ++i) {
    EXPECT_EQ(ops_[i].calls, 1) << i;
    EXPECT_EQ(ops_[i].status, MCAST_ERR_FABRIC) << i;
  }
}

TEST_F(ReductionLaneOverFake, EndsItsOperationsWhenItsGroupIsDestroyed) {
  become_active();
  for (const unsigned i : {0u, 1u}) {
    ASSERT_EQ(mcast_barrier(group_, &ops_[i]), MCAST_INPROGRESS);
  }
  drop();
  for (const unsigned i : {0u, 1u}) {
    EXPECT_EQ(ops_[i].calls, 1);
    EXPECT_EQ(ops_[i].status, MCAST_ERR_CANCELED);
  }
  EXPECT_EQ(ops_[1].place, ops_[0].place + 1);
}

TEST_F(ReductionLaneOverFake, FailsIfTheDeviceRefusesAContribution) {
  become_active();
  ASSERT_EQ(mcast_barrier(group_, &ops_[0]), MCAST_INPROGRESS);
  device_.sends_left = 0;
  EXPECT_EQ(mcast_barrier(group_, &ops_[1]), MCAST_ERR_FABRIC);
  progress();
  EXPECT_EQ(ops_[0].status, MCAST_ERR_FABRIC);
  EXPECT_EQ(ops_[1].calls, 0) << "the call returned the error";
}

// The other members may have contributed, so the switch may answer the units that it took.
TEST_F(ReductionLaneOverFake, TakesNoResultOfACallThatTheDeviceRefusedInPart) {
  become_active();
  device_.sends_left = 3;
  device_.flushes_left = 0;  // the result comes before the receives are returned
  std::string memory(4 * kMtu, '.');
  EXPECT_EQ(mcast_gather(group_, nullptr, 0, 0, memory.data(), memory.size(), &ops_[0]),
            MCAST_ERR_FABRIC);
  deliver(0, std::string(kMtu, 'x'));
  progress();
  EXPECT_EQ(memory, std::string(4 * kMtu, '.'));
  EXPECT_EQ(ops_[0].calls, 0) << "the call returned the error";
}

TEST_F(ReductionLaneOverFake, RegistersItsKindAsALeader) {
  lead();
  EXPECT_EQ(registered().reduction,
            (wire::MrpReduction{wire::MrpReduction::kValues, kMtu, kWindow, true}));
  EXPECT_NE(registered().header.flags & wire::MrpHeader::kLossEnds, 0);
  reject(wire::MrpReject::kNoMemory);
  EXPECT_EQ(mcast_group_test(group_), MCAST_ERR_REJECTED);
  EXPECT_THAT(attr().reason, HasSubstr("lower reduction_window"));
}

}  // namespace
}  // namespace cepheus::mcast
