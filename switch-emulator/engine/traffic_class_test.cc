// Packets that a switch makes itself have the DSCP of the packets that they answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "switch-emulator/engine/mcrdma/test_sender.h"
#include "switch-emulator/engine/test_network.h"
#include "wire/ecn.h"

namespace cepheus::fabric {
namespace {

constexpr std::uint8_t kTos = 106;  // DSCP 26, ECT(0)

// Of the frames that a host has received, without the ECN field.
std::vector<int> classes_at(const TestNetwork& net, std::size_t host) {
  std::vector<int> all;
  for (const auto& bytes : net.frames(host)) {
    all.push_back(wire::without_ecn(bytes[wire::kIpOffset + 1]));
  }
  return all;
}

// `count` frames of the class, among them those that switches have made.
void expect_class(TestNetwork& net, std::size_t host, std::size_t count) {
  EXPECT_THAT(classes_at(net, host), testing::AllOf(testing::SizeIs(count), testing::Each(104)));
  net.clear();
}

TEST(TrafficClass, OfRegistrationIsTheLeaders) {
  auto net = make_pair_of_switches(false);
  net->tos = kTos;
  net->register_group(0, 1);
  for (std::size_t host = 1; host < 4; ++host) net->confirm(host, wire::MrpType::kRegister);
  expect_class(*net, 0, 1);  // the CONFIRM of all
  net->control(0, wire::MrpType::kActivate, 1);
  for (std::size_t host = 1; host < 4; ++host) {
    EXPECT_THAT(classes_at(*net, host), testing::Each(104)) << host;
  }
  net->clear();
  net->set_port(1, net->port_of(3), false);
  expect_class(*net, 0, 1);  // REPORT
  net->control(0, wire::MrpType::kActivate, 1, {}, 2);
  net->control(1, wire::MrpType::kUnregister, 1);
  net->send_message(2, TestNetwork::message_about(wire::MrpType::kComplain, {net->member(1)}));
  for (std::size_t host = 0; host < 4; ++host) {
    EXPECT_THAT(classes_at(*net, host), testing::Each(104)) << host;
  }
}

TEST(TrafficClass, OfFeedbackAndNotificationsIsTheSources) {
  auto net = make_pair_of_switches();
  net->tos = kTos;
  net->data(0, 0);
  net->clear();
  net->tos = 0;  // of the receivers: another one
  net->echo(3, -1);
  expect_class(*net, 0, 1);  // a CNP
  net->ack({1, 2, 3}, 0);
  expect_class(*net, 0, 1);
  net->tos = kTos;
  net->message(0, 1, 2);
  net->clear();
  net->tos = 0;
  net->ack({1, 2}, 2);
  net->rnr(3, 1);
  expect_class(*net, 0, 1);
}

TEST(TrafficClass, OfARefusalIsTheRefusedPackets) {
  auto net = make_star(2);
  net->tos = kTos;
  net->inject(0, net->make_frame(0, net->headers_from(0, wire::Opcode::kRcReadRequest, 0)));
  expect_class(*net, 0, 1);
}

TEST(TrafficClass, OfSenderGroupsIsTheSenders) {
  auto net = make_star(3, false);
  TestSender sender(*net, 0, {1, 2});
  net->tos = kTos;
  sender.install();
  expect_class(*net, 1, 1);
  sender.query();
  expect_class(*net, 0, 1);
  sender.data(0);
  expect_class(*net, 2, 1);
  net->tos = 0;
  for (const std::size_t host : {1, 2}) {
    sender.feedback(host, 0, wire::AckKind::kAck, wire::Aeth::kNoCreditLimit, true);
  }
  EXPECT_THAT(net->frames(0), testing::Not(testing::IsEmpty()));
  bool has_cnp = false;
  for (const auto& bytes : net->frames(0)) {
    const auto headers = wire::RoceHeaders::parse(*Frame::from_bytes(bytes));
    if (headers->bth.opcode != wire::Opcode::kCnp) continue;
    has_cnp = true;
    EXPECT_EQ(headers->ip.tos, 104);
  }
  EXPECT_TRUE(has_cnp);
  net->clear();
  net->tos = kTos;
  sender.remove();
  expect_class(*net, 1, 1);
}

}  // namespace
}  // namespace cepheus::fabric
