// A request is an object with a kind. `link` refuses keys that it does not know; other kinds ignore
// them. Numbers out of range are refused, but the rate of a recording is limited to 100 to
// 1,000,000 packets a second. Nothing is looked up here: a name may be unknown to the fabric.
#include "switch-emulator/live/control/control_request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "net/topology_check.h"

namespace cepheus::live {
namespace {

using nlohmann::json;
using Parsed = wire::Result<ControlRequest>;

// Two names with "-" between them, then "#" and a number. The search for a similar name takes time
// in proportion to the length.
constexpr std::size_t kLongestLink = 2 * net::kMaxNameLength + 7;
constexpr std::uint64_t kFewest = 100, kMost = 1'000'000;  // packets a second

// A key's value, or null. A pointer, because a copy takes stack for each level of a nested value.
const json* find(const json& request, const char* key) {
  const auto found = request.find(key);
  return found == request.end() ? nullptr : &*found;
}

std::optional<std::string> text_of(const json* value) {
  return value != nullptr && value->is_string() ? std::optional(value->get<std::string>())
                                                : std::nullopt;
}

Parsed parse_link(const json& request) {
  LinkRequest link;
  for (const auto& [key, value] : request.items()) {
    if (key != "ask" && key != "link" && key != "direction" && key != "loss" && key != "up") {
      return wire::invalid(
          "link has no setting '" + key +
          "': give direction, loss or up; the topology's file sets the other faults");
    }
  }
  const auto name = text_of(find(request, "link"));
  if (!name || name->size() > kLongestLink) {
    return wire::invalid("link must name a host, or a trunk such as leaf0-spine0, in at most " +
                         std::to_string(kLongestLink) + " characters");
  }
  link.link = *name;
  if (const json* direction = find(request, "direction")) {
    link.direction = text_of(direction).value_or("");
  }
  if (const json* loss = find(request, "loss")) {
    if (!loss->is_number() || !(loss->get<double>() >= 0 && loss->get<double>() <= 1)) {
      return wire::invalid("loss must be a number from 0 to 1");
    }
    link.loss = loss->get<double>();
  }
  if (const json* up = find(request, "up")) {
    if (!up->is_boolean()) return wire::invalid("up must be true or false");
    link.up = up->get<bool>();
  }
  return link;
}

Parsed parse_record(const json& request) {
  RecordRequest record;
  const json* recorder = find(request, "recorder");
  if (recorder == nullptr || !recorder->is_number_unsigned()) {
    return wire::invalid(
        "record needs a recorder: {\"ask\": \"record\", \"recorder\": a number of your own}");
  }
  record.recorder = recorder->get<std::uint64_t>();
  const json* rate = find(request, "packets_per_second");
  if (rate != nullptr && rate->is_number_unsigned()) {
    record.packets_per_second =
        static_cast<std::uint32_t>(std::clamp(rate->get<std::uint64_t>(), kFewest, kMost));
  }
  const json* end = find(request, "end");
  record.end = end != nullptr && end->is_boolean() && end->get<bool>();
  return record;
}

Parsed parse_kill(const json& request) {
  const auto host = text_of(find(request, "host"));
  const json* pid = find(request, "pid");
  const bool is_process = pid != nullptr && pid->is_number_unsigned() &&
                          pid->get<std::uint64_t>() > 0 &&
                          pid->get<std::uint64_t>() <= std::numeric_limits<pid_t>::max();
  if (!host || !is_process) {
    return wire::invalid(
        "kill needs a host and a pid: {\"ask\": \"kill\", \"host\": \"h1\", \"pid\": 17}");
  }
  return KillRequest{*host, pid->get<pid_t>()};
}

}  // namespace

Parsed parse_control_request(std::string_view line) {
  const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto what = request.is_object() ? text_of(find(request, "ask")) : std::nullopt;
  if (!what) return wire::invalid("a request needs a kind: {\"ask\": \"status\"}");
  if (*what == "status") return StatusRequest{};
  if (*what == "link") return parse_link(request);
  if (*what == "record") return parse_record(request);
  if (*what == "kill") return parse_kill(request);
  if (*what == "reset_counters") return ResetCountersRequest{};
  if (*what == "reload") return ReloadRequest{};
  if (*what == "stop") return StopRequest{};
  return wire::invalid("unknown request \"" + *what +
                       "\"; known: status, record, link, kill, reload, reset_counters, stop");
}

}  // namespace cepheus::live
