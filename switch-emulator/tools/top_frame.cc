// Rows are divided: groups and drops get at most three tenths each, links most of the rest, other
// readings what is left. A section that does not fit ends in "and N more". With fewer than
// kLeastRows rows only header and footer appear. Each line is cut at the screen's width, by
// characters. Nothing is kept between frames.
#include "switch-emulator/tools/top_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "switch-emulator/live/status/late.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/live/status/text_table.h"

namespace cepheus::tools {
namespace {

using live::Style;
using nlohmann::json;

constexpr std::size_t kLeastRows = 6;

std::string scaled(double value, const char* unit) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  std::size_t step = 0;
  for (; value >= 999.5 && step + 1 < kPrefixes.size(); ++step) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, step == 0 || value >= 99.95 ? "%.0f %s%s" : "%.1f %s%s", value,
                kPrefixes[step], unit);
  return text;
}
std::string rate(const json& bps) { return scaled(bps.get<double>(), "b/s"); }

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(seconds);
  char text[32];
  std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  return text;
}

// Start of each character in UTF-8 from printable().
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }
std::string cut(const std::string& text, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && ++width > columns) return text.substr(0, at);
  }
  return text;
}

struct Cell {
  std::string text;
  int width;  // negative: to the right; 0: the text's length
};
std::string row(const std::vector<Cell>& cells) {
  std::string line;
  for (const Cell& cell : cells) {
    const auto width = static_cast<std::size_t>(std::abs(cell.width));
    const std::string text =
        cell.width == 0 ? live::printable(cell.text) : cut(live::printable(cell.text), width);
    const std::string pad(width > live::width(text) ? width - live::width(text) : 0, ' ');
    line += (line.empty() ? "" : " ") + (cell.width < 0 ? pad + text : text + pad);
  }
  return line;
}

struct Line {
  std::string text;
  Style style = Style::kPlain;
};

// A title and its lines, in at most this number of rows; the last one tells how many more there
// are.
std::vector<Line> section(Line title, std::vector<Line> lines, std::size_t rows,
                          std::size_t skip = 0) {
  std::vector<Line> all = {std::move(title)};
  if (rows < 2) return {};
  skip = lines.size() > rows - 1 ? std::min(skip, lines.size() - (rows - 1)) : 0;
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(skip));
  const bool all_fit = lines.size() <= rows - 1;
  const std::size_t shown = all_fit ? lines.size() : rows - 2;
  const std::size_t left = lines.size() - shown;
  std::move(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown),
            std::back_inserter(all));
  if (left > 0) all.push_back({"  and " + std::to_string(left) + " more", Style::kQuiet});
  return all;
}

