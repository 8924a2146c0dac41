// Views of a group are compared by its identifier and epoch. Switches are read one after the other,
// and the status has the time before the first one: so no member is shown as late for too long.
//
// If no switch shows the first contribution to a member's unit, other members are late to an older
// unit. That member is not shown before its own unit is the oldest.
#include "switch-emulator/live/status/late.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "arithmetic/contribution_text.h"
#include "switch-emulator/live/status/text_table.h"

namespace cepheus::live {
namespace {

// A group at one of its switches.
struct Place {
  const SwitchStatus* at;
  const fabric::GroupView* group;
};
using Places = std::vector<Place>;

struct First {
  wire::Instant at = wire::kNever;
  std::map<std::string, wire::Instant> texts;  // of contributions, since when

  void add(std::string text, wire::Instant since) {
    const auto [known, is_new] = texts.try_emplace(std::move(text), since);
    known->second = std::min(known->second, since);
  }
  // The earliest comes first. Several: members have contributed different things at two switches.
  std::string text() const {
    std::vector<std::pair<wire::Instant, std::string>> sorted;
    for (const auto& [one, since] : texts) sorted.emplace_back(since, one);
    std::ranges::sort(sorted);
    std::string all;
    for (const auto& [since, one] : sorted) all += (all.empty() ? "" : ", and ") + one;
    return all;
  }
};

// By unit, of those that some switch shows.
std::map<std::uint64_t, First> first_contributions(const Places& places) {
  std::map<std::uint64_t, First> first;
  const auto take = [&](std::uint64_t unit, wire::Instant at) -> First& {
    First& known = first[unit];
    known.at = std::min(known.at, at);
    return known;
  };
  for (const Place& place : places) {
    const fabric::ReductionView& reduction = *place.group->reduction;
    if (reduction.waits_since) take(reduction.results, *reduction.waits_since);
    for (const fabric::PathView& path : place.group->paths) {
      if (!path.late) continue;
      const fabric::LateView& late = *path.late;
      take(late.unit, late.since)
          .add(arithmetic::contribution_text(late.operation, late.type, late.bytes), late.since);
    }
  }
  return first;
}

std::optional<FailedGroup> failure_at(const Places& places) {
  const auto failed = std::ranges::find_if(
      places, [](const Place& each) { return !each.group->reduction->failure.empty(); });
  if (failed == places.end()) return std::nullopt;
  const fabric::GroupView& group = *failed->group;
  return FailedGroup{group.id, group.epoch, failed->at->name, group.reduction->failure};
}

bool is_shown(const Places& places, const std::string& name) {
  return std::ranges::any_of(places, [&](const Place& each) { return each.at->name == name; });
}

std::vector<LateMember> missing_at(const FabricStatus& status, const Places& places) {
  if (failure_at(places)) return {};
  std::uint64_t newest = 0;
  for (const Place& each : places) newest = std::max(newest, each.group->reduction->newest);
  const auto first = first_contributions(places);
  std::vector<LateMember> missing;
  for (const Place& place : places) {
    const fabric::GroupView& group = *place.group;
    for (const fabric::PathView& path : group.paths) {
      const std::uint64_t next = group.reduction->newest - path.lag;
      const bool is_trunk = !path.is_host;
      if (next >= newest) continue;
      if (is_trunk && (!path.late || is_shown(places, neighbour_name(path.name)))) continue;
      const auto known = first.find(next);
      const First others = known == first.end() ? First{status.now, {}} : known->second;
      missing.push_back({group.id, group.epoch, next, newest - next, path.name, path.host,
                         place.at->name, std::max(status.now - others.at, wire::Duration{}),
                         others.text()});
    }
  }
  return missing;
}

Places places_of(const FabricStatus& status, wire::McstId id, std::uint16_t epoch) {
  Places places;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& group : one.groups) {
      if (group.id == id && group.epoch == epoch && group.reduction)
        places.push_back({&one, &group});
    }
  }
  return places;
}

