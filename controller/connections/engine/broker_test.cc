#include "controller/connections/engine/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/connections/engine/test_hosts.h"

namespace cepheus::connections {
namespace {

using testing::HasSubstr;

// Host 0 sends, the others receive; each has one program, number 1.
struct Hosts : testing::Test {
  Hosts() {
    for (std::size_t h = 0; h < 3; ++h) hosts.bring(h, 1);
    for (std::size_t h = 1; h < 3; ++h) hosts.submit(h, 1, listen_to("s"));
  }
  const Message& last(std::size_t host) { return hosts.inbox(host, 1).back(); }
  Message accept(std::size_t host, std::uint8_t byte) {
    Message m = about(MessageType::kAccept, last(host).connection);
    m.name.fill(byte);
    m.data = {byte};
    return m;
  }
  void connect() {
    hosts.submit(0, 1, connect_to(5, {2, 1}));
    hosts.run_until_idle();
    for (std::size_t h = 1; h < 3; ++h) {
      ASSERT_EQ(last(h).type, MessageType::kOffer);
      hosts.submit(h, 1, accept(h, static_cast<std::uint8_t>(h)));
    }
    hosts.run_until_idle();
    ASSERT_EQ(last(0).type, MessageType::kConnected);
  }
  // To host 1, by a link that another host's daemon has dialled.
  Actions offer(LinkId link, std::size_t host, ConnectionId id) {
    Message m{.type = MessageType::kOffer, .host = TestHosts::address(host)};
    m.connection = id;
    m.service = "s";
    Actions out;
    hosts.broker(1).on_peer(hosts.now, link, m, out);
    return out;
  }
  std::uint64_t refusals(std::size_t host, Refusal r) { return hosts.broker(host).refusals()[r]; }

  TestHosts hosts{3};
};

TEST_F(Hosts, ConnectsTheSenderWithAllInItsOrder) {
  connect();
  const Message& connected = last(0);
  EXPECT_EQ(connected.request, 5u);
  ASSERT_EQ(connected.members.size(), 2u);
  EXPECT_EQ(connected.members[0].host, TestHosts::address(2));
  EXPECT_EQ(connected.members[0].name[0], 2);
  EXPECT_EQ(connected.members[1].data, Data{1});
  for (std::size_t h = 1; h < 3; ++h) {
    EXPECT_EQ(last(h).type, MessageType::kEstablished);
    const Message& offer = hosts.inbox(h, 1)[1];
    EXPECT_EQ(offer.data, Data{9});
    EXPECT_EQ(offer.host, TestHosts::address(0));
    EXPECT_EQ(offer.virtual_qpn, connected.virtual_qpn);
  }
}

TEST_F(Hosts, RefusalOfOneFailsAllAndTheOthersAreNotified) {
  hosts.submit(0, 1, connect_to(5, {1, 2}));
  hosts.run_until_idle();
  hosts.submit(1, 1, accept(1, 1));
  hosts.submit(2, 1, about(MessageType::kRefuse, last(2).connection, "no room"));
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kFailed);
  EXPECT_EQ(last(0).host, TestHosts::address(2));
  EXPECT_EQ(last(0).text, "no room");
  EXPECT_EQ(last(1).type, MessageType::kCancel);
  EXPECT_EQ(last(1).text, "receiver 10.0.0.3: no room");
  EXPECT_EQ(refusals(0, Refusal::kRefusedByProgram), 1u);
}

TEST_F(Hosts, FailsAtOnceWhereNobodyListens) {
  hosts.submit(0, 1, connect_to(5, {1, 2}, "other"));
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kFailed);
  EXPECT_THAT(last(0).text, HasSubstr("no program listens there for service 'other': start it"));
}

TEST_F(Hosts, FailsAfterItsTimeLimitAndNamesTheLateHost) {
  hosts.submit(0, 1, connect_to(5, {1, 2}));
  hosts.run_until_idle();
  hosts.submit(1, 1, accept(1, 1));
  hosts.run_until_idle();
  hosts.pass(Broker::kDefaultTimeLimit - wire::Duration(1));
  EXPECT_EQ(last(0).type, MessageType::kConnecting);
  hosts.pass(wire::Duration(1));
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kFailed);
  EXPECT_EQ(last(0).host, TestHosts::address(2));
  EXPECT_EQ(last(1).type, MessageType::kCancel);
  EXPECT_EQ(last(2).type, MessageType::kCancel);
  EXPECT_EQ(refusals(0, Refusal::kTimedOut), 1u);
}

