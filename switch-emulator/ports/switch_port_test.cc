#include "switch-emulator/ports/switch_port.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <future>
#include <optional>
#include <set>

#include "switch-emulator/ports/bare_client.h"
#include "switch-emulator/ports/test_waiting_crowd.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

using wire::Frame;
using wire::kNoBuffer;

constexpr SenderNo kSender = 2;
const PoolGeometry kGeometry = PoolGeometry::for_hosts(3, 1024);

class SwitchPortTest : public testing::Test {
 protected:
  PayloadPools pools{kGeometry};
  FlushList flush_list;
  SwitchPort port{pools, 0, flush_list}, other{pools, 1, flush_list};
  Frame frame;

  BareClient open(SwitchPort& which, std::uint32_t area, uid_t uid = 1000) {
    return BareClient(*which.open({getpid(), uid}), kGeometry, area);
  }
  void flush() { flush_all(flush_list); }
  std::uint64_t bad() const { return port.counters()[PortCounter::kDropBadDescriptor]; }
};

TEST_F(SwitchPortTest, ReadsInlineAndReferredPayloads) {
  BareClient client = open(port, 0);
  client.put(BareClient::valid_headers(4));
  client.put(client.data_in(*client.take_slot(), 0xAB));
  ASSERT_TRUE(port.receive(frame));
  EXPECT_EQ(frame.ref, kNoBuffer);
  EXPECT_EQ(frame.payload_len, 4u);
  ASSERT_TRUE(port.receive(frame));
  EXPECT_NE(frame.ref, kNoBuffer);
  EXPECT_THAT(frame.payload(), testing::Each(0xAB));
  EXPECT_FALSE(port.receive(frame));
  EXPECT_EQ(bad(), 0u);
}

TEST_F(SwitchPortTest, RefusesEveryImpossibleDescriptor) {
  BareClient client = open(port, 0);
  const Descriptor good = client.data_in(*client.take_slot(), 1);
  std::vector<Descriptor> lies(11, good);
  lies[0].header_len = 0;
  lies[1].header_len = 105;
  lies[2].header_len = 0xFFFF;
  lies[3].payload_len = static_cast<std::uint16_t>(kGeometry.slot_bytes + 1);
  lies[4].payload = client.offset_of(0) + kGeometry.slot_bytes - 63;
  lies[5].payload = kGeometry.area_bytes();  // another host's
  lies[6].payload = kGeometry.pool_bytes();
  lies[7].payload = Descriptor::kInline - 1;
  lies[8].payload = Descriptor::kInline;  // 64 bytes do not fit behind the headers
  lies[9].icrc_state = 3;
  lies[10].icrc_state = static_cast<std::uint8_t>(wire::Icrc::kNone);  // of a RoCE packet
  for (const Descriptor& lie : lies) client.put(lie);
  client.put(good);
  ASSERT_TRUE(port.receive(frame));
  EXPECT_EQ(bad(), lies.size());
  EXPECT_FALSE(port.receive(frame));
  EXPECT_EQ(pools.in_use(port.pool(), 0), 1u);
}

// As many other users as there may be find a place.
TEST_F(SwitchPortTest, LeavesThePoolOfItsUserWhenItCloses) {
  BareClient client = open(port, 0);
  port.close();
  for (uid_t user = 2000; user < 2000 + PayloadPools::kMaxUsers; ++user) {
    EXPECT_TRUE(pools.pool_for(user)) << user;
  }
}

TEST_F(SwitchPortTest, RefusesASlotThatWasNotGivenBack) {
  BareClient client = open(port, 0);
  const Descriptor descriptor = client.data_in(*client.take_slot(), 1);
  client.put(descriptor);
  client.put(descriptor);
  ASSERT_TRUE(port.receive(frame));
  Frame second;
  EXPECT_FALSE(port.receive(second));
  EXPECT_EQ(bad(), 1u);
}