std::map<std::pair<wire::McstId, std::uint16_t>, Places> places_of_all(const FabricStatus& status) {
  std::map<std::pair<wire::McstId, std::uint16_t>, Places> groups;
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& group : one.groups) {
      if (group.reduction) groups[{group.id, group.epoch}].push_back({&one, &group});
    }
  }
  return groups;
}

std::vector<FailedGroup> failed_groups(const FabricStatus& status) {
  std::vector<FailedGroup> failed;
  for (const auto& [id, places] : places_of_all(status)) {
    if (auto failure = failure_at(places)) failed.push_back(std::move(*failure));
  }
  return failed;
}

std::string local_time(wire::Duration since_1970) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char day[32], all[40];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(all, sizeof all, "%s.%03d", day, static_cast<int>(ms % 1000));
  return all;
}

}  // namespace

std::vector<LateMember> missing_members(const FabricStatus& status, wire::McstId id,
                                        std::uint16_t epoch) {
  return missing_at(status, places_of(status, id, epoch));
}

std::optional<FailedGroup> failure_of(const FabricStatus& status, wire::McstId id,
                                      std::uint16_t epoch) {
  return failure_at(places_of(status, id, epoch));
}

std::vector<LateMember> late_members(const FabricStatus& status) {
  std::vector<LateMember> late;
  for (const auto& [id, places] : places_of_all(status)) {
    std::ranges::copy_if(missing_at(status, places), std::back_inserter(late),
                         [](const LateMember& each) { return each.late >= kLeastLate; });
  }
  std::ranges::stable_sort(late, std::ranges::greater(), &LateMember::late);
  return late;
}

nlohmann::json late_json(const FabricStatus& status) {
  nlohmann::json all = nlohmann::json::array();
  for (const LateMember& each : late_members(status)) {
    all.push_back({{"group", each.group.to_string()},
                   {"epoch", each.epoch},
                   {"unit", each.unit},
                   {"units", each.units},
                   {"name", each.name},
                   {"host", each.host.is_unset() ? "" : each.host.to_string()},
                   {"switch", each.at},
                   {"late_ns", each.late.count()},
                   {"since_utc_ns", (status.utc - each.late).count()},
                   {"others", each.others}});
  }
  nlohmann::json failed = nlohmann::json::array();
  for (const FailedGroup& each : failed_groups(status)) {
    failed.push_back({{"group", each.group.to_string()},
                      {"epoch", each.epoch},
                      {"switch", each.at},
                      {"reason", each.why}});
  }
  return {{"late", std::move(all)}, {"failed", std::move(failed)}};
}

std::string late_time_text(wire::Duration late) {
  const double seconds = std::chrono::duration<double>(late).count();
  return seconds < 1 ? decimal(1000 * seconds) + " ms" : decimal(seconds) + " s";
}

// "198.18.0.1  unit 17: h2 (10.0.0.3) at leaf1, late for 12.3 s, since 2026-11-29 20:03:02.850; others
// have contributed 8 bytes to a sum of int64"
// "198.18.0.2  has failed at leaf1: members that reduce different things"
std::string late_text(const FabricStatus& status, bool colour) {
  std::string text;
  for (const LateMember& each : late_members(status)) {
    const bool is_trunk = each.host.is_unset();
    text += styled(each.group.to_string(), Style::kTitle, colour) + "  unit " +
            std::to_string(each.unit) + ": " + (is_trunk ? "members behind " : "") +
            styled(each.name, Style::kAlarm, colour) +
            (is_trunk ? "" : " (" + each.host.to_string() + ")") + " at " + printable(each.at) +
            ", late for " + late_time_text(each.late) + ", since " +
            local_time(status.utc - each.late) +
            (each.others.empty() ? "" : "; others have contributed " + each.others) + "\n";
  }
  for (const FailedGroup& each : failed_groups(status)) {
    text += styled(each.group.to_string(), Style::kTitle, colour) + "  " +
            styled("has failed at " + each.at + ": " + each.why, Style::kAlarm, colour) + "\n";
  }
  return text.empty() ? styled("nobody is late", Style::kGood, colour) + "\n" : text;
}

}  // namespace cepheus::live
