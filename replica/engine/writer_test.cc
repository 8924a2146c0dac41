// The writer and its replicas' engines, message by message.
#include "replica/engine/writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

TEST_F(Volume, ServesWhenAllOfTheLastConfigurationHavePromised) {
  connect(0);
  connect(1);
  EXPECT_EQ(writer->phase(), Writer::Phase::kAcquiring);
  connect(2);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  for (const ReplicaEngine& replica : replicas) {
    EXPECT_EQ(replica.record().promised, writer->epoch());
    EXPECT_EQ(replica.record().config, writer->config());
  }
}

// It was stopped, or its host slept. What the replicas said meanwhile is still to be read.
TEST_F(Volume, CountsNoSilenceWhileItDidNotLook) {
  connect_all();
  const auto look_after = [&](Duration time) {
    now += time;
    tick();
  };
  silent = Members::all(3);
  look_after(250ms);
  log.clear();
  look_after(1200ms);
  EXPECT_TRUE(all(Kind::kDisconnect).empty());
  EXPECT_EQ(all(Kind::kSend).size(), 3u) << "all are asked whether they live";
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  for (int i = 0; i < 4; ++i) look_after(250ms);
  EXPECT_EQ(all(Kind::kDisconnect).size(), 3u)
      << "they have said nothing for a second in which it looked";
}

TEST_F(Volume, CountsSilenceIfItLooksAtEverySecondPing) {
  connect_all();
  tick();
  silent = Members::all(3);
  for (int i = 0; i < 2; ++i) {
    now += 2 * WriterSettings{}.ping;
    tick();
  }
  EXPECT_EQ(all(Kind::kDisconnect).size(), 3u);
}

TEST_F(Volume, CountsNoHungDiskWhileItDidNotLook) {
  connect_all();
  silent = Members::only(2);
  submit(IoKind::kFlush, 1);
  now += 12s;
  tick();
  EXPECT_TRUE(all(Kind::kDisconnect).empty());
}

TEST_F(Volume, MarksBeforeItWrites) {
  connect_all();
  silent = Members::only(2);
  submit(IoKind::kWrite, 1);
  EXPECT_TRUE(all(Kind::kWrite).empty());
  EXPECT_TRUE(replicas[0].record().marks.has(0));
  EXPECT_EQ(replicas[0].record().marks.count(), 1u);
  EXPECT_EQ(std::ranges::count(all(Kind::kSend), RequestType::kMark,
                               [](const WriterAction& a) { return a.request.type; }),
            3);
  // The third replica answers after all: its requests are repeated here.
  silent = {};
  for (const WriterAction& send : all(Kind::kSend)) {
    if (send.replica == 2 && send.request.type == RequestType::kMark) todo.push_back(send);
  }
  run();
  ASSERT_EQ(all(Kind::kWrite).size(), 1u);
  EXPECT_TRUE(all(Kind::kComplete).empty());
  write_is_everywhere(all(Kind::kWrite)[0]);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
}

TEST_F(Volume, WritesContinueWithoutADeadReplicaOnceThatIsOnRecord) {
  connect_all();
  submit(IoKind::kWrite, 1);
  silent = Members::only(1);  // its answer to the configuration is late
  disconnect(0);
  EXPECT_FALSE(writer->config_is_confirmed());
  ASSERT_EQ(all(Kind::kWrite).size(), 2u);  // again, to two
  EXPECT_EQ(writer->group().count(), 2u);
  write_is_everywhere(all(Kind::kWrite)[1]);
  EXPECT_TRUE(all(Kind::kComplete).empty());
  silent = {};
  for (const WriterAction& send : all(Kind::kSend)) {
    if (send.replica == 1 && send.request.type == RequestType::kConfig) todo.push_back(send);
  }
  run();
  EXPECT_TRUE(writer->config_is_confirmed());
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
  EXPECT_EQ(writer->config().members, Members::of_bits(0b110));
}

TEST_F(Volume, AReplicaThatReturnsIsCopiedItsMissingChunksAndIsThenInSync) {
  connect_all();
  disconnect(0);
  submit(IoKind::kWrite, 1, 5);
  write_is_everywhere(all(Kind::kWrite)[0]);
  now += 1s;
  links[0] = 2;
  connect(0);
  const auto copies = all(Kind::kCopy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].io.offset, 4u * 4096);
  EXPECT_EQ(copies[0].members, Members::only(0));
  EXPECT_FALSE(writer->is_in_sync(0));
  EXPECT_EQ(writer->lacking(0), 1u);
  writer->on_copied(now, copies[0].attempt, {}, todo);
  run();
  EXPECT_TRUE(writer->is_in_sync(0));
  EXPECT_EQ(replicas[0].record().config, writer->config());
}

