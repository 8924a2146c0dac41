// Two NICs of one process on a live fabric, without the verbs API.
#include "nic-emulator/verbs/device/live_nic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "nic-emulator/verbs/device/async_events.h"
#include "switch-emulator/live/test_fabric.h"

namespace cepheus::verbs {
namespace {

using live::kTimeLimit;
using live::TestFabric;
using net::Topology;

template <typename Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

class CountingPort final : public Listener {
 public:
  void on_event(ibv_event_type type) override { errors += type == IBV_EVENT_PORT_ERR; }
  std::atomic<int> errors{0};
};

// A NIC with one QP and one queue.
class Host final : private Listener {
 public:
  Host(TestFabric& fabric, const std::string& name, CompletionChannel* channel = nullptr,
       const std::optional<rnic::CongestionConfig>& congestion = {}, QpType type = QpType::kRc)
      : nic(std::move(*LiveNic::start(fabric.attach(name), congestion))),
        queue(256, channel, this, nic->armed_queues()),
        memory(1 << 20),
        reliable(type == QpType::kRc) {
    cq = nic->add_queue(queue, *this);
    nic->run([&](Nic& engine, Instant now, NicOutput& out) {
      keys = *engine.register_memory(1, memory.data(), memory.size(),
                                     reinterpret_cast<std::uint64_t>(memory.data()),
                                     kLocalWrite | kRemoteWrite);
      QpInit init;
      init.type = type;
      init.pd = 1;
      init.send_cq = init.recv_cq = cq;
      init.cap = {.max_send_wr = 64, .max_recv_wr = 64};
      init.signal_all = true;
      qpn = *engine.create_qp(init);
      QpAttr a;
      a.state = QpState::kInit;
      a.access = kRemoteWrite;
      return engine.modify_qp(now, qpn, a, kAttrState | kAttrAccess, out).has_value();
    });
    nic->add_qp(qpn, *this);
  }
  ~Host() {
    nic->run([&](Nic& engine, Instant, NicOutput&) { return engine.destroy_qp(qpn); });
    nic->remove_qp(qpn);
    nic->remove_queue(cq);
  }

  void connect(const Host& peer) {
    nic->run([&](Nic& engine, Instant now, NicOutput& out) {
      const std::uint32_t of_rtr = reliable ? kAttrMinRnrTimer : 0u;
      const std::uint32_t of_rts = reliable ? kAttrTimeout | kAttrRetryCount | kAttrRnrRetry : 0u;
      QpAttr a;
      a.state = QpState::kRtr;
      a.remote_ip = peer.nic->identity().address;
      a.remote_qpn = peer.qpn;
      const bool ready = engine
                             .modify_qp(now, qpn, a,
                                        kAttrState | kAttrAddress | kAttrPathMtu | kAttrRemoteQpn |
                                            kAttrRqPsn | of_rtr,
                                        out)
                             .has_value();
      a.state = QpState::kRts;
      return ready &&
             engine.modify_qp(now, qpn, a, kAttrState | kAttrSqPsn | of_rts, out).has_value();
    });
  }
  Sge sge(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory.data() + offset),
            static_cast<std::uint32_t>(length), keys.lkey};
  }
  bool post_recv(std::size_t offset, std::size_t length) {
    return nic->run([&](Nic& engine, Instant now, NicOutput& out) {
      const Sge one = sge(offset, length);
      return engine.post_recv(now, qpn, RecvWr{.wr_id = offset, .sges = {&one, 1}}, out)
          .has_value();
    });
  }
  // All at once.
  bool post_send(std::size_t offset, std::size_t length, std::size_t times = 1) {
    return nic->run([&](Nic& engine, Instant now, NicOutput& out) {
      const Sge one = sge(offset, length);
      SendWr wr;
      wr.wr_id = offset;
      wr.sges = {&one, 1};
      bool posted = true;
      for (std::size_t i = 0; i < times; ++i) {
        posted = posted && engine.post_send(now, qpn, wr, out).has_value();
      }
      return posted;
    });
  }
  // The next completion; `polling`: by polls of the NIC, else only by reading the queue.
  std::optional<Completion> wait(bool polling) {
    std::optional<Completion> got;
    eventually([&] {
      if (polling) nic->poll();
      queue.take(1, [&](const Completion& entry) { got = entry; });
      return got.has_value();
    });
    return got;
  }

