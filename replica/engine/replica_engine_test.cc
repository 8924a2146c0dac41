#include "replica/engine/replica_engine.h"

#include <gtest/gtest.h>

#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

constexpr Epoch kEpoch{1, 1};

ReplicaActions send(ReplicaEngine& replica, std::uint64_t link, RequestType type,
                    ChunkRange range = {}) {
  Request request;
  request.type = type;
  request.epoch = kEpoch;
  request.range = range;
  ReplicaActions out;
  replica.on_request(link, request, out);
  return out;
}

TEST(ReplicaEngine, HasPromisedNobodyAtFirst) {
  EXPECT_EQ(ReplicaRecord::fresh(kGeometry, 3).promised, (Epoch{0, 0}));
}

TEST(ReplicaEngine, RefusesRangesOutsideTheVolume) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  send(replica, 1, RequestType::kPromise);
  const ReplicaActions refused = send(replica, 1, RequestType::kMark, {3, 2});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].answer.verdict, Verdict::kFailed);
  const ReplicaActions done = send(replica, 1, RequestType::kMark, {3, 1});
  EXPECT_EQ(done.back().answer.verdict, Verdict::kDone);
  EXPECT_TRUE(replica.record().marks.has(3));
}

// A replica with a new disk is copied everything, whatever is marked.
TEST(ReplicaEngine, MarksAndFlushesAllFromItsFirstGroupOnUntilItsWriterNamesTheMarks) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  const auto flushed = [&replica](RequestType type, std::uint64_t version = 0) {
    ReplicaActions out;
    Request request;
    request.epoch = kEpoch;
    request.range = {2, 1};
    request.config = {kEpoch, version, Members::all(3)};
    request.type = type;
    replica.on_request(1, request, out);
    return out.empty() ? 0 : out.front().chunks.count();
  };
  flushed(RequestType::kPromise);
  flushed(RequestType::kMark);
  EXPECT_EQ(flushed(RequestType::kFlush), 1u);
  EXPECT_EQ(send(replica, 1, RequestType::kJoin).front().kind, ReplicaAction::Kind::kSaveMarks);
  EXPECT_EQ(flushed(RequestType::kFlush), kGeometry.chunks());
  flushed(RequestType::kConfig, 1);
  EXPECT_EQ(flushed(RequestType::kFlush), kGeometry.chunks());
  flushed(RequestType::kBitmap);
  EXPECT_EQ(flushed(RequestType::kFlush), 0u);
  EXPECT_EQ(send(replica, 1, RequestType::kJoin).front().kind, ReplicaAction::Kind::kJoin);
}

TEST(ReplicaEngine, AnswersNothingOnAnOldConnection) {
  ReplicaEngine replica(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  send(replica, 1, RequestType::kPromise);
  send(replica, 2, RequestType::kPromise);
  EXPECT_TRUE(send(replica, 1, RequestType::kMark, {0, 1}).empty());
  EXPECT_TRUE(replica.record().marks.empty());
}

}  // namespace
}  // namespace cepheus::replica