// Any bytes as a descriptor: refused, or a frame within its bounds. Never a read outside of the
// pool.
RC_GTEST_FIXTURE_PROP(SwitchPortTest, SurvivesAnyDescriptor, ()) {
  BareClient client = open(port, 0);
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(
      sizeof(Descriptor), rc::gen::arbitrary<std::uint8_t>());
  Descriptor descriptor = client.data_in(*client.take_slot(), 1);
  const auto from = *rc::gen::inRange<std::size_t>(0, sizeof descriptor);
  std::memcpy(reinterpret_cast<std::uint8_t*>(&descriptor) + from, bytes.data() + from,
              *rc::gen::inRange<std::size_t>(0, sizeof descriptor - from + 1));
  client.put(descriptor);
  if (!port.receive(frame)) {
    RC_ASSERT(bad() == 1u);
    return;
  }
  RC_ASSERT(frame.header_len <= Frame::kCapacity);
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : frame.payload()) sum += byte;
  RC_ASSERT(sum <= 255u * frame.payload_len);
  if (frame.external == nullptr) RC_ASSERT(frame.payload_fits_inline(frame.payload_len));
}

TEST_F(SwitchPortTest, AClosedPortMovesNothing) {
  {
    BareClient client = open(port, 0);
    client.put(BareClient::valid_headers(4));
    client.segment.rx().consumed->store(7);
    port.reclaim();
  }
  port.close();
  EXPECT_FALSE(port.receive(frame));
  EXPECT_TRUE(port.arm());
  port.disarm();
  port.reclaim();
  port.flush();
  EXPECT_EQ(port.unread(), 0u);
  EXPECT_EQ(port.offence(), std::nullopt);
  port.close();
}

// A client has the same descriptors as the switch: a change of their flags changes the switch's as
// well.
TEST_F(SwitchPortTest, RingsWithoutSleepingWhateverTheClientDoesToItsDoorbell) {
  const GrantedFds fds = *port.open({getpid(), 1000});
  BareClient client(fds, kGeometry, 0);
  const UniqueFd doorbell(dup(fds[kClientDoorbellFd]));
  fcntl(doorbell.get(), F_SETFL, fcntl(doorbell.get(), F_GETFL) & ~O_NONBLOCK);
  const std::uint64_t most = ~std::uint64_t{0} - 1;  // an eventfd's counter is full
  [[maybe_unused]] const auto written = write(doorbell.get(), &most, sizeof most);
  client.segment.client_sleeps().send_request(kWakeOnFrames);
  BareClient sender = open(other, 1);
  sender.put(BareClient::valid_headers(4));
  ASSERT_TRUE(other.receive(frame));
  ASSERT_TRUE(port.deliver(frame, kSender, wire::Instant{}));
  auto rung = std::async(std::launch::async, [this] { flush(); });
  const bool has_rung = rung.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  EXPECT_TRUE(has_rung);
  std::uint64_t count = 0;
  if (!has_rung) {  // lets it go on
    ASSERT_GT(read(doorbell.get(), &count, sizeof count), 0);
  }
  EXPECT_EQ(port.counters()[PortCounter::kDoorbells], 1u);
}

// A frame of `opcode` for `client`, which waits for `reasons`. True: the client was woken.
class SwitchPortWakes : public SwitchPortTest {
 protected:
  bool is_woken(wire::Opcode opcode, bool needs_ack, std::uint32_t reasons = kWakeOnBatch) {
    client.segment.client_sleeps().send_request(reasons);
    wire::RoceHeaders headers;
    headers.bth.opcode = opcode;
    headers.bth.ack_request = needs_ack;
    Frame data{};
    data.icrc_state = wire::Icrc::kDeferred;
    headers.emit(data, 0);
    return rings_for(data);
  }
  bool rings_for(const Frame& data) {
    const std::uint64_t before = port.counters()[PortCounter::kDoorbells];
    EXPECT_TRUE(port.deliver(data, kSender, wire::Instant{}));
    flush();
    return port.counters()[PortCounter::kDoorbells] != before;
  }
  BareClient client = open(port, 0);
};