  std::unique_ptr<LiveNic> nic;
  CompletionQueue queue;
  std::vector<std::uint8_t> memory;
  const bool reliable;
  MemoryKeys keys;
  CqId cq = 0;
  Qpn qpn;
  std::atomic<int> overruns{0};

 private:
  void on_event(ibv_event_type type) override { overruns += type == IBV_EVENT_CQ_ERR ? 1 : 0; }
};

class TwoNics : public ::testing::Test {
 protected:
  void exchange(bool polling) {
    a_.connect(b_);
    b_.connect(a_);
    for (std::size_t i = 0; i < a_.memory.size(); ++i) {
      a_.memory[i] = static_cast<std::uint8_t>(i * 13);
    }
    ASSERT_TRUE(b_.post_recv(0, b_.memory.size()));
    ASSERT_TRUE(a_.post_send(0, a_.memory.size()));
    const auto received = b_.wait(polling);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->status, WcStatus::kSuccess);
    EXPECT_EQ(received->byte_len, a_.memory.size());
    EXPECT_EQ(received->source_qpn, a_.qpn);
    const auto sent = a_.wait(polling);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, WcStatus::kSuccess);
    EXPECT_EQ(a_.memory, b_.memory);
  }

  TestFabric fabric_{Topology::star(2)};
  Host a_{fabric_, "h0"};
  Host b_{fabric_, "h1"};
};

TEST_F(TwoNics, ExchangeWhileTheirProgramsPoll) { exchange(true); }

TEST_F(TwoNics, ExchangeThroughTheirThreadsAlone) { exchange(false); }

TEST_F(TwoNics, ContinueWhenAProgramStopsPolling) {
  exchange(true);
  // No more polls: the threads must notice, and drive the NICs.
  ASSERT_TRUE(a_.post_recv(0, 64));
  ASSERT_TRUE(b_.post_send(0, 64));
  EXPECT_TRUE(a_.wait(false));
  EXPECT_TRUE(b_.wait(false));
}

// Each post takes in the acknowledgements of the posts before it.
TEST_F(TwoNics, NeedNoThreadForAProgramThatOnlyPosts) {
  constexpr std::uint64_t kPosts = 200;
  a_.connect(b_);
  b_.connect(a_);
  std::uint64_t late = 0;  // by then the thread drives the NIC
  Instant last = wire::monotonic_now();
  for (std::uint64_t i = 0; i < kPosts; ++i) {
    ASSERT_TRUE(b_.post_recv(0, 64));
    ASSERT_TRUE(a_.post_send(0, 64));
    ASSERT_TRUE(b_.wait(false));
    const Instant now = wire::monotonic_now();
    late += now - std::exchange(last, now) > DrivePolicy::kPollGrace / 2 ? 1 : 0;
  }
  const auto status = fabric_.status();
  EXPECT_LE(live::counter(status.switches[0].ports[0], "doorbells"), 2 * late + 5);
  for (std::uint64_t i = 0; i < kPosts; ++i) {
    ASSERT_TRUE(a_.wait(false)) << "the thread takes the last ones in";
  }
}

