#include "support/recording/timeline.h"

#include <gtest/gtest.h>

#include <sstream>

namespace cepheus::recording {
namespace {

using Json = TraceFile::Json;

constexpr std::uint32_t kGroup = 0xC6120001;
constexpr std::uint16_t kHosts = 3;
constexpr std::uint16_t kSwitch = kHosts;
constexpr std::uint32_t address_of(std::uint16_t host) { return 0x0A000001u + host; }

// Three hosts on a switch, host h at port h.
class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    std::vector<Node> nodes;
    Node middle{"s0", 0x0AFF0001, true, {}, {"turns", "gate_held", "gate_let_through"}};
    for (std::uint16_t h = 0; h < kHosts; ++h) {
      nodes.push_back({"h" + std::to_string(h), address_of(h), false, {Peer{kSwitch, h}}, {}});
      middle.ports.push_back(Peer{h, 0});
    }
    nodes.push_back(middle);
    timeline_.emplace(file_, nodes);
  }

  static Sighting at(std::int64_t ns, Event event, std::uint16_t node, std::uint16_t port) {
    Sighting seen;
    seen.at_ns = ns;
    seen.event = event;
    seen.node = node;
    seen.port = port;
    return seen;
  }
  static Sighting of(Sighting seen, PacketKind kind, std::uint32_t from, std::uint32_t to,
                     std::uint32_t psn) {
    seen.kind = kind;
    seen.source = from;
    seen.destination = to;
    seen.number = psn;
    return seen;
  }
  void see(Sighting seen) { timeline_->see(seen); }
  void in(std::int64_t ns, std::uint16_t host, PacketKind kind, std::uint32_t psn) {
    see(of(at(ns, Event::kArrives, kSwitch, host), kind, address_of(host), kGroup, psn));
  }
  void out(std::int64_t ns, std::uint16_t host, PacketKind kind, std::uint32_t psn) {
    Sighting seen = of(at(ns, Event::kLeaves, kSwitch, host), kind, kGroup, address_of(host), psn);
    seen.is_caused = true;
    see(seen);
  }
  void count(std::int64_t ns, std::uint32_t which, std::uint16_t host, PacketKind kind) {
    Sighting seen =
        of(at(ns, Event::kCounts, kSwitch, host), kind, address_of(host), kGroup, which);
    seen.bytes = 1;
    see(seen);
  }

  // Events of one phase, and of one name if it is given.
  std::vector<Json> events(const char* phase, const std::string& name = {}) {
    if (!read_) {
      timeline_->close(1'000'000);
      file_.finish(Json::object());
      read_ = Json::parse(out_.str())["traceEvents"];
    }
    std::vector<Json> found;
    for (const Json& each : *read_) {
      if (each["ph"] == phase && (name.empty() || each["name"] == name)) found.push_back(each);
    }
    return found;
  }

  std::ostringstream out_;
  TraceFile file_{out_};
  std::optional<Timeline> timeline_;
  std::optional<Json> read_;
};

TEST_F(TimelineTest, LeadsFromADataPacketToEachOfItsCopies) {
  in(100, 0, PacketKind::kData, 5);
  out(110, 1, PacketKind::kData, 25);
  out(120, 2, PacketKind::kData, 35);
  EXPECT_EQ(events("s", "copy").size(), 2u);
  EXPECT_EQ(events("f", "copy").size(), 2u);
  EXPECT_EQ(events("X", "data 25").size(), 1u);
}

TEST_F(TimelineTest, DrawsNoCopyOfWhatNoPacketCaused) {
  in(100, 0, PacketKind::kData, 5);
  see(of(at(500, Event::kLeaves, kSwitch, 1), PacketKind::kData, kGroup, address_of(1), 25));
  EXPECT_TRUE(events("s", "copy").empty());
}

TEST_F(TimelineTest, LeadsFromEachAcknowledgementToTheMergedOne) {
  in(100, 1, PacketKind::kAck, 25);
  in(200, 2, PacketKind::kAck, 35);
  out(210, 0, PacketKind::kAck, 5);
  in(300, 2, PacketKind::kAck, 36);
  out(310, 0, PacketKind::kAck, 6);  // the previous one contains the other's
  EXPECT_EQ(events("s", "merged").size(), 3u);
}

