// Disks that hang without an error: replicas answer pings, but no other requests.
#include "replica/engine/volume_by_hand.h"

namespace cepheus::replica {
namespace {

class HungDisk : public Volume {
 protected:
  explicit HungDisk(unsigned count = 3) : Volume(count) { connect_all(); }
  // Replicas answer the writer's pings all the while.
  void pass(Duration time) {
    for (const Instant end = now + time; now < end;) {
      now += 250ms;
      writer->on_timer(now, todo);
      for (unsigned r = 0; r < replicas.size(); ++r) {
        if (writer->is_connected(r)) writer->on_answer(now, r, Answer{}, todo);
      }
      run();
    }
  }
  unsigned requests(unsigned replica, RequestType type) const {
    const auto sends = all(Kind::kSend);
    return static_cast<unsigned>(std::ranges::count_if(sends, [&](const WriterAction& send) {
      return send.replica == replica && send.request.type == type;
    }));
  }
  // ... and no other requests.
  void return_with_a_promise(unsigned replica) {
    writer->on_connected(now, replica, todo);
    const WriterActions requests = std::exchange(todo, {});
    ASSERT_EQ(requests.size(), 1u);
    ReplicaActions done;
    replicas[replica].on_request(links[replica], requests[0].request, done);
    ASSERT_EQ(done.back().kind, ReplicaAction::Kind::kAnswer);
    writer->on_answer(now, replica, done.back().answer, todo);
    run();
  }
  // Answers the last request of this type late.
  void answer_last(unsigned replica, RequestType type) {
    const auto sends = all(Kind::kSend);
    const auto last = std::find_if(sends.rbegin(), sends.rend(), [&](const WriterAction& send) {
      return send.replica == replica && send.request.type == type;
    });
    ASSERT_NE(last, sends.rend());
    todo.push_back(*last);
    run();
  }
};

TEST_F(HungDisk, EvictsTheReplicaOnceOthersHaveAnswered) {
  silent = Members::only(2);
  submit(IoKind::kWrite, 1);
  pass(9750ms);
  EXPECT_TRUE(all(Kind::kWrite).empty()) << "it may be slow";
  pass(250ms);
  ASSERT_EQ(all(Kind::kWrite).size(), 1u);
  write_is_everywhere(all(Kind::kWrite)[0]);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
  EXPECT_EQ(writer->config().members, Members::of_bits(0b011));
}

TEST_F(HungDisk, DelaysNoFlush) {
  silent = Members::only(2);
  submit(IoKind::kFlush, 1);
  pass(11s);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
}

TEST_F(HungDisk, DoesNotCountIfTheOthersTakeAsLong) {
  silent = Members::all(3);
  submit(IoKind::kFlush, 1);
  pass(60s);
  silent = {};
  answer_last(0, RequestType::kFlush);
  silent = Members::of_bits(0b110);
  pass(55s);
  EXPECT_EQ(writer->config().members, Members::all(3)) << "the first one took a minute";
  pass(6s);
  EXPECT_EQ(writer->config().members, Members::only(0));
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
}

TEST_F(HungDisk, OfTheOnlyReplicaInSyncIsWaitedForWhileAnotherIsBeingAdded) {
  writer->on_disconnected(now, 1, todo);
  disconnect(2);
  return_with_a_promise(2);
  silent = Members::only(0);
  pass(1s);
  ASSERT_TRUE(writer->config().members.has(2)) << "it is being added";
  pass(60s);
  EXPECT_TRUE(writer->is_connected(0));
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
}

TEST_F(HungDisk, OfTheLastOneIsWaitedFor) {
  writer->on_disconnected(now, 0, todo);
  disconnect(1);
  silent = Members::only(2);
  submit(IoKind::kFlush, 1);
  pass(60s);
  EXPECT_EQ(writer->phase(), Writer::Phase::kServing);
  EXPECT_EQ(writer->config().members, Members::only(2));
  silent = {};
  answer_last(2, RequestType::kFlush);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u);
}

// Otherwise each return would delay requests again.
TEST_F(HungDisk, HasToEndAFlushBeforeTheReplicaReturns) {
  silent = Members::only(2);
  submit(IoKind::kFlush, 1);
  pass(11s);
  ASSERT_FALSE(writer->is_connected(2));
  log.clear();
  return_with_a_promise(2);
  pass(20s);
  EXPECT_EQ(requests(2, RequestType::kFlush), 1u);
  submit(IoKind::kFlush, 2);
  EXPECT_EQ(all(Kind::kComplete).size(), 1u) << "no request waits for it";
  silent = {};
  answer_last(2, RequestType::kFlush);
  EXPECT_TRUE(writer->is_in_sync(2));
}

class HungDiskOfFour : public HungDisk {
 protected:
  HungDiskOfFour() : HungDisk(4) {}
};

// The group with the second replica never forms, and the third one waits for that.
TEST_F(HungDiskOfFour, IsTriedAlthoughAnEarlierReplicaWaitsForItsReturn) {
  silent = Members::only(3);
  submit(IoKind::kFlush, 1);
  pass(11s);
  ASSERT_FALSE(writer->is_connected(3));
  for (const unsigned r : {1u, 2u}) writer->on_disconnected(now, r, todo);  // at once
  run();
  forms = false;
  log.clear();
  for (const unsigned r : {1u, 2u}) return_with_a_promise(r);
  pass(1s);
  ASSERT_EQ(all(Kind::kForm).back().members, Members::of_bits(0b0011));
  return_with_a_promise(3);
  pass(1s);
  EXPECT_EQ(requests(3, RequestType::kFlush), 1u);
  EXPECT_GT(writer->deadline(), now);
}

// A replica that is being copied has all copies to flush.
class HungDiskOfACopy : public HungDisk {
 protected:
  HungDiskOfACopy() {
    disconnect(2);
    submit(IoKind::kWrite, 1);
    write_is_everywhere(all(Kind::kWrite).back());
    return_with_a_promise(2);
    pass(2s);
    silent = Members::only(2);
    submit(IoKind::kFlush, 2);
    pass(11s);
  }
};

TEST_F(HungDiskOfACopy, EvictsNoReplica) {
  ASSERT_FALSE(all(Kind::kCopy).empty()) << "it is being copied";
  EXPECT_EQ(all(Kind::kComplete).size(), 2u) << "the flush has ended without it";
  EXPECT_TRUE(writer->is_connected(2));
  submit(IoKind::kFlush, 3);
  EXPECT_EQ(all(Kind::kComplete).size(), 3u) << "the next one does not wait";
  EXPECT_FALSE(writer->is_in_sync(2));
}

TEST_F(HungDiskOfACopy, HasToEndAFlushThatBeganAfterTheLastWrite) {
  const std::uint64_t copy = all(Kind::kCopy).back().attempt;
  log.clear();
  writer->on_copied(now, copy, {}, todo);
  run();
  ASSERT_EQ(requests(2, RequestType::kFlush), 1u) << "all is copied";
  const WriterAction early = all(Kind::kSend).back();
  submit(IoKind::kWrite, 3);
  write_is_everywhere(all(Kind::kWrite).back());
  submit(IoKind::kFlush, 4);
  EXPECT_EQ(all(Kind::kComplete).size(), 2u);
  const WriterAction later = all(Kind::kSend).back();
  silent = {};
  todo.push_back(early);
  run();
  EXPECT_FALSE(writer->is_in_sync(2));
  todo.push_back(later);
  run();
  EXPECT_TRUE(writer->is_in_sync(2));
}

// The writer's timer has no work meanwhile.
TEST_F(HungDisk, DelaysASuccessorsFirstConfigurationWithoutABusyWriter) {
  silent = Members::only(2);
  disconnect(0);
  start_writer(2);
  links = {2, 2, 2};
  connect(1);
  return_with_a_promise(2);
  ASSERT_EQ(writer->phase(), Writer::Phase::kRecovering);
  now += 1ms;
  tick();
  EXPECT_GT(writer->deadline(), now);
}

}  // namespace
}  // namespace cepheus::replica