TEST_F(Volume, AReadWaitsForAWriteThatOverlaps) {
  connect_all();
  submit(IoKind::kWrite, 1, 2, 2);
  submit(IoKind::kRead, 2, 3);
  submit(IoKind::kRead, 3, 4);
  submit(IoKind::kRead, 4, 1);
  ASSERT_EQ(all(Kind::kRead).size(), 2u);
  EXPECT_EQ(all(Kind::kRead)[0].io.id, 3u) << "it begins at the write's end";
  EXPECT_EQ(all(Kind::kRead)[1].io.id, 4u) << "it ends at the write's beginning";
  write_is_everywhere(all(Kind::kWrite)[0]);
  EXPECT_EQ(all(Kind::kRead).size(), 3u);
}

TEST_F(Volume, AWriteWaitsForNoFlush) {
  connect_all();
  submit(IoKind::kWrite, 1, 0, 2);
  write_is_everywhere(all(Kind::kWrite).back());
  silent = Members::all(3);
  ASSERT_TRUE(writer->submit(now, {2, IoKind::kFlush, 4096, 0, false}, todo));
  submit(IoKind::kWrite, 3, 0, 2);
  EXPECT_EQ(all(Kind::kWrite).size(), 2u);
}

// All data in the memory of the last replica in sync is lost with it.
class LastReplica : public Volume {
 protected:
  LastReplica() {
    connect_all();
    for (unsigned r = 1; r < 3; ++r) writer->on_disconnected(now, r, todo);  // at once
    run();
  }
  // The two others stay away.
  void restart_last(Loss loss) {
    ReplicaRecord record = replicas[0].record();
    record.loss = std::max(record.loss, loss);
    if (loss == Loss::kAll) record = ReplicaRecord::fresh(kGeometry, 3);
    disconnect(0);
    replicas[0] = ReplicaEngine(kGeometry, record);
    ++links[0];
    log.clear();
    now += 1s;
    connect(0);
    connect(0);  // the claim is made anew by a timer
    tick();
  }
  void acknowledge_write(std::uint64_t id, std::uint64_t block) {
    log.clear();
    submit(IoKind::kWrite, id, block);
    const auto writes = all(Kind::kWrite);
    ASSERT_EQ(writes.size(), 1u);
    write_is_everywhere(writes[0]);
    ASSERT_EQ(all(Kind::kComplete).size(), 1u);
    ASSERT_EQ(all(Kind::kComplete)[0].status, IoStatus::kOk);
  }
};

TEST_F(LastReplica, IsSentUnacknowledgedWritesAgain) {
  // A write with FUA: in its memory, not on its disk yet.
  ASSERT_TRUE(writer->submit(now, {1, IoKind::kWrite, 0, 4096, true}, todo));
  run();
  silent = Members::only(0);
  write_is_everywhere(all(Kind::kWrite)[0]);
  ASSERT_TRUE(all(Kind::kComplete).empty());
  silent = {};
  restart_last(Loss::kMemory);
  ASSERT_EQ(writer->phase(), Writer::Phase::kServing);
  EXPECT_TRUE(all(Kind::kComplete).empty());
  const auto writes = all(Kind::kWrite);
  ASSERT_EQ(writes.size(), 1u);
  write_is_everywhere(writes[0]);
  ASSERT_EQ(all(Kind::kComplete).size(), 1u);
  const auto flushes = all(Kind::kSend);
  EXPECT_TRUE(std::any_of(flushes.begin(), flushes.end(), [](const auto& send) {
    return send.request.type == RequestType::kFlush;
  }));
}

TEST_F(LastReplica, EndsItsWriterIfAcknowledgedDataIsGone) {
  acknowledge_write(1, 0);
  acknowledge_write(2, 5);
  restart_last(Loss::kMemory);
  EXPECT_EQ(writer->phase(), Writer::Phase::kFailed);
  EXPECT_TRUE(writer->lost().has(0));
  EXPECT_TRUE(writer->lost().has(1));
  EXPECT_EQ(writer->lost().count(), 2u);
  EXPECT_FALSE(writer->submit(now, {2, IoKind::kFlush, 0, 0, false}, todo));
}

TEST_F(LastReplica, EndsAFlushOfLostDataWithAnError) {
  acknowledge_write(1, 5);
  silent = Members::only(0);
  submit(IoKind::kFlush, 2);
  silent = {};
  restart_last(Loss::kMemory);
  ASSERT_EQ(all(Kind::kComplete).size(), 1u);
  EXPECT_EQ(all(Kind::kComplete)[0].status, IoStatus::kLost);
}

TEST_F(LastReplica, ContinuesIfAllWasFlushedOrItsMemoryStayed) {
  acknowledge_write(1, 5);
  restart_last(Loss::kProcess);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  submit(IoKind::kFlush, 2);
  restart_last(Loss::kMemory);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
}

// Others with earlier configurations are no replacement.
TEST_F(LastReplica, WithANewDiskEndsItsWriter) {
  acknowledge_write(1, 5);
  submit(IoKind::kFlush, 2);
  restart_last(Loss::kAll);
  EXPECT_EQ(writer->phase(), Writer::Phase::kAcquiring);
  for (unsigned r = 1; r < 3; ++r) {
    ++links[r];
    connect(r);
  }
  EXPECT_EQ(writer->phase(), Writer::Phase::kFailed);
  EXPECT_EQ(writer->lost().count(), kGeometry.chunks());
}