TEST_F(TimelineTest, FollowsAPacketAlongItsCable) {
  see(of(at(50, Event::kLeaves, 0, 0), PacketKind::kData, address_of(0), kGroup, 5));
  in(100, 0, PacketKind::kData, 5);
  in(200, 0, PacketKind::kData, 5);  // no sent packet matches
  ASSERT_EQ(events("s", "cable").size(), 1u);
  EXPECT_EQ(events("s", "cable")[0]["pid"], Timeline::process_of(0));
  EXPECT_EQ(events("f", "cable")[0]["pid"], Timeline::process_of(kSwitch));
}

TEST_F(TimelineTest, ShowsATurnFromItsFirstPacketToTheNextOne) {
  count(100, 0, 0, PacketKind::kData);
  count(900, 0, 1, PacketKind::kData);
  const auto begins = events("b");
  ASSERT_EQ(begins.size(), 2u);
  EXPECT_EQ(begins[0]["name"], "turn of h0 at s0");
  EXPECT_EQ(begins[1]["name"], "turn of h1 at s0");
  EXPECT_EQ(begins[1]["args"]["unfinished"], true);
  ASSERT_EQ(events("e").size(), 2u);
  EXPECT_DOUBLE_EQ(events("e")[0]["ts"].get<double>(), 0.9);
}

TEST_F(TimelineTest, ShowsHowLongAGateKeptSomebody) {
  count(100, 1, 1, PacketKind::kData);
  count(700, 2, 2, PacketKind::kAck);  // the packet that opened it is another port's
  const auto begins = events("b", "gate: h1 waits for the turn before");
  ASSERT_EQ(begins.size(), 1u);
  EXPECT_FALSE(begins[0]["args"].contains("unfinished"));
}

TEST_F(TimelineTest, ShowsHowLongAReceiverWasNotReady) {
  in(100, 0, PacketKind::kData, 5);
  in(200, 2, PacketKind::kRnrNak, 35);
  out(210, 0, PacketKind::kRnrNak, 5);
  in(900, 0, PacketKind::kData, 5);
  const auto begins = events("b", "waits: receiver not ready");
  ASSERT_EQ(begins.size(), 1u);
  EXPECT_EQ(begins[0]["pid"], Timeline::process_of(0));
  EXPECT_DOUBLE_EQ(events("e")[0]["ts"].get<double>(), 0.9);
}

TEST_F(TimelineTest, KeepsPacketsOfOneMomentApart) {
  out(100, 1, PacketKind::kData, 1);
  out(100, 1, PacketKind::kData, 2);
  out(100, 1, PacketKind::kData, 3);
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 3u);
  for (std::size_t i = 1; i < slices.size(); ++i) {
    const double end = slices[i - 1]["ts"].get<double>() + slices[i - 1]["dur"].get<double>();
    EXPECT_LE(end, slices[i]["ts"].get<double>() + 1e-9);
    EXPECT_LT(slices[i - 1]["ts"], slices[i]["ts"]) << "an arrow could not tell them apart";
  }
}

TEST_F(TimelineTest, IgnoresWhatNoNodeSaw) {
  see(at(1, Event::kArrives, 77, 0));
  see(at(1, Event::kReceived, 77, 0));
  Sighting counter = at(1, Event::kCounts, kSwitch, 0);
  counter.number = 99;
  see(counter);
  see(at(1, Event::kLeaves, kSwitch, 999));
  EXPECT_TRUE(events("i").empty());
}

TEST(Sighting, IsTheSameBehindASocket) {
  Sighting seen;
  seen.at_ns = 0x7123'4567'89AB'CDEF;
  seen.node = 0xFEDC;
  seen.port = 0xBA98;
  seen.event = Event::kLeaves;
  seen.kind = PacketKind::kRnrNak;
  seen.is_caused = seen.is_repeat = true;
  seen.source = 0x89ABCDEF;
  seen.destination = 0x01234567;
  seen.number = 0xFFFFFF;
  seen.bytes = 4096;
  EXPECT_EQ(Sighting::of(seen.words()).words(), seen.words());
  EXPECT_EQ(Sighting::of(seen.words()).destination, seen.destination);
  EXPECT_EQ(Sighting::of(seen.words()).node, seen.node);
}

TEST(Sighting, OfAnyWordsIsOneThatExists) {
  const Sighting seen = Sighting::of({~0ull, ~0ull, ~0ull, ~0ull});
  EXPECT_EQ(seen.event, Event::kCounts);
  EXPECT_EQ(seen.kind, PacketKind::kOther);
}

}  // namespace
}  // namespace cepheus::recording
