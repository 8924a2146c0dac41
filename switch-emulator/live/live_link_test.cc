// Links with rate, delay and faults in a live fabric: lost frames are counted, others arrive whole.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/test_fabric.h"
#include "wire/clock.h"
#include "wire/icrc.h"

namespace cepheus::live {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Packets ahead of the receiver, fewer than a NIC keeps: no buffer overflows.
constexpr std::uint32_t kWindow = 128;

// Sends `count` packets of 4 KiB from h0 to h1 on one thread while this one receives until
// `expected` have arrived.
struct Arrivals {
  std::vector<std::uint32_t> psns;
  std::uint32_t bad = 0;  // ICRC present and wrong, as a NIC would find
  wire::Duration took{};
};
Arrivals stream(fabric::HostPort& from, fabric::HostPort& to, std::uint32_t count,
                std::uint32_t last_words = 0) {
  Arrivals arrivals;
  const wire::Instant began = wire::monotonic_now();
  std::atomic<std::uint32_t> seen{0};  // the receiver is past this PSN
  std::thread sender([&] {
    for (std::uint32_t n = 0; n < count; ++n) {
      while (n >= seen + kWindow && wire::monotonic_now() - began < kTimeLimit)
        std::this_thread::yield();
      send_packet(from, {.to = to.identity().address, .psn = wire::Psn(n), .payload_bytes = 4096});
    }
    // Repeated again and again, so that some get through whatever the link does.
    for (std::uint32_t n = 0; n < last_words; ++n) {
      send_packet(from, {.to = to.identity().address, .psn = wire::Psn(count), .payload_bytes = 0});
    }
  });
  wire::Frame frame;
  while (await_frame(to, frame)) {
    const auto headers = wire::RoceHeaders::parse(frame);
    const bool good = headers && wire::check_icrc(frame);
    if (!good) ++arrivals.bad;
    if (good) arrivals.psns.push_back(headers->bth.psn.value());
    if (good) seen = std::max(seen.load(), headers->bth.psn.value() + 1);
    to.release();
    if (good && arrivals.psns.back() == count) break;
    if (last_words == 0 && arrivals.psns.size() == count) break;
  }
  sender.join();
  arrivals.took = wire::monotonic_now() - began;
  return arrivals;
}

TEST(LiveLink, KeepsToItsRateAndLosesNothingWithoutFaults) {
  net::LinkConfig link;
  link.rate = {500'000'000};
  link.delay = milliseconds(1);
  TestFabric fabric(net::Topology::star(2, link));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  constexpr std::uint32_t kCount = 2000;  // 8 MiB, twice the link's queue
  const Arrivals arrivals = stream(*h0, *h1, kCount);
  ASSERT_EQ(arrivals.psns.size(), kCount);
  EXPECT_TRUE(std::is_sorted(arrivals.psns.begin(), arrivals.psns.end()));
  const auto at_least = link.rate.time_for(kCount * (4096 + 58ull)) + 2 * link.delay;
  EXPECT_GE(arrivals.took, at_least - at_least / 100);
  EXPECT_EQ(port_of(fabric.status(), 0).in.dropped_queue_full, 0u);
}

TEST(LiveLink, CountsEveryFrameThatItLosesOrDuplicates) {
  net::LinkConfig link;
  link.loss = 0.2;
  link.duplicate = 0.1;
  link.reorder = 0.1;
  TestFabric fabric(net::Topology::star(2, link));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  constexpr std::uint32_t kCount = 2000, kLastWords = 50;
  const Arrivals arrivals = stream(*h0, *h1, kCount, kLastWords);
  // Late frames may still be under way: the counts are final when as many have arrived as were
  // counted.
  std::uint64_t received = arrivals.psns.size();
  wire::Frame frame;
  const auto status = fabric.status_when([&](const FabricStatus& s) {
    while (h1->receive(frame)) ++received;
    h1->release();
    const net::LinkCounters& in = port_of(s, 0).in;
    const net::LinkCounters& out = port_of(s, 1).out;
    return in.frames == kCount + kLastWords &&
           port_of(s, 0).rx.frames == in.frames - in.dropped_loss + in.duplicated &&
           received == out.frames - out.dropped_loss + out.duplicated;
  });
  const net::LinkCounters& up = port_of(status, 0).in;
  const net::LinkCounters& down = port_of(status, 1).out;
  EXPECT_EQ(up.frames, kCount + kLastWords);
  EXPECT_EQ(port_of(status, 0).rx.frames, up.frames - up.dropped_loss + up.duplicated);
  EXPECT_EQ(down.frames, port_of(status, 1).tx.frames);
  EXPECT_EQ(port_of(status, 1).access[fabric::PortCounter::kDropEgressFull], 0u);
  EXPECT_EQ(received, down.frames - down.dropped_loss + down.duplicated);
  EXPECT_GT(up.dropped_loss, kCount / 10);
  EXPECT_GT(up.duplicated, kCount / 30);
  EXPECT_GT(up.reordered, 0u);
  EXPECT_FALSE(std::is_sorted(arrivals.psns.begin(), arrivals.psns.end()));
}

// The ICRC detects a flipped bit, even if none had been computed: it is then computed over the
// intact bytes.
TEST(LiveLink, NeverDeliversADamagedFrameAsIntact) {
  net::LinkConfig link;
  link.corrupt = 0.3;
  TestFabric fabric(net::Topology::star(2, link));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  constexpr std::uint32_t kCount = 1000, kLastWords = 50;
  wire::Frame frame;
  const Arrivals arrivals = stream(*h0, *h1, kCount, kLastWords);
  const auto status = fabric.status();
  EXPECT_GT(port_of(status, 0).in.corrupted, kCount / 10);
  EXPECT_GT(counter(port_of(status, 0), "drop_bad_icrc"), kCount / 10);
  EXPECT_GT(arrivals.bad, kCount / 20);
  EXPECT_TRUE(std::is_sorted(arrivals.psns.begin(), arrivals.psns.end()));
}

TEST(LiveLink, IsCutRepairedAndImpairedAtRunTime) {
  TestFabric fabric(net::Topology::star(2));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  const auto send_one = [&] {
    send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 8});
  };
  const auto set = [&](const char* request) {
    const auto answer = send_request(fabric.socket(), nlohmann::json::parse(request));
    ASSERT_TRUE(answer) << answer.error().text;
  };
  set(R"({"ask": "link", "link": "h0", "direction": "up", "up": false})");
  send_one();
  fabric.status_when([](const FabricStatus& s) { return port_of(s, 0).in.dropped_down == 1; });
  set(R"({"ask": "link", "link": "h0", "direction": "up", "up": true})");
  set(R"({"ask": "link", "link": "h1", "direction": "down", "loss": 1})");
  send_one();
  fabric.status_when([](const FabricStatus& s) { return port_of(s, 1).out.dropped_loss == 1; });
  set(R"({"ask": "link", "link": "h1", "loss": 0})");
  send_one();
  wire::Frame frame;
  ASSERT_TRUE(await_frame(*h1, frame));
  const auto status = fabric.status();
  EXPECT_EQ(port_of(status, 0).in.dropped_down, 1u);
  EXPECT_EQ(port_of(status, 0).in.dropped_loss, 0u);
  EXPECT_EQ(port_of(status, 1).out.dropped_loss, 1u);
}

