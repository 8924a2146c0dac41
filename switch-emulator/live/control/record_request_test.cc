#include "switch-emulator/live/control/record_request.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_group.h"

namespace cepheus::live {
namespace {

using recording::Event;
using recording::PacketKind;
using recording::Sighting;
using testing::HasSubstr;

nlohmann::json record_request(std::uint64_t recorder, bool ends = false) {
  nlohmann::json request = {{"ask", "record"}, {"recorder", recorder}};
  if (ends) request["end"] = true;
  return request;
}

TEST(RecordRequest, ShowsAPacketAndItsCopies) {
  constexpr std::size_t kMembers = 4;
  TestFabric fabric(net::Topology::star(kMembers));
  ASSERT_TRUE(send_request(fabric.socket(), record_request(7)));
  LiveGroup group(fabric, kMembers);
  ASSERT_NO_FATAL_FAILURE(group.set_up());
  ASSERT_NO_FATAL_FAILURE(group.transmit(0));
  const auto answer = send_request(fabric.socket(), record_request(7, true));
  ASSERT_TRUE(answer) << answer.error().text;
  const auto words = (*answer)["events"].get<std::vector<std::uint64_t>>();
  const auto names = (*answer)["counters"].get<std::vector<std::string>>();
  std::size_t in = 0, copies = 0, turns = 0;
  for (std::size_t i = 0; i + 4 <= words.size(); i += 4) {
    const Sighting seen = Sighting::of({words[i], words[i + 1], words[i + 2], words[i + 3]});
    const bool is_data = seen.kind == PacketKind::kData;
    in += is_data && seen.event == Event::kArrives ? 1 : 0;
    copies += is_data && seen.event == Event::kLeaves && seen.is_caused ? 1 : 0;
    turns += seen.event == Event::kCounts && names.at(seen.number) == "turns" ? 1 : 0;
  }
  EXPECT_EQ(in, 1u);
  EXPECT_EQ(copies, kMembers - 1);
  EXPECT_EQ(turns, 1u);
}

TEST(RecordRequest, HasOneRecorderAtATime) {
  TestFabric fabric(net::Topology::star(2));
  ASSERT_TRUE(send_request(fabric.socket(), record_request(7)));
  const auto second = send_request(fabric.socket(), record_request(8));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().text, HasSubstr("another program records"));
  ASSERT_TRUE(send_request(fabric.socket(), record_request(7, true)));
  EXPECT_TRUE(send_request(fabric.socket(), record_request(8)));
}

TEST(RecordRequest, RefusesAnEmptyRequest) {
  TestFabric fabric(net::Topology::star(2));
  for (const nlohmann::json& request :
       {nlohmann::json{{"ask", "record"}}, nlohmann::json{{"ask", "record"}, {"recorder", -1}},
        nlohmann::json{{"ask", "record"}, {"recorder", "me"}}, record_request(5, true)}) {
    EXPECT_FALSE(send_request(fabric.socket(), request)) << request;
  }
}

}  // namespace
}  // namespace cepheus::live
