// All replicas in sync get new disks: flushed data is lost, too.
#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

class NewDisks : public Volume {
 protected:
  void replace(unsigned replica) {
    replicas[replica] = ReplicaEngine(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
    writer->on_disconnected(now, replica, todo);
    run();
  }
  void connect_again() {
    for (std::uint64_t& link : links) ++link;
    now += 1s;
    connect_all();
    writer->on_timer(now, todo);
    run();
  }
  void write(std::uint64_t id) {
    submit(IoKind::kWrite, id);
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

}  // namespace
}  // namespace cepheus::replica