TEST_F(SwitchPortWakes, DoesNotWakeABatchReceiverUntilItHasToAnswer) {
  using wire::Opcode;
  EXPECT_FALSE(is_woken(Opcode::kRcSendFirst, false));
  EXPECT_FALSE(is_woken(Opcode::kRcWriteMiddle, false));
  EXPECT_FALSE(is_woken(Opcode::kRcReadResponseMiddle, false));
  EXPECT_TRUE(is_woken(Opcode::kRcReadResponseLast, false));
  EXPECT_TRUE(is_woken(Opcode::kRcSendMiddle, true));
  EXPECT_TRUE(is_woken(Opcode::kRcSendLast, false));
  EXPECT_TRUE(is_woken(Opcode::kRcSendOnly, false));
  EXPECT_TRUE(is_woken(Opcode::kRcReadRequest, false));
  EXPECT_TRUE(is_woken(Opcode::kRcAcknowledge, false));
  EXPECT_TRUE(is_woken(Opcode::kCnp, false));
  EXPECT_TRUE(is_woken(Opcode::kRcSendMiddle, false, kWakeOnFrames));
  Frame datagram{};
  datagram.header_len = wire::kBthOffset;
  datagram.icrc_state = wire::Icrc::kNone;
  client.segment.client_sleeps().send_request(kWakeOnBatch);
  EXPECT_TRUE(rings_for(datagram));
}

TEST_F(SwitchPortWakes, WakesABatchReceiverBeforeTheRingIsFull) {
  std::uint32_t frames = 1;
  while (!is_woken(wire::Opcode::kRcSendMiddle, false)) ++frames;
  EXPECT_EQ(frames, kWindow);
}

TEST_F(SwitchPortWakes, WakesABatchReceiverWhenAFrameIsMarkedOrDropped) {
  wire::RoceHeaders headers;
  headers.bth.opcode = wire::Opcode::kRcSendMiddle;
  headers.ip.tos = 3;  // congestion experienced
  Frame marked{};
  headers.emit(marked, 0);
  marked.icrc_state = wire::Icrc::kDeferred;
  client.segment.client_sleeps().send_request(kWakeOnBatch);
  EXPECT_TRUE(rings_for(marked));

  headers.ip.tos = 0;
  Frame plain{};
  headers.emit(plain, 0);
  plain.icrc_state = wire::Icrc::kDeferred;
  while (port.deliver(plain, kSender, wire::Instant{})) {
  }
  flush();
  client.segment.client_sleeps().send_request(kWakeOnBatch);
  const std::uint64_t before = port.counters()[PortCounter::kDoorbells];
  EXPECT_FALSE(port.deliver(plain, kSender, wire::Instant{})) << "its sender's share is used up";
  flush();
  EXPECT_EQ(port.counters()[PortCounter::kDoorbells], before + 1);
}

TEST_F(SwitchPortTest, DeliversByReferenceToTheSameUser) {
  BareClient sender = open(port, 0), receiver = open(other, 1);
  const std::uint32_t slot = *sender.take_slot();
  sender.put(sender.data_in(slot, 9));
  ASSERT_TRUE(port.receive(frame));
  ASSERT_TRUE(other.deliver(frame, kSender, wire::Instant{}));
  pools.drop(frame.ref);
  flush();
  Descriptor got;
  ASSERT_EQ(receiver.rx.available(), 1u);
  receiver.rx.take(got);
  EXPECT_EQ(got.payload, sender.offset_of(slot));
  EXPECT_EQ(other.counters()[PortCounter::kCopiedPayloads], 0u);
  EXPECT_EQ(pools.in_use(port.pool(), 0), 1u);
  receiver.rx.release();
  other.reclaim();
  EXPECT_EQ(pools.in_use(port.pool(), 0), 0u);
}

TEST_F(SwitchPortTest, DeliversByCopyToAnotherUser) {
  BareClient sender = open(port, 0, 1000), receiver = open(other, 1, 1001);
  sender.put(sender.data_in(*sender.take_slot(), 9));
  ASSERT_TRUE(port.receive(frame));
  ASSERT_TRUE(other.deliver(frame, kSender, wire::Instant{}));
  pools.drop(frame.ref);
  flush();
  EXPECT_EQ(pools.in_use(port.pool(), 0), 0u);
  Descriptor got;
  ASSERT_EQ(receiver.rx.available(), 1u);
  receiver.rx.take(got);
  ASSERT_LE(got.payload + 64, kGeometry.pool_bytes());
  EXPECT_THAT(std::vector<std::uint8_t>(receiver.pool.data() + got.payload,
                                        receiver.pool.data() + got.payload + 64),
              testing::Each(9));
  receiver.rx.release();
  other.reclaim();
  EXPECT_EQ(pools.in_use(other.pool(), kGeometry.switch_area()), 0u);
  EXPECT_EQ(other.counters()[PortCounter::kCopiedPayloads], 1u);
}

