// All replicas in sync get new disks: flushed data is lost, too.
#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

class NewDisks : public Volume {
 protected:
  void replace(unsigned replica) {
    replicas[replica] = ReplicaEngine(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
    disconnect(replica);
  }
  void connect_again() {
    for (std::uint64_t& link : links) ++link;
    now += 1s;
    connect_all();
    tick();
  }
  void write(std::uint64_t id, std::uint64_t block = 0) {
    submit(IoKind::kWrite, id, block);
    write_is_everywhere(all(Kind::kWrite).back());
  }
  void expect_that_all_is_lost() const {
    EXPECT_EQ(writer->phase(), Writer::Phase::kFailed);
    EXPECT_TRUE(writer->has_lost_disks());
    EXPECT_EQ(writer->lost().count(), kGeometry.chunks());
  }
};

TEST_F(NewDisks, OfAllReplicasEndAWriterWhoseDataWasFlushed) {
  connect_all();
  write(1);
  submit(IoKind::kFlush, 2);
  for (unsigned r = 0; r < 3; ++r) replace(r);
  connect_again();
  expect_that_all_is_lost();
}

TEST_F(NewDisks, OfAllReplicasLoseMoreThanUnflushedChunks) {
  connect_all();
  write(1);
  for (unsigned r = 0; r < 3; ++r) replace(r);
  submit(IoKind::kRead, 2);
  connect_again();
  expect_that_all_is_lost();
  EXPECT_EQ(all(Kind::kComplete).back().status, IoStatus::kLost);
}

// Its user has no data yet, but its predecessor's user had.
TEST_F(NewDisks, OfAllReplicasEndAWriterThatStillCopies) {
  connect_all();
  write(1);
  start_writer(2);
  connect_again();
  ASSERT_EQ(writer->phase(), Writer::Phase::kRecovering);
  for (unsigned r = 0; r < 3; ++r) replace(r);
  connect_again();
  expect_that_all_is_lost();
}

TEST_F(NewDisks, OfAllReplicasAreFineBeforeTheFirstWriter) {
  for (unsigned r = 0; r < 3; ++r) replace(r);
  connect_all();
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
}

TEST_F(NewDisks, OfTwoReplicasAreNoLossWhileTheThirdIsOnlyLate) {
  connect_all();
  write(1);
  submit(IoKind::kFlush, 2);
  for (unsigned r = 0; r < 2; ++r) replace(r);
  writer->on_disconnected(now, 2, todo);
  for (std::uint64_t& link : links) ++link;
  now += 1s;
  for (unsigned r = 0; r < 2; ++r) connect(r);
  EXPECT_EQ(writer->phase(), Writer::Phase::kAcquiring);
  connect(2);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  EXPECT_TRUE(writer->is_in_sync(2));
  EXPECT_FALSE(writer->is_in_sync(0) || writer->is_in_sync(1));
}

// A configuration that one replica alone has recorded is no sign of data.
TEST_F(NewDisks, AreNotReportedIfTheFirstWriterDiedWhileItOpened) {
  const Epoch first{1, 1};
  const Config config{first, 1, Members::all(3)};
  ReplicaActions done;
  replicas[0].on_request(1, {.type = RequestType::kPromise, .epoch = first}, done);
  replicas[0].on_request(1, {.type = RequestType::kConfig, .epoch = first, .config = config}, done);
  start_writer(2);
  connect_again();
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  EXPECT_TRUE(writer->is_in_sync(0));
}

// A part of a copy is no volume that was never written to.
TEST_F(NewDisks, OfTheSourcesEndALaterWriterIfACopyHadBegun) {
  connect_all();
  write(1);
  replace(2);
  ++links[2];
  now += 1s;
  connect(2);
  ASSERT_TRUE(writer->group().has(2));
  ASSERT_FALSE(writer->is_in_sync(2));
  for (unsigned r = 0; r < 2; ++r) replace(r);
  start_writer(2);
  connect_again();
  expect_that_all_is_lost();
}

// The second replica alone was in sync, and the third one got a part of its data. A later writer
// goes on with the first one's older data.
TEST_F(NewDisks, OfTheOnlyReplicaInSyncLeaveTheOthersEqual) {
  connect_all();
  write(1, 12);
  for (const unsigned r : {2, 0}) {
    disconnect(r);
  }
  ++links[2];
  now += 1s;
  connect(2);
  ASSERT_EQ(writer->group(), Members::of_bits(0b110));
  ASSERT_FALSE(writer->is_in_sync(2));
  write(2);
  ASSERT_TRUE(replicas[2].record().marks.has(0));
  ASSERT_FALSE(replicas[0].record().marks.has(0));
  replace(1);
  start_writer(2);
  connect_again();
  ASSERT_EQ(writer->phase(), Writer::Phase::kServing);
  connect_again();
  EXPECT_EQ(writer->group(), Members::all(3));
  EXPECT_EQ(writer->lacking(2), 2u) << "also the chunk that the first one lacks";
}

}  // namespace
}  // namespace cepheus::replica
