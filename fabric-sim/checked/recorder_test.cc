#include "fabric-sim/core/recorder.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "fabric-sim/checked/group_scenario.h"

namespace cepheus::sim {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSeeds = 12;

struct Recorded {
  Json events;
  Outcome outcome;
  std::uint64_t retransmitted = 0;  // packets that all NICs repeated
};

Recorded record(std::uint64_t seed) {
  std::ostringstream out;
  GroupScenario scenario(make_plan(seed, {}), nullptr, &out);
  Recorded recorded;
  recorded.outcome = scenario.run();
  recorded.events = Json::parse(out.str())["traceEvents"];
  for (std::size_t h = 0; h < scenario.network().host_count(); ++h) {
    const rnic::Counters& counters = scenario.network().host(h).nic().counters();
    recorded.retransmitted += counters[rnic::Counter::kTxRetransmitted];
  }
  return recorded;
}

// Time and place of an event, to which arrows are tied.
using Spot = std::tuple<int, int, double>;
Spot spot_of(const Json& event) {
  return {event["pid"].get<int>(), event["tid"].get<int>(), event["ts"].get<double>()};
}

bool is_again(const Json& event) {
  return event["ph"] == "X" && event["name"].get<std::string>().ends_with(" again");
}

TEST(Recorder, ChangesNothingOfTheRun) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome alone = GroupScenario(make_plan(seed, {})).run();
    EXPECT_EQ(record(seed).outcome.trace_hash, alone.trace_hash) << "seed " << seed;
  }
}

TEST(Recorder, ShowsEachRetransmissionAndTheAcknowledgementsThatWereLost) {
  std::uint64_t lost_acks = 0, answered = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Recorded recorded = record(seed);
    std::uint64_t again = 0;
    double ack_lost_at = -1;
    for (const Json& event : recorded.events) {
      const auto name = event["name"].get<std::string>();
      if (event["ph"] == "i" && name.starts_with("loses: ACK ")) {
        ++lost_acks;
        if (ack_lost_at < 0) ack_lost_at = event["ts"];
      }
      if (!is_again(event)) continue;
      ++again;
      if (ack_lost_at >= 0 && event["ts"] > ack_lost_at) ++answered;
    }
    EXPECT_EQ(again, recorded.retransmitted) << "seed " << seed;
  }
  EXPECT_GT(lost_acks, 0u) << "no seed lost an acknowledgement: the test tested nothing";
  EXPECT_GT(answered, 0u);
}

TEST(Recorder, ShowsAMessageAtItsSourceAndAtEachReceiver) {
  const auto plan = make_plan(1, {});
  std::size_t expected = 0;
  for (const GroupPlan& group : plan.groups) {
    for (const MessagePlan& message : group.messages) {
      if (message.has_completion()) expected += group.members.size();
    }
  }
  std::size_t shown = 0;
  for (const Json& event : record(1).events) {
    const auto name = event["name"].get<std::string>();
    shown += event["ph"] == "b" && name.find("s message ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(shown, expected);
}

TEST(Recorder, EndsEverySpanItBegins) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::map<std::uint64_t, int> open;
    std::set<Spot> slices;
    const Recorded recorded = record(seed);
    for (const Json& event : recorded.events) {
      if (event["ph"] == "X") slices.insert(spot_of(event));
      if (event["ph"] == "b" || event["ph"] == "s") ++open[event["id"]];
      if (event["ph"] == "e" || event["ph"] == "f") --open[event["id"]];
    }
    for (const auto& [id, count] : open) EXPECT_EQ(count, 0) << "seed " << seed << ", id " << id;
    for (const Json& event : recorded.events) {
      if (event["ph"] != "s" && event["ph"] != "f") continue;
      EXPECT_TRUE(slices.contains(spot_of(event)))
          << "seed " << seed << ": no slice at an arrow's end: " << event;
    }
  }
}

}  // namespace
}  // namespace cepheus::sim