TEST(Control, AnswersStatusAndResetsCountersOnRequest) {
  TestFabric fabric(net::Topology::star(2));
  const auto h0 = fabric.attach("h0"), h1 = fabric.attach("h1");
  wire::Frame frame;
  send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 100});
  ASSERT_TRUE(await_frame(*h1, frame));
  const auto status = [&] {
    return *status_from_json((*send_request(fabric.socket(), {{"ask", "status"}}))["status"]);
  };
  EXPECT_EQ(status().pid, getpid());
  EXPECT_EQ(port_of(status(), 0).rx.frames, 1u);
  ASSERT_TRUE(send_request(fabric.socket(), {{"ask", "reset_counters"}}));
  EXPECT_EQ(port_of(status(), 0).rx.frames, 0u);
  EXPECT_EQ(port_of(status(), 0).in.frames, 0u);
  EXPECT_EQ(counter(status().switches[0], "rx_packets"), 0u);
  send_packet(*h0, {.to = h1->identity().address, .payload_bytes = 100});
  ASSERT_TRUE(await_frame(*h1, frame));
  EXPECT_EQ(port_of(status(), 0).rx.frames, 1u);
}

TEST(Control, RefusesUnknownRequestsAndListsTheKnown) {
  TestFabric fabric(net::Topology::star(2));
  const auto error = [&](const nlohmann::json& request) {
    const auto answer = send_request(fabric.socket(), request);
    return answer ? std::string("answered") : answer.error().text;
  };
  EXPECT_THAT(error({{"ask", "weather"}}),
              HasSubstr("status, record, link, kill, reload, reset_counters, stop"));
  EXPECT_THAT(error(nlohmann::json::array()), HasSubstr("needs a kind"));
  EXPECT_THAT(error({{"ask", 7}}), HasSubstr("needs a kind"));
  EXPECT_THAT(error({{"ask", "link"}, {"link", "h9"}}), HasSubstr("host"));
  EXPECT_THAT(error({{"ask", "link"}, {"link", 1}}), HasSubstr("host"));
  EXPECT_THAT(error({{"ask", "link"}, {"link", "h0"}, {"loss", 2}}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(error({{"ask", "link"}, {"link", "h0"}, {"up", 1}}), HasSubstr("true or false"));
  EXPECT_THAT(error({{"ask", "link"}, {"link", "h0"}, {"direction", "left"}}),
              HasSubstr("direction must be down, up, both, to-h0 or to-s0"));
}

// Packets pass meanwhile: here, the thread that passes them would never answer.
TEST(Control, RefusesAnUnknownLinkWithoutTheThreadOfPackets) {
  LiveOptions options;
  options.socket = "/tmp/cepheus-test-unknown-" + std::to_string(getpid());
  const auto fabric = LiveFabric::start(net::Topology::star(2), options);  // and no run()
  ASSERT_TRUE(fabric);
  for (const auto& [link, direction] : {std::pair("h00", "both"), std::pair("h0", "left")}) {
    const auto answer = send_request(
        options.socket, {{"ask", "link"}, {"link", link}, {"direction", direction}, {"up", false}});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, wire::ErrorCode::kRefused) << answer.error().text;
  }
}

TEST(Control, StopsTheFabric) {
  const std::string path = "/tmp/cepheus-test-stop-" + std::to_string(getpid());
  LiveOptions options;
  options.socket = path;
  auto fabric = LiveFabric::start(net::Topology::star(1), options);
  ASSERT_TRUE(fabric);
  std::thread thread([&] { (*fabric)->run(); });
  EXPECT_TRUE(send_request(path, {{"ask", "stop"}}));
  thread.join();
}

}  // namespace
}  // namespace cepheus::live