// A successor adopts a configuration with a replica that has a new disk, and dies. The next one
// must not treat that replica as complete.
TEST_F(Volume, ANewDiskIsCopiedEverythingThoughASuccessorDied) {
  connect_all();
  replicas[0] = ReplicaEngine(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  links = {2, 2, 2};
  start_writer(2);
  silent = {};
  writer->on_connected(now, 0, todo);
  writer->on_connected(now, 1, todo);
  writer->on_connected(now, 2, todo);
  // Until its own first configuration, which no replica receives.
  for (bool has_adopted = false; !has_adopted && !todo.empty();) {
    WriterActions actions;
    actions.swap(todo);
    for (const WriterAction& action : actions) {
      if (action.kind != Kind::kSend || action.request.type == RequestType::kConfig) continue;
      ReplicaActions done;
      replicas[action.replica].on_request(2, action.request, done);
      for (const ReplicaAction& a : done) {
        if (a.kind != ReplicaAction::Kind::kAnswer) continue;
        writer->on_answer(now, action.replica, a.answer, todo);
      }
    }
  }
  ASSERT_EQ(replicas[0].record().config.epoch.writer, 2u);
  EXPECT_EQ(replicas[0].record().loss, Loss::kAll);
  start_writer(3);
  links = {3, 3, 3};
  connect_all();
  now += 1ms;
  tick();
  EXPECT_FALSE(writer->is_in_sync(0));
  EXPECT_EQ(writer->lacking(0), kGeometry.chunks());
}

// {0, 1} continue without 2, then 0 alone; then 0 gets a new disk. Only 1 knows of {0, 1}.
TEST_F(Volume, ASuccessorNeedsAllReplicasIfOneHasANewDisk) {
  connect_all();
  disconnect(2);
  replicas[0] = ReplicaEngine(kGeometry, ReplicaRecord::fresh(kGeometry, 3));
  links = {2, 2, 2};
  start_writer(2);
  connect(0);
  connect(2);
  EXPECT_EQ(writer->phase(), Writer::Phase::kAcquiring);
  connect(1);
  EXPECT_EQ(writer->config().members, Members::only(1));
}

// Another writer's claim reached one replica only, which was not in sync.
TEST_F(Volume, AWriterClaimsAgainIfALaterOneDoesNotComeForTwoSilences) {
  connect_all();
  disconnect(2);
  Request promise;
  promise.type = RequestType::kPromise;
  promise.epoch = {7, 7};
  ReplicaActions done;
  replicas[2].on_request(9, promise, done);
  const auto return_after = [&](Duration time) {
    now += time;
    ++links[2];
    connect(2);
  };
  return_after({});
  return_after(2 * WriterSettings{}.silence - 1ns);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  return_after(1ns);
  EXPECT_EQ(writer->phase(), Writer::Phase::kAcquiring);
  EXPECT_EQ(writer->epoch().number, 8u);
  now += 100ms;
  tick();
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing) << "0 and 1 have promised again";
}

TEST_F(Volume, MarksAreClearedWhenAllIsFlushedAndIdle) {
  connect_all();
  submit(IoKind::kWrite, 1);
  write_is_everywhere(all(Kind::kWrite)[0]);
  EXPECT_EQ(writer->marked(), 1u);
  const auto pass = [&](int looks) {
    for (int i = 0; i < looks; ++i) {
      now += 250ms;
      tick();
    }
  };
  pass(19);
  EXPECT_EQ(writer->marked(), 1u);
  pass(1);
  EXPECT_EQ(writer->marked(), 0u) << "after 5 s";
  for (const ReplicaEngine& replica : replicas) EXPECT_TRUE(replica.record().marks.empty());
}

TEST_F(Volume, ClearsScatteredMarksWithOneRequestToEachReplica) {
  connect_all();
  submit(IoKind::kWrite, 1, 0);
  submit(IoKind::kWrite, 2, 8);
  for (const WriterAction& write : all(Kind::kWrite)) write_is_everywhere(write);
  EXPECT_EQ(writer->marked(), 2u);
  log.clear();
  now += 5s;
  tick();
  EXPECT_EQ(writer->marked(), 0u);
  EXPECT_EQ(all(Kind::kSend).size(), 3u * 3) << "a ping, a flush, and the marks";
  for (const ReplicaEngine& replica : replicas) EXPECT_TRUE(replica.record().marks.empty());
}

TEST_F(Volume, TakesNoMoreThanItsDepth) {
  connect_all();
  for (std::uint64_t id = 1; id <= 4; ++id) submit(IoKind::kWrite, id);
  EXPECT_FALSE(writer->submit(now, {5, IoKind::kWrite, 0, 4096, false}, todo));
}

}  // namespace
}  // namespace cepheus::replica