TEST_F(Hosts, ReceiverThatEndsIsLeftAndTheOthersStay) {
  connect();
  hosts.kill(1, 1);
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kLeft);
  EXPECT_EQ(last(0).host, TestHosts::address(1));
  EXPECT_EQ(last(0).text, "its program has ended");
  EXPECT_EQ(last(2).type, MessageType::kEstablished);
  hosts.submit(0, 1, about(MessageType::kClose, last(0).connection));
  hosts.run_until_idle();
  EXPECT_EQ(last(2).type, MessageType::kClosed);
  EXPECT_EQ(refusals(1, Refusal::kLate), 0u);  // a receiver that has left gets no message
}

TEST_F(Hosts, SenderThatEndsClosesAllReceivers) {
  connect();
  hosts.kill(0, 1);
  hosts.run_until_idle();
  for (std::size_t h = 1; h < 3; ++h) {
    EXPECT_EQ(last(h).type, MessageType::kClosed);
    EXPECT_EQ(last(h).text, "the sending program has ended");
  }
}

TEST_F(Hosts, LostLinkIsReportedOnBothSides) {
  connect();
  hosts.disconnect(0);  // to host 2
  EXPECT_EQ(last(0).type, MessageType::kLeft);
  EXPECT_EQ(last(0).host, TestHosts::address(2));
  EXPECT_EQ(last(2).type, MessageType::kClosed);
  EXPECT_EQ(last(1).type, MessageType::kEstablished);
  EXPECT_EQ(refusals(0, Refusal::kPeerLost), 1u);
  EXPECT_EQ(refusals(2, Refusal::kPeerLost), 1u);
}

TEST_F(Hosts, RefusesHostsThatCantBeReceivers) {
  for (const auto& hosts_named : {std::initializer_list<std::size_t>{}, {0, 1}, {1, 1}}) {
    hosts.submit(0, 1, connect_to(1, hosts_named));
    EXPECT_EQ(last(0).type, MessageType::kFailed);
    EXPECT_EQ(last(0).connection, 0u);
  }
  EXPECT_EQ(refusals(0, Refusal::kBadHosts), 3u);
}

TEST_F(Hosts, ServicesHaveOneProgramAndABound) {
  hosts.bring(1, 2);
  hosts.submit(1, 2, listen_to("s"));
  EXPECT_EQ(hosts.inbox(1, 2).back().type, MessageType::kNotListening);
  EXPECT_THAT(hosts.inbox(1, 2).back().text, HasSubstr("process 101 of this host listens for it"));
  for (int i = 0; i < 10000; ++i) hosts.submit(1, 2, listen_to("t" + std::to_string(i)));
  EXPECT_EQ(refusals(1, Refusal::kTooManyServices), 10000 - Broker::kMostServicesOfProgram);
  hosts.kill(1, 2);
  EXPECT_EQ(hosts.broker(1).status(hosts.now)["services"].size(), 1u);
}

TEST_F(Hosts, ServicesOfOneUserLeaveNamesForOthers) {
  constexpr std::size_t kOfProgram = Broker::kMostServicesOfProgram;
  constexpr std::size_t kPrograms = Broker::kMostServices / 2 / kOfProgram;
  for (ProgramId p = 2; p < 2 + kPrograms; ++p) {
    hosts.bring(0, p, 7);
    for (std::size_t i = 0; i < kOfProgram; ++i) {
      hosts.submit(0, p, listen_to(std::to_string(p) + "." + std::to_string(i)));
      ASSERT_EQ(hosts.inbox(0, p).back().type, MessageType::kListening);
    }
  }
  constexpr ProgramId kOneMore = 2 + kPrograms, kOfOther = kOneMore + 1;
  hosts.bring(0, kOneMore, 7);
  hosts.bring(0, kOfOther, 8);
  for (const ProgramId p : {kOneMore, kOfOther}) hosts.submit(0, p, listen_to("t"));
  EXPECT_EQ(hosts.inbox(0, kOneMore).back().type, MessageType::kNotListening);
  EXPECT_THAT(hosts.inbox(0, kOneMore).back().text, HasSubstr("or this user"));
  EXPECT_EQ(hosts.inbox(0, kOfOther).back().type, MessageType::kListening);
  hosts.kill(0, 2);
  hosts.submit(0, kOneMore, listen_to("u"));
  EXPECT_EQ(hosts.inbox(0, kOneMore).back().type, MessageType::kListening);
}

