#include "replica/engine/replica_engine.h"

#include <gtest/gtest.h>

#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

TEST(ReplicaEngine, HasPromisedNobodyAtFirst) {
  EXPECT_EQ(ReplicaRecord::fresh(kGeometry, 3).promised, (Epoch{0, 0}));
}

TEST(ReplicaEngine, RefusesRangesOutsideTheVolume) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  ReplicaActions out;
  Request request;
  request.type = RequestType::kPromise;
  request.epoch = {1, 1};
  replica.on_request(1, request, out);
  request.type = RequestType::kMark;
  request.range = {3, 2};
  out.clear();
  replica.on_request(1, request, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].answer.verdict, Verdict::kFailed);
  out.clear();
  request.range = {3, 1};
  replica.on_request(1, request, out);
  EXPECT_EQ(out.back().answer.verdict, Verdict::kDone);
  EXPECT_TRUE(replica.record().marks.has(3));
}

// A replica with a new disk is copied everything, whatever is marked.
TEST(ReplicaEngine, FlushesAllUntilItIsNamedAndThenMarkedChunks) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  const auto flushed = [&replica](RequestType type, std::uint64_t version = 0) {
    ReplicaActions out;
    Request request;
    request.epoch = {1, 1};
    request.range = {2, 1};
    request.config = {{1, 1}, version, Members::all(3)};
    request.type = type;
    replica.on_request(1, request, out);
    return out.empty() ? 0 : out.front().chunks.count();
  };
  flushed(RequestType::kPromise);
  flushed(RequestType::kMark);
  EXPECT_EQ(flushed(RequestType::kFlush), kGeometry.chunks());
  EXPECT_EQ(flushed(RequestType::kFlush), kGeometry.chunks())
      << "its writer may have died, and the next one copies";
  flushed(RequestType::kConfig, 1);
  EXPECT_EQ(flushed(RequestType::kFlush), kGeometry.chunks())
      << "the chunks copied since the last flush";
  EXPECT_EQ(flushed(RequestType::kFlush), 1u);
  flushed(RequestType::kBitmap);
  EXPECT_EQ(flushed(RequestType::kFlush), 0u);
}

TEST(ReplicaEngine, AnswersNothingOnAnOldConnection) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  ReplicaActions out;
  Request request;
  request.type = RequestType::kPromise;
  request.epoch = {1, 1};
  replica.on_request(1, request, out);
  replica.on_request(2, request, out);
  out.clear();
  request.type = RequestType::kMark;
  request.range = {0, 1};
  replica.on_request(1, request, out);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(replica.record().marks.empty());
}

}  // namespace
}  // namespace cepheus::replica