// Nothing answers a UC message, and no timer runs.
TEST(UnreliableNic, SendsMoreThanItsRingHoldsByItself) {
  TestFabric fabric(Topology::star(2));
  Host a(fabric, "h0", nullptr, {}, QpType::kUc), b(fabric, "h1", nullptr, {}, QpType::kUc);
  a.connect(b);
  b.connect(a);
  constexpr std::size_t kMessages = 3;  // of 1024 packets
  for (int round = 0; round < 20; ++round) {
    // The thread has work, and goes to sleep on the port.
    ASSERT_TRUE(a.post_recv(0, 64));
    ASSERT_TRUE(b.post_send(0, 64));
    ASSERT_TRUE(a.wait(false));
    ASSERT_TRUE(b.wait(false));
    ASSERT_TRUE(a.post_send(0, a.memory.size(), kMessages));
    for (std::size_t n = 0; n < kMessages; ++n) {
      ASSERT_TRUE(a.wait(false)) << "of message " << n << ", round " << round;
    }
  }
}

// A hardware NIC acknowledges packets on arrival, whatever its program does next.
TEST_F(TwoNics, AcknowledgeWhatHasArrivedBeforeAQueuePairEnds) {
  a_.connect(b_);
  b_.connect(a_);
  ASSERT_TRUE(b_.post_recv(0, 64));
  // Its thread leaves packets to a program that polls, and for a moment after the last poll.
  for (int i = 0; i < 10'000; ++i) b_.nic->poll();
  ASSERT_TRUE(a_.post_send(0, 64));
  fabric_.status_when([](const live::FabricStatus& status) {
    return live::counter(status.switches[0].ports[1], "tx_packets") > 0;
  });
  b_.nic->run_last([&](Nic& engine, Instant, NicOutput&) { return engine.destroy_qp(b_.qpn); });
  const auto sent = a_.wait(true);
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, WcStatus::kSuccess);
}

TEST_F(TwoNics, DropCompletionsOfAQueueThatHasGone) {
  a_.connect(b_);
  b_.connect(a_);
  ASSERT_TRUE(b_.post_recv(0, 64));
  b_.nic->remove_queue(b_.cq);
  ASSERT_TRUE(a_.post_send(0, 64));
  EXPECT_TRUE(a_.wait(true));
  EXPECT_TRUE(b_.queue.is_empty());
}

TEST_F(TwoNics, CountInvalidDescriptors) {
  EXPECT_THAT(a_.nic->counters_text(), ::testing::HasSubstr("rx_drop_invalid_descriptor 0\n"));
}

