#include "pmpi/reduction.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "pmpi/calls.h"

namespace cepheus::pmpi {
namespace {

using coll::Collective;

constexpr Op kUnfitting = kMin + 1;
constexpr Datatype kUncommitted = kInt + 1;
constexpr int kRefused = 1;
bool are_one_address_refused = false;

// MPI as far as arguments matter: all types are of 4 bytes.
class Arguments : public testing::Test {
 protected:
  void SetUp() override {
    Calls& mpi = calls();
    mpi.Type_size_x = [](Datatype type, Count* size) {
      EXPECT_NE(type, kUncommitted) << "MPI may end the job";
      return *size = 4, kSuccess;
    };
    mpi.Type_get_extent_x = [](Datatype, Count* low, Count* extent) {
      return *low = 0, *extent = 4, kSuccess;
    };
    mpi.Type_get_true_extent_x = mpi.Type_get_extent_x;
    mpi.Pack = [](const void*, int, Datatype type, void*, int, int*, Comm) {
      return type == kUncommitted ? kRefused : kSuccess;
    };
    mpi.Allreduce = [](const void* from, void* to, int, Datatype type, Op op, Comm) {
      const bool is_refused =
          op == kUnfitting || type == kUncommitted || (are_one_address_refused && from == to);
      return is_refused ? kRefused : kSuccess;
    };
    mpi.Allgather = [](const void*, int, Datatype, void*, int, Datatype, Comm) { return kRefused; };
    communicator.rank = 1;
    communicator.size = 4;
  }
  void TearDown() override {
    calls() = {};
    are_one_address_refused = false;
  }

  ReductionArguments allreduce() { return of(Collective::kAllreduce); }
  ReductionArguments reduce(int root) {
    ReductionArguments it = of(Collective::kReduce);
    it.root = root;
    return it;
  }
  ReductionArguments allgather() { return of(Collective::kAllgather); }
  ReductionArguments of(Collective collective) {
    return {collective, send.data(), 2, kInt, receive.data(), 2, kInt, kMin, 0};
  }
  bool is_ours(const ReductionArguments& arguments) {
    return call_of(arguments, communicator).has_value();
  }
  static void* in_place() { return reinterpret_cast<void*>(kInPlace); }

  Communicator communicator;
  std::array<int, 8> send{}, receive{};
};

TEST_F(Arguments, OfAllreduce) {
  const auto call = call_of(allreduce(), communicator);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->shape.block, 8U);
  EXPECT_EQ(call->contribution.memory, send.data());
  EXPECT_EQ(call->result.memory, receive.data());
}

TEST_F(Arguments, InPlaceContributeTheResultsMemory) {
  ReductionArguments it = allreduce();
  it.send = in_place();
  EXPECT_EQ(call_of(it, communicator)->contribution.memory, receive.data());
  it = allgather();
  it.send = in_place();
  it.send_count = -1;
  const auto call = call_of(it, communicator);
  EXPECT_EQ(call->contribution.memory, receive.data() + 2);  // the second rank's
  EXPECT_EQ(call->result.count, 8U);
}

TEST_F(Arguments, OfReduceNeedAResultAtTheRootOnly) {
  ReductionArguments it = reduce(0);
  it.receive = nullptr;
  ASSERT_TRUE(is_ours(it));
  EXPECT_FALSE(call_of(it, communicator)->has_result);
  it.root = 1;
  EXPECT_FALSE(is_ours(it));
}

TEST_F(Arguments, ThatMpiReportsAreItsOwn) {
  const auto with = [](ReductionArguments it, auto change) {
    change(it);
    return it;
  };
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.receive_count = -1; })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.op = kOpNull; })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.op = kUnfitting; })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.receive_type = kUncommitted; })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.receive_type = kDatatypeNull; })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.receive = in_place(); })));
  EXPECT_FALSE(is_ours(with(allreduce(), [](auto& it) { it.send = nullptr; })));
  EXPECT_FALSE(is_ours(reduce(4)));
  EXPECT_FALSE(is_ours(reduce(-1)));
  EXPECT_FALSE(is_ours(with(reduce(0), [](auto& it) { it.send = in_place(); })));
  EXPECT_FALSE(is_ours(with(allgather(), [](auto& it) { it.send_count = -1; })));
  EXPECT_FALSE(is_ours(with(allgather(), [](auto& it) { it.send_type = kDatatypeNull; })));
  EXPECT_FALSE(is_ours(with(allgather(), [](auto& it) { it.send_type = kUncommitted; })));
  EXPECT_FALSE(is_ours(with(allgather(), [](auto& it) { it.receive_type = kUncommitted; })));
}

