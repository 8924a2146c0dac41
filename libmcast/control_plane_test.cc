#include "libmcast/control_plane.h"

#include <gtest/gtest.h>

#include <deque>

#include "libmcast/keep_alive.h"
#include "wire/clock.h"

namespace cepheus::mcast {
namespace {

using namespace std::chrono_literals;

constexpr wire::Ipv4 kHost(10, 0, 0, 1), kLeader(10, 0, 0, 2);

struct Wire {
  struct Datagram {
    wire::Ipv4 peer;
    wire::MrpMessage message;
    bool is_signed = true;  // if there is a key
    std::uint8_t version = wire::MrpHeader::kVersion;
  };
  std::shared_ptr<const wire::MrpKey> key;
  std::deque<Datagram> to_host, from_host;
  std::vector<std::uint8_t> unreadable;  // the last one from the host that is of another version
  wire::Ipv4 unreadable_to;
};

class FakeChannel final : public ControlChannel {
 public:
  explicit FakeChannel(Wire& wire) : wire_(wire) {}

  int send(wire::Ipv4 to, std::span<const std::uint8_t> datagram) override {
    if (wire_.key) datagram = wire_.key->verify(kHost, datagram).value();
    if (const auto message = wire::MrpMessage::parse(datagram)) {
      wire_.from_host.push_back({to, *message});
    } else {
      wire_.unreadable_to = to;
      wire_.unreadable.assign(datagram.begin(), datagram.end());
    }
    return 0;
  }
  std::optional<Received> receive(std::span<std::uint8_t> out) override {
    if (wire_.to_host.empty()) return std::nullopt;
    const auto d = wire_.to_host.front();
    wire_.to_host.pop_front();
    std::size_t size = d.message.emit(out);
    out[0] = d.version;
    if (wire_.key && d.is_signed) size = wire_.key->sign(d.peer, out, size);
    return Received{d.peer, size};
  }
  std::uint16_t port() const override { return 40000; }

