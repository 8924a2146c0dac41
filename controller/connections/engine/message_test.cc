#include "controller/connections/engine/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/sender_group.h"

namespace cepheus::connections {
namespace {

using ::testing::ElementsAre;

constexpr auto kFirst = MessageType::kHello;
constexpr auto kLast = MessageType::kStatus;

// The fields that a type has come back, and the others keep their defaults.
Message full(MessageType type) {
  Message m;
  m.type = type;
  m.version = 7;
  m.host = wire::Ipv4(10, 0, 0, 1);
  m.peer = wire::Ipv4(10, 0, 0, 2);
  m.nonce.fill(0x5A);
  m.is_signed = true;
  m.time_ms = 0x01020304;
  m.connection = 0x1122334455667788;
  m.request = 9;
  m.virtual_qpn = wire::Qpn(wire::kFirstSenderGroupQpn + 5);
  m.service = "volume/7";
  m.text = "because";
  m.name.fill(0xC3);
  m.data = {1, 2, 3};
  m.hosts = {wire::Ipv4(10, 0, 0, 3), wire::Ipv4(10, 0, 0, 4)};
  m.members = {{wire::Ipv4(10, 0, 0, 3), m.name, {4, 5}}, {wire::Ipv4(10, 0, 0, 4), m.name, {}}};
  m.status = "{}";
  return m;
}

std::vector<std::uint8_t> bytes_of(const Message& m) {
  std::vector<std::uint8_t> out;
  m.emit(out);
  return out;
}

std::vector<Message> all() {
  std::vector<Message> messages;
  for (auto t = static_cast<int>(kFirst); t <= static_cast<int>(kLast); ++t) {
    messages.push_back(full(static_cast<MessageType>(t)));
  }
  return messages;
}

TEST(Message, OfEachTypeIsTheSameBytesAgain) {
  for (const Message& m : all()) {
    const auto bytes = bytes_of(m);
    const auto parsed = Message::parse(bytes);
    ASSERT_TRUE(parsed) << static_cast<int>(m.type);
    EXPECT_EQ(bytes_of(*parsed), bytes) << static_cast<int>(m.type);
  }
}

TEST(Message, HasTheFieldsOfItsTypeOnly) {
  std::vector<std::size_t> sizes;
  for (const Message& m : all()) sizes.push_back(bytes_of(m).size());
  EXPECT_THAT(sizes, ElementsAre(32, 1, 1, 10, 32, 18, 9, 18, 30, 18, 22, 3, 11, 33, 9, 1, 11, 20,
                                 17, 64, 26, 7));
}

TEST(Message, CarriesWhatItsTypeHas) {
  const auto offer = Message::parse(bytes_of(full(MessageType::kOffer)));
  EXPECT_EQ(offer->host, wire::Ipv4(10, 0, 0, 1));
  EXPECT_EQ(offer->connection, 0x1122334455667788u);
  EXPECT_EQ(offer->virtual_qpn.value(), 0xC00005u);
  EXPECT_EQ(offer->service, "volume/7");
  EXPECT_EQ(offer->data, (Data{1, 2, 3}));
  const auto connected = Message::parse(bytes_of(full(MessageType::kConnected)));
  EXPECT_EQ(connected->members, full(MessageType::kConnected).members);
  EXPECT_EQ(connected->request, 9u);
}

TEST(Message, ThatIsTruncatedOrGoesOnIsRefused) {
  for (const Message& m : all()) {
    auto bytes = bytes_of(m);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_FALSE(Message::parse(std::span(bytes).first(n)))
          << static_cast<int>(m.type) << " " << n;
    }
    bytes.push_back(0);
    EXPECT_FALSE(Message::parse(bytes));
  }
}

TEST(Message, OfNoTypeIsRefused) {
  for (const int type : {0, static_cast<int>(kLast) + 1, 255}) {
    const std::array<std::uint8_t, 1> bytes{static_cast<std::uint8_t>(type)};
    EXPECT_FALSE(Message::parse(bytes)) << type;
  }
}

TEST(Message, ThatBreaksABoundIsRefused) {
  Message listen{.type = MessageType::kListen};
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\n")}) {
    listen.service = name;
    EXPECT_FALSE(Message::parse(bytes_of(listen))) << name;
  }
  auto close = about(MessageType::kRefuse, 1, std::string(kMostText, 'x'));
  EXPECT_TRUE(Message::parse(bytes_of(close)));
  auto bytes = bytes_of(close);
  bytes[10] += 1;  // the text's length
  bytes.push_back('x');
  EXPECT_FALSE(Message::parse(bytes));
  auto accept = full(MessageType::kAccept);
  accept.data.assign(kMostData, 1);
  bytes = bytes_of(accept);
  EXPECT_TRUE(Message::parse(bytes));
  bytes[1 + 8 + 16 + 1] += 1;  // the data's length
  bytes.push_back(1);
  EXPECT_FALSE(Message::parse(bytes));
  Message status{.type = MessageType::kStatus, .status = std::string(kMostStatus, ' ')};
  bytes = bytes_of(status);
  EXPECT_TRUE(Message::parse(bytes));
  bytes[1 + 3] += 1;  // the status' length
  bytes.push_back(' ');
  EXPECT_FALSE(Message::parse(bytes));
}

TEST(Message, NamesNoQpnOrOneOfASenderGroup) {
  auto offer = full(MessageType::kOffer);
  const auto is_taken = [&](std::uint32_t qpn) {
    offer.virtual_qpn = wire::Qpn(qpn);
    return Message::parse(bytes_of(offer)).has_value();
  };
  EXPECT_TRUE(is_taken(0));
  EXPECT_FALSE(is_taken(17)) << "a real queue pair's";
  EXPECT_FALSE(is_taken(wire::kFirstSenderGroupQpn - 1));
  EXPECT_TRUE(is_taken(wire::kFirstSenderGroupQpn));
  EXPECT_TRUE(is_taken(wire::kLastSenderGroupQpn));
  EXPECT_FALSE(is_taken(wire::kLastSenderGroupQpn + 1));
  auto bytes = bytes_of(full(MessageType::kOffer));
  bytes[1 + 4 + 8] = 1;  // the number's highest byte
  EXPECT_FALSE(Message::parse(bytes)) << "more than 24 bits";
}

TEST(Message, ServiceNamesArePrintableAndHaveABound) {
  EXPECT_TRUE(is_service(std::string(kMostService, 's')));
  EXPECT_FALSE(is_service(std::string(kMostService + 1, 's')));
  EXPECT_TRUE(is_service("!~"));
  EXPECT_FALSE(is_service("a\x7F"));
}

TEST(Message, LongestRequestFitsItsBound) {
  auto connect = full(MessageType::kConnect);
  connect.service.assign(kMostService, 's');
  connect.data.assign(kMostData, 1);
  connect.hosts.assign(kMostReceivers, wire::Ipv4(1));
  EXPECT_LE(bytes_of(connect).size() + 20, kMostRequest);
}

}  // namespace
}  // namespace cepheus::connections