// The call ends in an error at this rank, and other ranks wait for its part.
TEST_F(Arguments, OfAllgatherThatDifferInSizeTakePartWithTheResultsMemory) {
  for (const Count count : {Count{0}, Count{1}, Count{3}, Count{1} << 40}) {
    ReductionArguments it = allgather();
    it.send_count = count;
    const auto call = call_of(it, communicator);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->error, coll::Code::kTruncated);
    EXPECT_EQ(call->contribution.memory, receive.data() + 2);
    EXPECT_EQ(call->contribution.count, 2U);
  }
  EXPECT_EQ(call_of(allgather(), communicator)->error, coll::Code::kDone);
}

// A look at one address that is passed twice reduces all elements.
TEST_F(Arguments, OfCallsThatAreTooLongAreNotLookedAt) {
  calls().Allreduce = [](const void*, void*, int, Datatype, Op, Comm) {
    ADD_FAILURE();
    return kSuccess;
  };
  calls().Allgather = [](const void*, int, Datatype, void*, int, Datatype, Comm) {
    ADD_FAILURE();
    return kSuccess;
  };
  for (ReductionArguments it : {allreduce(), reduce(0), allgather()}) {
    it.send = it.receive;
    it.send_count = it.receive_count = 1 << 28;
    const auto call = call_of(it, communicator);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->shape.block, std::size_t{1} << 30);
    EXPECT_FALSE(is_short(call->shape, communicator.size));
  }
}

// MPI wants the collectives of a communicator one at a time.
TEST_F(Arguments, OfSeveralThreadsAreShownToMpiOneAtATime) {
  static std::atomic<int> inside, overlaps;
  inside = overlaps = 0;
  calls().Allreduce = [](const void*, void*, int, Datatype, Op, Comm) {
    if (inside.fetch_add(1) != 0) ++overlaps;
    std::this_thread::yield();
    inside.fetch_sub(1);
    return kSuccess;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < 1000; ++call) EXPECT_TRUE(is_ours(allreduce()));
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(overlaps, 0);
}

TEST_F(Arguments, NameAnOperationOfTheProgram) {
  constexpr Op kOfProgram = static_cast<Op>(0x98000000);
  ReductionArguments it = allreduce();
  EXPECT_FALSE(call_of(it, communicator)->shape.is_by_program);
  it.op = kOfProgram;
  EXPECT_TRUE(call_of(it, communicator)->shape.is_by_program);
}

TEST_F(Arguments, NameTheLibrarysOperation) {
  const auto is_librarys = [&](Op op, Datatype type) {
    ReductionArguments it = allreduce();
    it.op = op;
    it.receive_type = it.send_type = type;
    const auto call = call_of(it, communicator);
    return call && call->combiner && call->combiner->size() == 4;
  };
  constexpr Op kMaxLoc = 0x5800000c, kOfProgram = static_cast<Op>(0x98000000);
  constexpr Datatype kFloat = 0x4c00040a, kOfAProgram = static_cast<Datatype>(0x8c000010);
  EXPECT_TRUE(is_librarys(kMin, kInt));
  EXPECT_TRUE(is_librarys(kMin, kFloat));
  EXPECT_FALSE(is_librarys(kMaxLoc, kInt));
  EXPECT_FALSE(is_librarys(kOfProgram, kInt));
  EXPECT_FALSE(is_librarys(kMin, kOfAProgram));
}

// Open MPI allows it for one element.
TEST_F(Arguments, OfOneAddressAreLegalIfMpiTakesThem) {
  ReductionArguments it = allreduce();
  it.send = receive.data();
  EXPECT_TRUE(is_ours(it));
  are_one_address_refused = true;
  EXPECT_FALSE(is_ours(it));
  it = allgather();
  it.send = receive.data() + 2;
  EXPECT_FALSE(is_ours(it));
}

TEST_F(Arguments, WithoutElementsOrWithMoreThanPackingCountsAreMpis) {
  ReductionArguments it = allreduce();
  it.receive_count = 0;
  EXPECT_FALSE(is_ours(it));
  it.receive_count = Count{1} << 40;
  EXPECT_FALSE(is_ours(it));
}

}  // namespace
}  // namespace cepheus::pmpi
