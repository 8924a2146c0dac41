// The table of a live fabric's readings. Its lines are those of readings.def, of the switch's
// counters (engine/counters.def) and of hosts' ports (ports/port_counters.def).
//
// Status text, JSON, metrics, differences and views use this table and have no lists of their own.
// Settings and states, such as "attached", are not readings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "switch-emulator/live/status/status.h"

namespace cepheus::live {

enum class Kind : std::uint8_t {
  kCounter,  // only grows; several objects' are added
  kGauge,    // a level; the largest of several objects' is shown
};

enum class Listing : std::uint8_t {
  kOwn,       // a key of its object in JSON, even if it is 0
  kCounters,  // in the object's "counters", unless it is 0
  kPart,      // ... and included in its switch's reading of the same name
};

struct ReadingInfo {
  std::string_view scope;  // "port"
  std::string_view name;   // within its scope: "dropped_loss"
  std::string full_name;   // unique over all scopes: "link_dropped_loss"
  std::string help;
  Kind kind = Kind::kCounter;
  Listing listing = Listing::kOwn;

  std::string_view unit() const {
    return name.ends_with("bytes") ? "bytes" : name.ends_with("_us") ? "us" : "";
  }
  bool is_drop() const { return name.starts_with("drop"); }
  // Combines the values of two objects.
  std::uint64_t combine(std::uint64_t a, std::uint64_t b) const {
    return kind == Kind::kCounter ? a + b : std::max(a, b);
  }
};

template <typename Object>
struct Reading : ReadingInfo {
  std::uint64_t (*of)(const Object&) = nullptr;
  void (*set)(Object&, std::uint64_t) = nullptr;  // null: computed from other parts of the object
};

using ReadingTables =
    std::tuple<std::vector<Reading<PortStatus>>, std::vector<Reading<FabricStatus>>,
               std::vector<Reading<SwitchStatus>>, std::vector<Reading<net::LinkCounters>>,
               std::vector<Reading<fabric::GroupView>>,
               std::vector<Reading<fabric::SenderGroupView>>>;
const ReadingTables& reading_tables();

// Those of one kind of objects.
template <typename Object>
const std::vector<Reading<Object>>& readings() {
  return std::get<std::vector<Reading<Object>>>(reading_tables());
}

// Each full name once, in the order of the tables.
const std::vector<const ReadingInfo*>& all_readings();

// Calls f(reading, value, place, whether another switch's values contain it) for each value of a
// switch that is not 0.
template <typename F>
void for_each_value(const SwitchStatus& one, F&& f) {
  const auto read = [&f](const auto& object, const std::string& where, bool is_repeated) {
    for (const auto& reading : readings<std::remove_cvref_t<decltype(object)>>()) {
      const std::uint64_t value = reading.of(object);
      if (value != 0) f(reading, value, where, is_repeated);
    }
  };
  read(one, "", false);
  for (const PortStatus& port : one.ports) {
    read(port, port.name, false);
    read(port.in, "from " + port.name, port.kind == net::PortKind::kSwitch);
    read(port.out, "to " + port.name, false);
  }
  for (const fabric::GroupView& group : one.groups) read(group, group.id.to_string(), false);
  for (const fabric::SenderGroupView& group : one.sender_groups) {
    read(group, group.sender.to_string(), false);
  }
}

struct Total {
  const ReadingInfo* reading = nullptr;
  std::uint64_t value = 0;
};
// Of the whole fabric, in the order of all_readings().
std::vector<Total> totals(const FabricStatus& status);

// Descriptions of all readings: a table for people, by scope.
std::string describe_counters(bool colour);
// {"drop_ttl": "time to live used up: a routing loop", ...}
nlohmann::json counter_descriptions();

}  // namespace cepheus::live