 private:
  Wire& wire_;
};

wire::MrpMessage register_of(std::vector<wire::MrpMember> named) {
  wire::MrpMessage m;
  m.header.type = wire::MrpType::kRegister;
  m.header.mcst_id = wire::McstId(198, 18, 1, 1);
  m.header.epoch = 3;
  m.header.instance = 4;
  m.header.seq = 1;
  m.header.total = 2;
  for (const auto& each : named) m.add(each);
  return m;
}

class ControlPlaneTest : public ::testing::Test {
 protected:
  Wire wire_;
  ControlPlane control_plane_{{kHost, 1, 1s, wire::kDefaultMcstPool, 1},
                              std::make_unique<FakeChannel>(wire_)};
};

TEST_F(ControlPlaneTest, AnswersARegistrationOfAQueuePairThatItDoesNotKnow) {
  const wire::MrpMember unknown{kHost, wire::Qpn(0x77), 0};
  wire_.to_host.push_back({kLeader, register_of({unknown})});
  EXPECT_EQ(control_plane_.poll(wire::Instant(1s)), 1u);
  ASSERT_EQ(wire_.from_host.size(), 1u);
  const auto& [to, answer, is_signed, version] = wire_.from_host.front();
  EXPECT_EQ(to, answer.header.mcst_id);
  EXPECT_EQ(answer.header.type, wire::MrpType::kReject);
  EXPECT_EQ(answer.header.flags, static_cast<std::uint16_t>(wire::MrpReject::kNotMember));
  EXPECT_EQ(answer.header.instance, 4u);
  EXPECT_EQ(answer.header.seq, 0u);
  EXPECT_EQ(answer.header.total, 1u);
  ASSERT_EQ(answer.member_count, 1u);
  EXPECT_EQ(answer.members[0], unknown);
}

TEST_F(ControlPlaneTest, KeepsSilentAboutOtherHostsAndUnknownGroups) {
  wire_.to_host.push_back({kLeader, register_of({{wire::Ipv4(10, 0, 0, 9), wire::Qpn(1), 0}})});
  for (const auto type : {wire::MrpType::kActivate, wire::MrpType::kUnregister,
                          wire::MrpType::kConfirm, wire::MrpType::kReject}) {
    auto m = register_of({});
    m.header.type = type;
    wire_.to_host.push_back({kLeader, m});
  }
  EXPECT_EQ(control_plane_.poll(wire::Instant(1s)), 5u);
  EXPECT_TRUE(wire_.from_host.empty());
  EXPECT_FALSE(control_plane_.is_busy());
  EXPECT_EQ(control_plane_.deadline(), wire::kNever);
}

TEST_F(ControlPlaneTest, RefusesALeaderOfAnotherVersionInThatVersion) {
  wire_.to_host.push_back({kLeader, register_of({{kHost, wire::Qpn(0x77)}}), true, 1});
  control_plane_.poll(wire::Instant(1s));
  ASSERT_EQ(wire_.unreadable.size(), wire::MrpHeader::kSize);
  EXPECT_EQ(wire_.unreadable_to, wire::McstId(198, 18, 1, 1)) << "hosts speak to groups only";
  EXPECT_EQ(wire_.unreadable[0], 1);
  EXPECT_EQ(wire_.unreadable[1], static_cast<std::uint8_t>(wire::MrpType::kReject));
  EXPECT_EQ(wire_.unreadable[3], static_cast<std::uint8_t>(wire::MrpReject::kVersion));
  EXPECT_TRUE(wire_.from_host.empty());
}

// A group that this process led, or an earlier process of this host at this port.
TEST_F(ControlPlaneTest, AnswersAWaitingMemberThatItKnowsNoSuchGroup) {
  const wire::Ipv4 asker(10, 0, 0, 7);
  const wire::MrpMember name{asker, wire::Qpn(0x77), 0, 41000};
  auto question = register_of({name});
  question.header.type = wire::MrpType::kComplain;
  question.header.flags = wire::MrpHeader::kPresence;
  wire_.to_host.push_back({wire::Ipv4(10, 0, 0, 8), question});  // for another
  wire_.to_host.push_back({asker, question});
  control_plane_.poll(wire::Instant(1s));
  ASSERT_EQ(wire_.from_host.size(), 1u);
  const wire::MrpMessage& answer = wire_.from_host[0].message;
  EXPECT_EQ(wire_.from_host[0].peer, answer.header.mcst_id);
  EXPECT_EQ(answer.header.type, wire::MrpType::kGiveUp);
  EXPECT_EQ(answer.header.flags, static_cast<std::uint16_t>(wire::MrpReject::kNotMember));
  ASSERT_EQ(answer.member_count, 1u);
  EXPECT_EQ(answer.members[0], name);
}

TEST_F(ControlPlaneTest, TakesInABoundedNumberOfDatagramsAtOnce) {
  for (int i = 0; i < 1000; ++i) {
    wire_.to_host.push_back({kLeader, register_of({{kHost, wire::Qpn(0x77), 0}})});
  }
  EXPECT_EQ(control_plane_.poll(wire::Instant(1s)), 64u);
  EXPECT_EQ(wire_.to_host.size(), 936u);
}

TEST_F(ControlPlaneTest, WithAKeySignsItsMessagesAndReceivesOnlySignedOnes) {
  wire_.key = std::make_shared<const wire::MrpKey>(
      *wire::MrpKey::parse("000102030405060708090a0b0c0d0e0f"));
  ControlPlane control_plane({kHost, 1, 1s, wire::kDefaultMcstPool, 1, wire_.key},
                             std::make_unique<FakeChannel>(wire_));
  const auto requested = register_of({{kHost, wire::Qpn(0x77), 0}});
  wire_.to_host.push_back({kLeader, requested, false});
  control_plane.poll(wire::Instant(1s));
  EXPECT_TRUE(wire_.from_host.empty());
  wire_.to_host.push_back({kLeader, requested});
  control_plane.poll(wire::Instant(1s));
  EXPECT_EQ(wire_.from_host.size(), 1u);
}

TEST(KeepAlive, WorksOnceMoreIfItIsWantedWhileItFindsNothingDue) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ready = false;
  int calls = 0;
  KeepAlive thread([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_ready; });
    const bool is_first = ++calls == 1;
    changed.notify_all();
    lock.unlock();
    if (is_first) thread.start();
    return wire::kNever;
  });
  thread.start();
  std::unique_lock lock(mutex);
  is_ready = true;
  changed.notify_all();
  EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return calls == 2; }));
  lock.unlock();
  thread.stop();
}

TEST(KeepAlive, WorksUntilNothingIsDueAndCanStartAgain) {
  std::mutex mutex;
  std::condition_variable worked;
  int calls = 0;
  KeepAlive thread([&] {
    const std::lock_guard lock(mutex);
    ++calls;
    worked.notify_all();
    return calls % 3 == 0 ? wire::kNever : wire::monotonic_now();  // due at once, or never again
  });
  for (const int wanted : {3, 6}) {
    thread.start();
    std::unique_lock lock(mutex);
    ASSERT_TRUE(worked.wait_for(lock, 10s, [&] { return calls == wanted; }));
  }
  thread.stop();
}

}  // namespace
}  // namespace cepheus::mcast