// Whatever one sender does, the window of another's NIC fits.
TEST_F(SwitchPortTest, KeepsSlotsOfTheRingForOtherSenders) {
  BareClient client = open(port, 0), sender = open(other, 1);
  const auto from = [&](SenderNo host) { return port.deliver(frame, host, wire::Instant{}); };
  sender.put(BareClient::valid_headers(4));
  ASSERT_TRUE(other.receive(frame));
  std::uint32_t taken = 0;
  for (std::uint32_t n = 0; n < 2 * kFrameRing; ++n) taken += from(1) ? 1 : 0;
  EXPECT_NEAR(taken, kFrameRing * 2 / 3, 1);
  EXPECT_EQ(port.counters()[PortCounter::kDropEgressFull], 2 * kFrameRing - taken);
  EXPECT_FALSE(from(1 + RingShares::kClasses)) << "one of the same class";
  for (std::uint32_t n = 0; n < kWindow; ++n)
    ASSERT_TRUE(from(n % 2 == 0 ? 2 : kFabricItself)) << n;
  EXPECT_FALSE(from(1));
  flush();
  Descriptor got;
  while (client.rx.available() > 0) client.rx.take(got);
  client.rx.release();
  for (std::uint32_t n = 0; n < taken; ++n) ASSERT_TRUE(from(1)) << n;
  port.close();
  const BareClient next = open(port, 0);
  for (std::uint32_t n = 0; n < taken; ++n) ASSERT_TRUE(from(1)) << n << ", another client";
}

// Whatever a client puts on its ring, the other ports have their turn.
TEST_F(SwitchPortTest, LimitsTheBadDescriptorsOfOneLook) {
  BareClient client = open(port, 0);
  Descriptor bad = BareClient::valid_headers(4);
  bad.header_len = 0xFFFF;
  for (int n = 0; n < 100; ++n) client.put(bad);
  client.put(BareClient::valid_headers(4));
  EXPECT_FALSE(port.receive(frame));
  EXPECT_LE(port.counters()[PortCounter::kDropBadDescriptor], 64u);
  EXPECT_FALSE(port.arm()) << "there is more";
  EXPECT_TRUE(port.receive(frame));
  EXPECT_EQ(port.counters()[PortCounter::kDropBadDescriptor], 100u);
}

TEST_F(SwitchPortTest, CountsFramesForNoClient) {
  BareClient sender = open(other, 1);
  sender.put(BareClient::valid_headers(4));
  ASSERT_TRUE(other.receive(frame));
  EXPECT_FALSE(port.deliver(frame, kSender, wire::Instant{}));
  EXPECT_EQ(port.counters()[PortCounter::kDropNoClient], 1u);
}

TEST_F(SwitchPortTest, RingsASleepingClientOnceABatch) {
  BareClient client = open(port, 0), sender = open(other, 1);
  sender.put(BareClient::valid_headers(4));
  ASSERT_TRUE(other.receive(frame));
  client.segment.client_sleeps().send_request(kWakeOnFrames);
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(port.deliver(frame, kSender, wire::Instant{}));
  flush();
  ASSERT_TRUE(port.deliver(frame, kSender, wire::Instant{}));
  flush();
  EXPECT_EQ(port.counters()[PortCounter::kDoorbells], 1u);
}

TEST_F(SwitchPortTest, ArmsOnlyWhileNothingHasBeenSent) {
  BareClient client = open(port, 0);
  EXPECT_TRUE(port.arm());
  EXPECT_TRUE(client.segment.switch_sleeps().take(kWakeOnFrames));
  client.put(BareClient::valid_headers(4));
  EXPECT_FALSE(port.arm());
  EXPECT_FALSE(client.segment.switch_sleeps().take(kWakeOnFrames));
}