TEST_F(Hosts, ProgramHasSoManyConnectionsAndGetsThemBack) {
  for (std::uint32_t i = 0; i <= Broker::kMostConnectionsOfProgram; ++i) {
    hosts.submit(0, 1, connect_to(i, {1}));
  }
  EXPECT_EQ(last(0).type, MessageType::kFailed);
  EXPECT_EQ(last(0).request, Broker::kMostConnectionsOfProgram);
  EXPECT_EQ(refusals(0, Refusal::kTooManyConnections), 1u);
  hosts.submit(0, 1, about(MessageType::kClose, hosts.inbox(0, 1).front().connection));
  hosts.submit(0, 1, connect_to(99, {1}));
  EXPECT_EQ(last(0).type, MessageType::kConnecting);
}

TEST_F(Hosts, ProgramThatTakesNoOffersIsOfferedNoMoreThanSoMany) {
  TestHosts many(6);
  many.bring(0, 1);
  many.submit(0, 1, listen_to("s"));
  for (std::size_t h = 1; h < 6; ++h) {
    many.bring(h, 1);
    for (std::uint32_t i = 0; i < Broker::kMostOffersOfHost; ++i) {
      many.submit(h, 1, connect_to(i, {0}));
    }
  }
  many.run_until_idle();
  EXPECT_EQ(many.broker(0).refusals()[Refusal::kTooManyOffers],
            5 * Broker::kMostOffersOfHost - Broker::kMostOffersOfProgram);
}

TEST_F(Hosts, OffersOfOneHostLeaveSpaceForThoseOfOthers) {
  for (ProgramId p = 2; p < 8; ++p) {
    hosts.bring(0, p);
    for (std::uint32_t i = 0; i < Broker::kMostConnectionsOfProgram; ++i) {
      hosts.submit(0, p, connect_to(i, {1}));
    }
  }
  hosts.run_until_idle();
  EXPECT_EQ(refusals(1, Refusal::kTooManyOffers),
            6 * Broker::kMostConnectionsOfProgram - Broker::kMostOffersOfHost);
  const auto link = hosts.broker(1).link_came(hosts.now, TestHosts::address(0));
  EXPECT_EQ(offer(*link, 0, 1).to_peers.back().message.type, MessageType::kRefuse);
  hosts.submit(2, 1, connect_to(1, {1}));
  hosts.run_until_idle();
  EXPECT_EQ(last(1).type, MessageType::kOffer);
  EXPECT_EQ(last(1).host, TestHosts::address(2));
  hosts.submit(1, 1, about(MessageType::kRefuse, hosts.inbox(1, 1)[1].connection, "no"));
  hosts.submit(0, 1, connect_to(1, {1}));
  hosts.run_until_idle();
  EXPECT_EQ(last(1).host, TestHosts::address(0));  // in place of the one that was refused
}

TEST_F(Hosts, ConnectionsOfOneHostLeaveSpaceForThoseOfOthers) {
  Broker& broker = hosts.broker(1);
  const auto establish = [&](LinkId link, std::size_t host, ConnectionId id) {
    Actions out = offer(link, host, id);
    if (out.to_programs.empty()) return false;
    const ConnectionId ours = out.to_programs.back().message.connection;
    broker.on_request(hosts.now, 1, about(MessageType::kAccept, ours), out);
    broker.on_peer(hosts.now, link, about(MessageType::kEstablished, id), out);
    return true;
  };
  const LinkId link = *broker.link_came(hosts.now, TestHosts::address(7));
  for (ConnectionId i = 0; i < Broker::kMostIncomingOfHost; ++i) {
    ASSERT_TRUE(establish(link, 7, i));
  }
  EXPECT_FALSE(establish(link, 7, Broker::kMostIncomingOfHost));
  EXPECT_FALSE(establish(*broker.link_came(hosts.now, TestHosts::address(7)), 7, 1));
  EXPECT_EQ(refusals(1, Refusal::kTooManyOffers), 2u);
  EXPECT_TRUE(establish(*broker.link_came(hosts.now, TestHosts::address(8)), 8, 1));
  broker.check_consistent();
}

