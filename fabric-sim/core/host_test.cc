// Stalled hosts on virtual time: the NIC alone, its programs alone, or both.
#include <gtest/gtest.h>

#include "fabric-sim/core/connection.h"
#include "fabric-sim/core/network.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

// A queue pair of a host, and the times of its completions.
class Program final : public CompletionClient {
 public:
  explicit Program(Host& host) : host_(host), qpn_(create_qp(host, 4, 4)) {
    host.attach(qpn_, *this);
  }
  void connect(const Program& peer) {
    sim::connect(host_, qpn_, {peer.host_.address(), peer.qpn_, kFirstPsn}, {.ack_timeout = 14});
  }
  void receive() { post_receive(host_, qpn_, {}); }
  void send() { post_send(host_, qpn_, {}, {.signaled = true}); }
  void on_completion(Instant now, const rnic::Completion& completion) override {
    require_success(completion);
    seen_at.push_back(now);
  }

  std::vector<Instant> seen_at;

 private:
  Host& host_;
  rnic::Qpn qpn_;
};

class StandingStill : public testing::Test {
 protected:
  StandingStill() {
    sender_.connect(receiver_);
    receiver_.connect(sender_);
    receiver_.receive();
  }
  // The receiver sees a message at then_, and its sender before that or not.
  void expect_acknowledged(bool late) {
    sender_.send();
    simulator_.run();
    ASSERT_EQ(sender_.seen_at.size(), 1u);
    EXPECT_EQ(sender_.seen_at[0] >= then_, late);
    EXPECT_EQ(receiver_.seen_at, std::vector{then_});
  }

  Simulator simulator_{10'000};
  Network network_{simulator_, net::Topology::star(2), std::vector<rnic::NicConfig>(2)};
  Host& host_ = network_.host(1);
  Program sender_{network_.host(0)}, receiver_{host_};
  const Instant then_{5ms};
};

TEST_F(StandingStill, ProgramsLeaveAcknowledgingToTheirNic) {
  host_.stall_programs(then_);
  expect_acknowledged(false);
}

TEST_F(StandingStill, ANicAnswersOnceItGoesOn) {
  host_.stall_nic(then_);
  expect_acknowledged(true);
  EXPECT_EQ(host_.programs_awake_at(), Instant{});
}

TEST_F(StandingStill, APausedHostDoesNeither) {
  host_.pause(then_);
  host_.stall_programs(then_ - 1ms);  // the longest stall counts
  expect_acknowledged(true);
}

class Listener final : public DatagramClient {
 public:
  void on_datagram(Instant now, wire::Ipv4, const wire::MrpMessage&) override {
    received_at.push_back(now);
  }
  std::vector<Instant> received_at;
};

// REGISTER of a group, which the switch passes on to its members.
TEST_F(StandingStill, ProgramsReadDatagramsOnceTheyGoOn) {
  constexpr std::uint16_t kPort = 40000;
  Listener listener;
  host_.listen(listener, kPort);
  wire::MrpMessage message;
  message.header.mcst_id = wire::McstId(198, 18, 0, 1);
  message.header.epoch = 1;
  for (const std::size_t host : {0, 1}) {
    message.add({network_.host(host).address(), wire::Qpn(0x11), 0, kPort});
  }
  network_.host(0).send_datagram(message, kPort);
  host_.stall_programs(then_);
  simulator_.run(then_ + 1ms);
  ASSERT_FALSE(listener.received_at.empty());
  EXPECT_EQ(listener.received_at.front(), then_);
}

}  // namespace
}  // namespace cepheus::sim