// Three ports with clients of one user.
class ThreePorts : public SwitchPortTest {
 protected:
  static constexpr std::size_t kPorts = 3;

  void come_or_go(std::size_t i) {
    if (ports[i]->is_open()) {
      clients[i].reset();
      ports[i]->close();
      slots[i].clear();
    } else {
      clients[i].emplace(open(*ports[i], static_cast<std::uint32_t>(i)));
    }
  }
  // From the lowest slot that the client has.
  void send(std::size_t i) {
    if (!clients[i]) return;
    while (const auto slot = clients[i]->take_slot()) RC_ASSERT(slots[i].insert(*slot).second);
    if (slots[i].empty()) return;
    clients[i]->put(clients[i]->data_in(*slots[i].begin(), 1));
    slots[i].erase(slots[i].begin());
  }
  // The switch sends a frame of port i to the other ports.
  void replicate(std::size_t i) {
    if (!ports[i]->is_open() || !ports[i]->receive(frame)) return;
    for (SwitchPort* to : ports) {
      if (to != ports[i]) to->deliver(frame, kSender, wire::Instant{});
    }
    pools.drop(frame.ref);
  }
  void read_all(std::size_t i) {
    if (!clients[i]) return;
    Descriptor got;
    for (std::uint32_t n = clients[i]->rx.available(); n > 0; --n) clients[i]->rx.take(got);
    clients[i]->rx.release();
    ports[i]->reclaim();
  }
  // The engine holds a frame of port i, or releases one.
  void hold_or_release(std::size_t i) {
    if (!held.empty()) {
      pools.drop(held.back().ref);
      held.pop_back();
    } else if (ports[i]->is_open() && ports[i]->receive(frame)) {
      held.push_back(frame);
    }
  }
  void close_all() {
    for (const Frame& each : held) pools.drop(each.ref);
    for (SwitchPort* closing : ports) {
      for (SwitchPort* each : ports) each->reclaim();
      if (!closing->is_open()) continue;
      while (closing->receive(frame)) pools.drop(frame.ref);
      RC_ASSERT(closing->counters()[PortCounter::kDropBadDescriptor] == 0u);
    }
    for (SwitchPort* each : ports) each->close();
  }
  void expect_all_slots_free() {
    for (std::size_t i = 0; i < kPorts; ++i) {
      if (pools.pool_count() == 0) break;
      RC_ASSERT(pools.in_use(0, static_cast<std::uint32_t>(i)) == 0u);
      BareClient fresh = open(*ports[i], static_cast<std::uint32_t>(i));
      std::set<std::uint32_t> all;
      while (const auto slot = fresh.take_slot()) RC_ASSERT(all.insert(*slot).second);
      RC_ASSERT(all.size() == kGeometry.slots_per_area);
      ports[i]->close();
    }
  }

  SwitchPort third{pools, 2, flush_list};
  const std::array<SwitchPort*, kPorts> ports{&port, &other, &third};
  std::array<std::optional<BareClient>, kPorts> clients;
  std::array<std::set<std::uint32_t>, kPorts> slots;
  std::vector<Frame> held;
};

// Clients come, go, send, read and stop reading in any order: no slot is lost, none given twice.
RC_GTEST_FIXTURE_PROP(ThreePorts, ReturnEverySlotExactlyOnce, ()) {
  for (int step = *rc::gen::inRange(0, 400); step > 0; --step) {
    const auto i = *rc::gen::inRange<std::size_t>(0, kPorts);
    switch (*rc::gen::weightedElement<int>({{1, 0}, {8, 1}, {8, 2}, {4, 3}, {2, 4}, {2, 5}})) {
      case 0:
        come_or_go(i);
        break;
      case 1:
        send(i);
        break;
      case 2:
        replicate(i);
        break;
      case 3:
        read_all(i);
        break;
      case 4:
        hold_or_release(i);
        break;
      default:
        flush();
    }
  }
  close_all();
  expect_all_slots_free();
}

}  // namespace
}  // namespace cepheus::fabric