TEST_F(Hosts, OffersWhoseSendersDaemonHasNoOutcomeAreCancelled) {
  hosts.submit(0, 1, connect_to(5, {1, 2}));
  hosts.run_until_idle();
  hosts.submit(1, 1, accept(1, 1));
  hosts.run_until_idle();
  hosts.now += Broker::kOfferTimeLimit;
  for (std::size_t h = 1; h < 3; ++h) {
    EXPECT_EQ(hosts.broker(h).deadline(), hosts.now);
    const auto on_timer = [&](Broker& b, Actions& out) {
      b.on_timer(hosts.now - wire::Duration(1), out);
      EXPECT_TRUE(out.to_programs.empty());
      b.on_timer(hosts.now, out);
    };
    hosts.at(h, on_timer);
    EXPECT_EQ(last(h).type, MessageType::kCancel);
    EXPECT_EQ(refusals(h, Refusal::kTimedOut), 1u);
    EXPECT_EQ(hosts.broker(h).deadline(), wire::kNever);
  }
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kFailed);  // if the daemon works after all
  EXPECT_THAT(last(0).text, HasSubstr("reported no outcome in time"));
}

TEST_F(Hosts, EstablishedConnectionsStayWithoutATimeLimit) {
  connect();
  hosts.pass(2 * Broker::kOfferTimeLimit);
  for (std::size_t h = 1; h < 3; ++h) {
    EXPECT_EQ(last(h).type, MessageType::kEstablished);
    EXPECT_EQ(hosts.broker(h).deadline(), wire::kNever);
  }
}

TEST_F(Hosts, DaemonOfOneHostHasFewLinks) {
  Broker& broker = hosts.broker(1);
  std::optional<LinkId> link;
  for (std::size_t i = 0; i < Broker::kMostLinksOfHost; ++i) {
    link = broker.link_came(hosts.now, TestHosts::address(7));
    EXPECT_TRUE(link);
  }
  EXPECT_FALSE(broker.link_came(hosts.now, TestHosts::address(7)));
  EXPECT_EQ(refusals(1, Refusal::kTooManyPeers), 1u);
  EXPECT_TRUE(broker.link_came(hosts.now, TestHosts::address(8)));
  Actions out;
  broker.link_is_down(hosts.now, *link, "it has ended", out);
  EXPECT_TRUE(broker.link_came(hosts.now, TestHosts::address(7)));
}

// Programs of host 0 connect with hosts that never answer.
struct ManyReceivers : Hosts {
  const Message& connect(ProgramId program, std::size_t first_host, std::size_t count) {
    Message request = connect_to(static_cast<std::uint32_t>(first_host), {});
    for (std::size_t h = 0; h < count; ++h) {
      request.hosts.push_back(TestHosts::address(first_host + h));
    }
    hosts.submit(0, program, request);
    return hosts.inbox(0, program).back();
  }
  // Each program has all links that one may have. Two are of one user.
  void dial_all(std::size_t programs) {
    for (ProgramId p = 1; p <= programs; ++p) {
      if (p > 1) hosts.bring(0, p, (p - 1) / 2);
      for (std::size_t i = 0; i < Broker::kMostLinksOfProgram; i += kMostReceivers) {
        const std::size_t first = 1 + (p - 1) * Broker::kMostLinksOfProgram + i;
        ASSERT_EQ(connect(p, first, kMostReceivers).type, MessageType::kConnecting);
      }
    }
  }
};

TEST_F(ManyReceivers, OfOneProgramLeaveLinksForOtherPrograms) {
  dial_all(1);
  EXPECT_EQ(connect(1, 1000, 1).type, MessageType::kFailed);
  EXPECT_EQ(refusals(0, Refusal::kTooManyPeers), 1u);
  EXPECT_EQ(connect(1, 1, kMostReceivers).type, MessageType::kConnecting);  // the same again
  hosts.bring(0, 2);
  EXPECT_EQ(connect(2, 1000, 1).type, MessageType::kConnecting);
}

TEST_F(ManyReceivers, OfOneUserLeaveLinksForOtherUsers) {
  dial_all(2);
  hosts.bring(0, 3);
  EXPECT_EQ(connect(3, 1000, 1).type, MessageType::kFailed);
  EXPECT_THAT(hosts.inbox(0, 3).back().text, HasSubstr("its user"));
  EXPECT_EQ(connect(3, 1, kMostReceivers).type, MessageType::kConnecting);  // by present links
  hosts.bring(0, 4, 1);
  EXPECT_EQ(connect(4, 1000, 1).type, MessageType::kConnecting);
  EXPECT_EQ(connect(3, 1000, 1).type, MessageType::kFailed);  // the link is the other user's
  hosts.kill(0, 2);
  EXPECT_EQ(connect(3, 1000, 1).type, MessageType::kConnecting);
}