TEST_F(TwoNics, NotifyTheirListenersOnceOfTheFabricsEnd) {
  CountingPort listener;
  a_.nic->add_listener(listener);
  fabric_.stop();
  EXPECT_TRUE(eventually([&] { return listener.errors > 0; }));
  EXPECT_FALSE(a_.nic->is_up());
  for (int i = 0; i < 10'000; ++i) a_.nic->poll();
  EXPECT_EQ(listener.errors, 1);
  a_.nic->remove_listener(listener);
}

// A listener that finds no memory.
class ThrowingPort final : public Listener {
 public:
  void on_event(ibv_event_type) override {
    ++errors;
    throw std::bad_alloc();
  }
  std::atomic<int> errors{0};
};

TEST_F(TwoNics, AnExceptionInTheThreadEndsThePortAndNotTheProgram) {
  ThrowingPort listener;
  a_.nic->add_listener(listener);
  fabric_.stop();
  EXPECT_TRUE(eventually([&] { return listener.errors > 0; }));
  EXPECT_TRUE(eventually([&] { return !a_.nic->is_up(); }));
  a_.nic->remove_listener(listener);
  EXPECT_TRUE(a_.post_recv(0, 8)) << "the NIC's lock is free";
}

TEST_F(TwoNics, ExchangeDatagrams) {
  DatagramSocket* from = a_.nic->open_socket(1000);
  DatagramSocket* to = b_.nic->open_socket(2000);
  ASSERT_TRUE(from != nullptr && to != nullptr);
  const std::vector<std::uint8_t> small(20, 1);
  const std::vector<std::uint8_t> large(kMaxDatagram, 2);
  const wire::Ipv4 address = b_.nic->identity().address;
  for (const auto* data : {&small, &large}) {
    ASSERT_TRUE(a_.nic->send_datagram(*from, address, 2000, *data));
    std::vector<std::uint8_t> got;
    EXPECT_TRUE(eventually([&] {
      return b_.nic->receive_datagram(*to, [&](const Datagram& datagram) {
        got.assign(datagram.data.begin(), datagram.data.begin() + datagram.size);
        EXPECT_EQ(datagram.from, a_.nic->identity().address);
        EXPECT_EQ(datagram.from_port, 1000);
      });
    }));
    EXPECT_EQ(got, *data);
  }
  const auto refused =
      a_.nic->send_datagram(*from, address, 2000, std::vector<std::uint8_t>(kMaxDatagram + 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, wire::ErrorCode::kInvalid);
  EXPECT_THAT(a_.nic->counters_text(), ::testing::HasSubstr("datagrams_sent 2\n"));
}

// A notification from a peer; the program does not poll meanwhile.
TEST(CongestedNic, WaitsForItsRateByItself) {
  TestFabric fabric(Topology::star(2));
  rnic::CongestionConfig congestion;
  congestion.link = {1'000'000'000};
  congestion.reaction.rate_timer = kTimeLimit;  // it does not recover
  Host a(fabric, "h0", nullptr, congestion), b(fabric, "h1", nullptr, congestion);
  a.connect(b);
  b.connect(a);
  constexpr std::size_t kLength = 512 << 10;
  ASSERT_TRUE(b.post_recv(0, kLength));
  wire::RoceHeaders headers;
  headers.ip.source = b.nic->identity().address;
  headers.ip.destination = a.nic->identity().address;
  headers.bth.opcode = wire::Opcode::kCnp;
  headers.bth.destination_qp = a.qpn;
  wire::Frame cnp;
  headers.emit(cnp, 0);
  a.nic->run([&](Nic& engine, Instant now, NicOutput& out) {
    engine.on_packet(now, cnp, out);
    return true;
  });
  EXPECT_THAT(a.nic->counters_text(), ::testing::ContainsRegex("rate_mbps_qp[0-9]+ 500\n"));
  EXPECT_THAT(a.nic->counters_text(), ::testing::HasSubstr("rate_cuts 1\n"));
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(a.post_send(0, kLength));
  const auto sent = a.wait(false);
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->status, WcStatus::kSuccess);
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(8)) << "500 Mb/s";
  EXPECT_THAT(a.nic->counters_text(), ::testing::ContainsRegex("paced_waits [1-9]"));
}

TEST_F(TwoNics, PollFromSeveralThreadsAtOnce) {
  a_.connect(b_);
  b_.connect(a_);
  constexpr std::size_t kMessages = 48;
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_TRUE(b_.post_recv(i * 1000, 1000));
  std::atomic<std::size_t> received{0};
  {
    std::vector<std::jthread> pollers;
    for (int t = 0; t < 3; ++t) {
      pollers.emplace_back([&] {
        eventually([&] {
          b_.nic->poll();
          b_.queue.take(1, [&](const Completion&) { ++received; });
          return received == kMessages;
        });
      });
    }
    for (std::size_t i = 0; i < kMessages; ++i) ASSERT_TRUE(a_.post_send(i * 1000, 1000));
  }
  EXPECT_EQ(received, kMessages);
  EXPECT_EQ(a_.overruns, 0);
  EXPECT_THAT(a_.nic->counters_text(true), ::testing::HasSubstr("  (packets sent)\n"));
  EXPECT_THAT(a_.nic->counters_text(true), ::testing::Not(::testing::HasSubstr(" 0\n")));
  EXPECT_THAT(a_.nic->counters_text(), ::testing::HasSubstr("rx_drop_icrc 0\n"));
}

}  // namespace
}  // namespace cepheus::verbs
