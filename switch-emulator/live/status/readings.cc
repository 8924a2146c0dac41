// The tables are built once, from three lists of lines (readings.def, counters.def,
// port_counters.def). A help text that begins with "... " continues the one before. The function
// that reads a value has no state, so a line is plain data.
//
// totals() adds each link once, although a trunk's link appears at both ends. Readings that are
// part of their switch's reading of the same name are left out.
#include "switch-emulator/live/status/readings.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/text_table.h"

namespace cepheus::live {
namespace {

template <typename View>
std::uint64_t largest_lag(const std::vector<View>& views) {
  std::uint32_t most = 0;
  for (const View& view : views) most = std::max(most, view.lag);
  return most;
}

template <typename Object>
class Table {
 public:
  Table(std::string_view scope, std::string prefix) : scope_(scope), prefix_(std::move(prefix)) {}

  // `get`, which has no state, returns the value of an Object, or a reference to it.
  template <typename Get>
  void add(std::string_view name, Kind kind, Listing listing, std::string_view help, Get /*get*/) {
    constexpr std::string_view kMore = "... ";  // continues the line before
    const bool goes_on = help.starts_with(kMore);
    if (!goes_on) before_ = help;
    Reading<Object> line;
    line.scope = scope_;
    line.name = name;
    line.full_name = prefix_ + std::string(name);
    line.help = goes_on ? before_ + ", " + std::string(help.substr(kMore.size())) : before_;
    line.kind = kind;
    line.listing = listing;
    line.of = [](const Object& object) { return static_cast<std::uint64_t>(Get{}(object)); };
    using Value = decltype(Get{}(std::declval<Object&>()));
    if constexpr (std::is_lvalue_reference_v<Value>) {
      line.set = [](Object& object, std::uint64_t value) { Get{}(object) = value; };
    }
    lines.push_back(std::move(line));
  }

  std::vector<Reading<Object>> lines;

 private:
  const std::string_view scope_;
  const std::string prefix_;  // of full names
  std::string before_;
};

struct Scopes {
  Table<FabricStatus> fabric{"fabric", ""};
  Table<SwitchStatus> switch_{"switch", ""};
  Table<PortStatus> port{"port", ""};
  Table<net::LinkCounters> link{"link", "link_"};
  Table<fabric::GroupView> group{"group", "group_"};
  Table<fabric::SenderGroupView> sender_group{"sender_group", "sender_group_"};
};

#define CEPHEUS_AT(object, value) [](auto& object) -> decltype(auto) { return (value); }

void add_own(Scopes& to) {
#define CEPHEUS_READING(object, value, name, kind, help) \
  to.object.add(name, Kind::kind, Listing::kOwn, help, CEPHEUS_AT(object, value));
#define CEPHEUS_DROP(field, name, help) \
  to.port.add(name, Kind::kCounter, Listing::kCounters, help, CEPHEUS_AT(port, port.drops.field));
#define CEPHEUS_QUEUE_READING(field, name, kind, help) \
  to.port.add(name, Kind::kind, Listing::kCounters, help, CEPHEUS_AT(port, port.queue.field));
#include "switch-emulator/live/status/readings.def"
}

// A one-armed interface counts as hosts' ports do, but is not one of the switch's ports.
void add_counters_of_hosts_ports(Scopes& to) {
#define CEPHEUS_COUNTER(id, name, help)                                \
  to.port.add(name, Kind::kCounter, Listing::kCounters, help,          \
              CEPHEUS_AT(port, port.access[fabric::PortCounter::id])); \
  to.switch_.add(name, Kind::kCounter, Listing::kCounters, help,       \
                 CEPHEUS_AT(at, at.one_armed[fabric::PortCounter::id]));
#include "switch-emulator/ports/port_counters.def"
}

void add_counters_of_switches(Scopes& to) {
#define CEPHEUS_COUNTER(id, name, part, help)                      \
  to.port.add(name, Kind::kCounter, Listing::kPart, help,          \
              CEPHEUS_AT(port, port.engine[fabric::Counter::id])); \
  to.switch_.add(name, Kind::kCounter, Listing::kCounters, help,   \
                 CEPHEUS_AT(at, at.engine[fabric::Counter::id]));
#include "switch-emulator/engine/counters.def"
}
#undef CEPHEUS_AT

ReadingTables make_tables() {
  Scopes scopes;
  add_own(scopes);
  add_counters_of_hosts_ports(scopes);
  add_counters_of_switches(scopes);
  return {std::move(scopes.port.lines),    std::move(scopes.fabric.lines),
          std::move(scopes.switch_.lines), std::move(scopes.link.lines),
          std::move(scopes.group.lines),   std::move(scopes.sender_group.lines)};
}

std::vector<const ReadingInfo*> list_all() {
  std::vector<const ReadingInfo*> all;
  std::set<std::string_view> seen;
  const auto add = [&](const auto& lines) {
    for (const auto& line : lines) {
      const bool is_new = line.listing != Listing::kPart && seen.insert(line.full_name).second;
      if (is_new) all.push_back(&line);
    }
  };
  std::apply([&](const auto&... lines) { (add(lines), ...); }, reading_tables());
  return all;
}

}  // namespace

const ReadingTables& reading_tables() {
  static const ReadingTables kTables = make_tables();
  return kTables;
}

const std::vector<const ReadingInfo*>& all_readings() {
  static const std::vector<const ReadingInfo*> kAll = list_all();
  return kAll;
}

std::vector<Total> totals(const FabricStatus& status) {
  std::map<std::string_view, std::uint64_t> sums;
  const auto add = [&sums](const ReadingInfo& reading, std::uint64_t value) {
    std::uint64_t& sum = sums[reading.full_name];
    sum = reading.combine(sum, value);
  };
  for (const auto& reading : readings<FabricStatus>()) add(reading, reading.of(status));
  for (const SwitchStatus& one : status.switches) {
    for_each_value(one, [&](const ReadingInfo& reading, std::uint64_t value, const std::string&,
                            bool is_repeated) {
      if (!is_repeated && reading.listing != Listing::kPart) add(reading, value);
    });
  }
  std::vector<Total> all;
  for (const ReadingInfo* reading : all_readings()) {
    all.push_back({reading, sums[reading->full_name]});
  }
  return all;
}

std::string describe_counters(bool colour) {
  const std::vector<TextTable::Column> columns = {{"READING"}, {"KIND"}, {"UNIT"}, {"MEANING"}};
  std::string text;
  TextTable table(columns);
  const auto& all = all_readings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ReadingInfo& reading = *all[i];
    table.add({reading.full_name, reading.kind == Kind::kCounter ? "counter" : "gauge",
               std::string(reading.unit()), reading.help});
    if (i + 1 < all.size() && all[i + 1]->scope == reading.scope) continue;
    text += styled(std::string(reading.scope), Style::kTitle, colour) + "\n";
    text += table.to_text(colour);
    table = TextTable(columns);
  }
  return text;
}

nlohmann::json counter_descriptions() {
  nlohmann::json all = nlohmann::json::object();
  for (const ReadingInfo* reading : all_readings()) all[reading->full_name] = reading->help;
  return all;
}

}  // namespace cepheus::live