TEST_F(ManyReceivers, UseTheLinksThatOthersHaveLeft) {
  dial_all(4);
  hosts.bring(0, 5, 5);
  EXPECT_EQ(connect(5, 1000, 1).type, MessageType::kFailed);
  hosts.kill(0, 4);
  EXPECT_EQ(connect(5, 1000, 1).type, MessageType::kConnecting);
}

TEST_F(Hosts, WhoeverBreaksTheProtocolIsHungUpOn) {
  connect();
  Actions out;
  const auto link = hosts.broker(1).link_came(hosts.now, TestHosts::address(7));
  hosts.broker(1).on_peer(hosts.now, *link, about(MessageType::kAccept, 1), out);
  EXPECT_THAT(out.hang_ups, testing::ElementsAre(*link));
  out.clear();
  hosts.broker(1).on_request(hosts.now, 1, about(MessageType::kLeft, 1), out);
  EXPECT_THAT(out.drops, testing::ElementsAre(1u));
  EXPECT_EQ(out.to_programs.back().message.type, MessageType::kRefusal);
}

TEST_F(Hosts, NobodyAnswersForAnotherProgram) {
  hosts.bring(1, 2);
  hosts.submit(0, 1, connect_to(5, {1}));
  hosts.run_until_idle();
  hosts.submit(1, 2, accept(1, 1));
  hosts.run_until_idle();
  EXPECT_EQ(last(0).type, MessageType::kConnecting);
  EXPECT_EQ(refusals(1, Refusal::kLate), 1u);
}

TEST_F(Hosts, StatusHasServicesConnectionsAndPeers) {
  connect();
  hosts.now += std::chrono::seconds(2);
  const auto sender = hosts.broker(0).status(hosts.now);
  EXPECT_EQ(sender["host"], "10.0.0.1");
  EXPECT_EQ(sender["programs"], 1);
  EXPECT_TRUE(sender["services"].empty());
  ASSERT_EQ(sender["connections"].size(), 1u);
  const auto& sent = sender["connections"][0];
  EXPECT_EQ(sent["role"], "sender");
  EXPECT_EQ(sent["pid"], 101);
  EXPECT_EQ(sent["service"], "s");
  EXPECT_EQ(sent["virtual_qpn"], last(0).virtual_qpn.value());
  EXPECT_EQ(sent["state"], "connected");
  EXPECT_EQ(sent["hosts"], nlohmann::json({"10.0.0.3", "10.0.0.2"}));
  EXPECT_EQ(sent["age_seconds"], 2.0);
  EXPECT_EQ(sender["peers"].size(), 2u);
  EXPECT_EQ(sender["left_off"]["peers"], 0);
  const auto receiver = hosts.broker(1).status(hosts.now);
  EXPECT_EQ(receiver["services"], nlohmann::json::parse(R"([{"name": "s", "pid": 101}])"));
  ASSERT_EQ(receiver["connections"].size(), 1u);
  EXPECT_EQ(receiver["connections"][0]["role"], "receiver");
  EXPECT_EQ(receiver["connections"][0]["pid"], 101);
  EXPECT_EQ(receiver["connections"][0]["state"], "connected");
  EXPECT_EQ(receiver["connections"][0]["hosts"], nlohmann::json::array({"10.0.0.1"}));
  ASSERT_EQ(receiver["peers"].size(), 1u);
  EXPECT_EQ(receiver["peers"][0]["host"], "10.0.0.1");
  EXPECT_EQ(receiver["peers"][0]["dialled"], false);
  EXPECT_EQ(receiver["peers"][0]["up"], true);
  EXPECT_EQ(receiver["peers"][0]["connections"], 1);
}

TEST_F(Hosts, IdleLinksAreGivenUp) {
  connect();
  hosts.submit(0, 1, about(MessageType::kClose, last(0).connection));
  hosts.run_until_idle();
  EXPECT_EQ(hosts.broker(0).status(hosts.now)["peers"].size(), 2u);
  hosts.pass(Broker::kIdleLink);
  for (std::size_t h = 0; h < 3; ++h) {
    EXPECT_EQ(hosts.broker(h).status(hosts.now)["peers"].size(), 0u);
    EXPECT_EQ(refusals(h, Refusal::kPeerLost), 0u);  // all daemons still run
  }
  EXPECT_EQ(hosts.broker(0).deadline(), wire::kNever);
}

}  // namespace
}  // namespace cepheus::connections
