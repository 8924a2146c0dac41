// Every reading is in every output, with its value.
#include "switch-emulator/live/status/readings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "switch-emulator/live/status/fabric_view.h"
#include "switch-emulator/live/status/metrics.h"
#include "switch-emulator/live/status/status.h"
#include "switch-emulator/live/status/test_status.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Calls f(object) for each object of a status, one of each kind in a fabric of one host.
template <typename Status, typename F>
void for_each_object(Status& status, F&& f) {
  f(status);
  for (auto& one : status.switches) {
    f(one);
    for (auto& port : one.ports) {
      f(port);
      f(port.in);
      f(port.out);
    }
    for (auto& group : one.groups) f(group);
    for (auto& group : one.sender_groups) f(group);
  }
}

// Every settable reading gets its own value, `times` as large.
FabricStatus with_all_readings(std::uint64_t times = 1) {
  FabricStatus status = status_of(net::Topology::star(1));
  status.pid = 7;
  add_tree(status, kGroup, {{status.switches[0].name, {"h0"}}}, "h0");
  status.switches[0].groups[0].paths[0].lag = static_cast<std::uint32_t>(1'000 * times);
  fabric::SenderGroupView& senders = status.switches[0].sender_groups.emplace_back();
  senders.receivers.emplace_back().lag = static_cast<std::uint32_t>(1'001 * times);
  std::uint64_t next = 2'000;
  for_each_object(status, [&](auto& object) {
    for (const auto& reading : readings<std::remove_cvref_t<decltype(object)>>()) {
      if (reading.set != nullptr) reading.set(object, next++ * times);
    }
  });
  return status;
}

// {"port drop_headroom": 2006, ...} in the order of the objects.
std::multimap<std::string, std::uint64_t> values_of(const FabricStatus& status) {
  std::multimap<std::string, std::uint64_t> values;
  for_each_object(status, [&](const auto& object) {
    for (const auto& reading : readings<std::remove_cvref_t<decltype(object)>>()) {
      values.emplace(std::string(reading.scope) + " " + std::string(reading.name),
                     reading.of(object));
    }
  });
  return values;
}

TEST(Readings, HaveUniqueNamesAndHelpTexts) {
  std::set<std::string_view> names;
  for (const ReadingInfo* reading : all_readings()) {
    EXPECT_TRUE(names.insert(reading->full_name).second) << reading->full_name;
    EXPECT_GT(reading->help.size(), 5u) << reading->full_name;
    EXPECT_FALSE(reading->help.starts_with(".")) << reading->full_name;
  }
  EXPECT_TRUE(names.contains("drop_headroom"));
  EXPECT_TRUE(names.contains("link_dropped_loss"));
}

TEST(Readings, AreAllNotZeroInTheStatusThatTheseTestsUse) {
  for (const auto& [name, value] : values_of(with_all_readings())) EXPECT_NE(value, 0u) << name;
}

TEST(Readings, ComeBackFromJson) {
  const FabricStatus status = with_all_readings();
  const auto back = status_from_json(json::parse(to_json(status).dump()));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(values_of(*back), values_of(status));
}

TEST(Readings, AreMetrics) {
  const FabricStatus status = with_all_readings();
  const std::string page = to_metrics(status);
  for_each_object(status, [&](const auto& object) {
    for (const auto& reading : readings<std::remove_cvref_t<decltype(object)>>()) {
      const bool is_time = reading.unit() == "us";
      std::string name = "cepheus_";
      if (reading.scope != "fabric") name += std::string(reading.scope) + "_";
      name += is_time ? std::string(reading.name.substr(0, reading.name.size() - 2)) + "seconds"
                      : std::string(reading.name);
      if (reading.kind == Kind::kCounter) name += "_total";
      const std::uint64_t value = reading.of(object);
      const std::string number =
          is_time ? json(static_cast<double>(value) / 1e6).dump() : std::to_string(value);
      EXPECT_THAT(page, testing::ContainsRegex("\n" + name + "(\\{[^}]*\\})? " + number + "\n"));
      EXPECT_THAT(page, HasSubstr("# HELP " + name + " " + reading.help + "\n"));
    }
  });
}

TEST(Readings, OfCountersCountSinceTheBaselineAndGaugesStay) {
  FabricStatus now = with_all_readings(3);
  subtract(now, with_all_readings(1));
  const FabricStatus expected = with_all_readings(2), gauges = with_all_readings(3);
  const auto two = values_of(expected), three = values_of(gauges), values = values_of(now);
  auto counter = two.begin(), gauge = three.begin();
  std::map<std::string, Kind> kinds;
  for_each_object(now, [&](const auto& object) {
    for (const auto& reading : readings<std::remove_cvref_t<decltype(object)>>()) {
      kinds[std::string(reading.scope) + " " + std::string(reading.name)] = reading.kind;
    }
  });
  for (const auto& [name, value] : values) {
    EXPECT_EQ(value, kinds.at(name) == Kind::kCounter ? counter->second : gauge->second) << name;
    ++counter;
    ++gauge;
  }
}

// A group that was registered again under the same epoch counts from 0.
TEST(Readings, ThatRestartedAreNotNegative) {
  FabricStatus now = with_all_readings(1);
  subtract(now, with_all_readings(3));
  EXPECT_EQ(values_of(now), values_of(with_all_readings(1)));
}

TEST(Readings, AreInTheViewOfTopAndTheWebPage) {
  const FabricStatus status = with_all_readings();
  std::map<std::string, json> shown;
  const json view = fabric_view({status, 1}, nullptr);
  for (const json& each : view.at("counters")) shown[each.at("name")] = each;
  for (const Total& total : totals(status)) {
    const json& each = shown[total.reading->full_name];
    ASSERT_TRUE(each.is_object()) << total.reading->full_name;
    EXPECT_EQ(each.at("total"), total.value) << total.reading->full_name;
    EXPECT_EQ(each.at("help"), total.reading->help);
  }
}

TEST(Readings, AreInTheTextAndInTheDescription) {
  const std::string text = to_text(with_all_readings(), View::kCounters, false);
  const std::string description = describe_counters(false);
  for (const ReadingInfo* reading : all_readings()) {
    EXPECT_THAT(text, HasSubstr("  " + reading->full_name + " "));
    EXPECT_THAT(description, HasSubstr("  " + reading->full_name + " "));
  }
}

TEST(Readings, OfSeveralPortsAreAddedUnlessTheyAreGauges) {
  FabricStatus status = status_of(net::Topology::star(2));
  std::vector<PortStatus>& ports = status.switches[0].ports;
  for (PortStatus& port : ports) port.queue = {.ecn_marked = 2, .high_water = 100};
  ports[1].queue.high_water = 300;
  std::map<std::string, std::uint64_t> sums;
  for (const Total& total : totals(status)) sums[total.reading->full_name] = total.value;
  EXPECT_EQ(sums["ecn_marked"], 4u);
  EXPECT_EQ(sums["queue_high_water_bytes"], 300u);
  EXPECT_THAT(to_text(status, View::kCounters, false),
              HasSubstr("queue_high_water_bytes    300  h0 100, h1 300\n"));
}

// The engine counts by port, and its switch adds the ports up. Hosts' ports have their own counters
// beside the one-armed interface's.
TEST(Readings, OfPortsAreNotCountedTwice) {
  FabricStatus status = status_of(net::Topology::star(1));
  SwitchStatus& one = status.switches[0];
  one.engine[fabric::Counter::kDropTtl] = one.ports[0].engine[fabric::Counter::kDropTtl] = 4;
  one.one_armed[fabric::PortCounter::kDropWrongMac] = 1;
  one.ports[0].access[fabric::PortCounter::kDropWrongMac] = 2;
  std::map<std::string, std::uint64_t> sums;
  for (const Total& total : totals(status)) sums[total.reading->full_name] = total.value;
  EXPECT_EQ(sums["drop_ttl"], 4u);
  EXPECT_EQ(sums["drop_wrong_mac"], 3u);
}

}  // namespace
}  // namespace cepheus::live