std::string names_of(const json& names) {
  std::string text;
  for (const json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

bool is_behind(const json& group) { return group.at("behind").at("packets") > 0; }
// Empty: it has not failed.
std::string failure_text(const json& group) {
  const std::string why = group.at("failure");
  return why.empty() ? "" : "has failed: " + why;
}
bool is_stalled(const json& group) {
  return (is_behind(group) && group.at("bps") == 0) || !failure_text(group).empty();
}

// Empty: it is no reduction's.
std::string late_text(const json& behind) {
  const wire::Duration late(behind.at("late_ns").get<std::int64_t>());
  return late.count() == 0 ? "" : "late for " + live::late_time_text(late);
}

std::string behind_text(const json& group) {
  if (!is_behind(group)) return failure_text(group);
  const json& behind = group.at("behind");
  const std::string late = late_text(behind);
  return names_of(behind.at("names")) + " " +
         (late.empty() ? "lacks " + std::to_string(behind.at("packets").get<std::uint64_t>())
                       : late);
}

std::vector<Line> group_lines(const json& view) {
  std::vector<json> groups(view.at("groups").begin(), view.at("groups").end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const json& a, const json& b) { return a.at("bps") > b.at("bps"); });
  std::vector<Line> lines;
  for (const json& group : groups) {
    const std::string next = group.at("next_source");
    std::string waits = behind_text(group);
    if (!next.empty()) waits += (waits.empty() ? "" : "; ") + next + " waits to send";
    lines.push_back({row({{group.at("id"), 15},
                          {group.at("source"), 10},
                          {std::to_string(group.at("members").get<std::size_t>()), -7},
                          {rate(group.at("bps")), -11},
                          {waits, 0}}),
                     is_stalled(group) ? Style::kAlarm : Style::kPlain});
  }
  if (lines.empty()) lines.push_back({"none: no program has set one up", Style::kQuiet});
  return lines;
}

std::vector<Line> link_lines(const json& view, bool by_name) {
  std::vector<json> cables(view.at("cables").begin(), view.at("cables").end());
  const auto flow = [](const json& c) {
    return c.at("in_bps").get<double>() + c.at("out_bps").get<double>();
  };
  std::stable_sort(cables.begin(), cables.end(), [&](const json& a, const json& b) {
    return by_name ? a.at("link") < b.at("link") : flow(a) > flow(b);
  });
  std::vector<Line> lines;
  for (const json& c : cables) {
    const double loss = c.at("loss");
    const json& host = c.at("host");
    const bool is_used = !host.is_null() && host.at("pid") > 0;
    lines.push_back(
        {row({{c.at("link"), 18},
              {c.at("state"), 5},
              {rate(c.at("in_bps")), -11},
              {rate(c.at("out_bps")), -11},
              {loss > 0 ? percent(loss) : "", -7},
              {is_used ? "process " + std::to_string(host.at("pid").get<long>()) : "", 0}}),
         c.at("state") != "up" ? Style::kAlarm : Style::kPlain});
  }
  return lines;
}

constexpr std::size_t kAmountColumns = 10;

// Exact if it fits into the columns.
std::string amount(const json& reading) {
  const std::uint64_t total = reading.at("total");
  const std::string& unit = reading.at("unit").get_ref<const std::string&>();
  const bool is_time = unit == "us";
  const std::string exact = std::to_string(total) + (is_time ? " us" : unit == "bytes" ? " B" : "");
  if (exact.size() <= kAmountColumns) return exact;
  const auto value = static_cast<double>(total);
  return is_time ? scaled(value / 1e6, "s") : scaled(value, unit == "bytes" ? "B" : "");
}

// Readings of drops, or all others.
std::vector<Line> reading_lines(const json& view, bool of_drops) {
  std::vector<Line> lines;
  for (const json& each : view.at("counters")) {
    if (each.at("is_drop") != of_drops) continue;
    const double per_second = each.at("per_second");
    lines.push_back({row({{each.at("name"), 26},
                          {amount(each), -static_cast<int>(kAmountColumns)},
                          {per_second > 0 ? scaled(per_second, "/s") : "", -9},
                          {each.at("help"), 0}})});
  }
  return lines;
}

std::string header(const json& view) {
  std::size_t hosts = 0, used = 0;
  for (const json& c : view.at("cables")) {
    if (c.at("host").is_null()) continue;
    ++hosts;
    used += c.at("host").at("attached").get<bool>() ? 1 : 0;
  }
  const double sent = view.at("sent_bps"), delivered = view.at("delivered_bps");
  char copies[32] = "";
  if (sent > 1e5) std::snprintf(copies, sizeof copies, ", %.1f copies", delivered / sent);
  return "cepheus  " + clock_text(view.at("uptime_seconds")) + "  " + std::to_string(used) +
         " of " + std::to_string(hosts) + " hosts  in " + scaled(sent, "b/s") + ", out " +
         scaled(delivered, "b/s") + copies;
}

Line lagging(const json& view) {
  for (const json& group : view.at("groups")) {
    if (!is_stalled(group)) continue;
    const std::string name = "group " + group.at("id").get<std::string>();
    const std::string failure = failure_text(group);
    if (!failure.empty()) return {live::printable(name + " " + failure), Style::kAlarm};
    const json& behind = group.at("behind");
    const std::string late = late_text(behind);
    return {live::printable(
                name + " is stalled: all wait for " + names_of(behind.at("names")) + ", " +
                (late.empty()
                     ? "which lacks " + std::to_string(behind.at("packets").get<std::uint64_t>()) +
                           " packets"
                     : late)),
            Style::kAlarm};
  }
  return {"", Style::kPlain};
}

}  // namespace

std::vector<std::string> top_frame(const json& view, const TopScreen& screen) {
  const std::string footer = std::string("q quit  s sort links by ") +
                             (screen.by_name ? "rate" : "name") + "  up/down scroll  space " +
                             (screen.is_paused ? "go on (paused)" : "pause");
  std::vector<Line> lines = {{header(view), Style::kTitle}};
  if (screen.rows >= kLeastRows) {
    lines.push_back(lagging(view));
    const std::size_t rows = screen.rows - 3;
    const std::size_t third = std::max<std::size_t>(rows * 3 / 10, 2);
    const auto add = [&](std::vector<Line> more) {
      std::move(more.begin(), more.end(), std::back_inserter(lines));
    };
    std::vector<Line> groups = group_lines(view), links = link_lines(view, screen.by_name);
    std::vector<Line> readings = reading_lines(view, true);
    const std::size_t for_groups = std::min(groups.size() + 1, third);
    // Drops have priority over links, including their title and the line about further readings.
    // Other readings get the rows that links leave.
    const std::size_t for_drops = std::min(readings.size() + 2, third);
    const std::size_t for_links =
        std::min(links.size() + 1, rows - std::min(rows, for_groups + for_drops));
    const std::vector<Line> others = reading_lines(view, false);
    readings.insert(readings.end(), others.begin(), others.end());
    if (readings.empty()) readings.push_back({"nothing", Style::kQuiet});
    add(section(
        {row({{"GROUP", 15}, {"FROM", 10}, {"MEMBERS", -7}, {"RATE", -11}, {"WAITS FOR", 0}}),
         Style::kTitle},
        std::move(groups), for_groups));
    add(section(
        {row({{"LINK", 18}, {"STATE", 5}, {"IN", -11}, {"OUT", -11}, {"LOSS", -7}, {"", 0}}),
         Style::kTitle},
        std::move(links), for_links, screen.skip));
    add(section(
        {row({{"DROPPED, COUNTED", 26}, {"TOTAL", -10}, {"", -9}, {"WHAT", 0}}), Style::kTitle},
        std::move(readings), rows - for_groups - for_links));
  }
  lines.resize(screen.rows > 0 ? screen.rows - 1 : 0);
  lines.push_back({footer, Style::kQuiet});
  std::vector<std::string> frame;
  for (const Line& line : lines) {
    frame.push_back(live::styled(cut(line.text, screen.columns), line.style, screen.colour));
  }
  return frame;
}

}  // namespace cepheus::tools
