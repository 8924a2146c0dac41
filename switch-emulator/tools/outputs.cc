// JSON of a status is passed on as the fabric sent it. Colour only on a terminal and without
// NO_COLOR.
#include "switch-emulator/tools/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/reports/report_directory.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/late.h"
#include "switch-emulator/live/status/metrics.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/topology_graph.h"
#include "switch-emulator/tools/explain.h"
#include "switch-emulator/tools/nearest.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;

// One document over many lines, or with --watch on one line.
std::string json_text(const json& document, const OutputOptions& options) {
  return live::json_text(document, options.watch_seconds ? -1 : 2) + "\n";
}

// As the fabric sent it: keys of another version stay.
wire::Result<std::string> status_json(const OutputOptions& options) {
  const auto answer = live::send_request(options.socket, {{"ask", "status"}});
  if (!answer) return tl::unexpected(answer.error());
  const json status = answer->value("status", json::object());
  return live::status_from_json(status).map(
      [&](const live::FabricStatus&) { return json_text(status, options); });
}

// The changes of a reload, one a line; empty for other requests.
std::string changes_text(const json& answer) {
  const auto changed = answer.find("changed");
  if (changed == answer.end() || !changed->is_array()) return "";
  if (changed->empty()) return "nothing has changed\n";
  std::string text;
  for (const json& line : *changed) {
    if (line.is_string()) text += live::printable(line.get<std::string>()) + "\n";
  }
  return text;
}

}  // namespace

bool is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }
bool may_colour() { return is_terminal() && std::getenv("NO_COLOR") == nullptr; }

wire::Result<std::string> explanation(const OutputOptions& options) {
  const auto reports = read_reports(reports::default_directory());
  if (!reports) return tl::unexpected(reports.error());
  const auto jobs = explain(*reports);
  return options.as_json ? json_text(to_json(jobs), options) : to_text(jobs, may_colour());
}

wire::Result<std::string> nearest(const OutputOptions& options,
                                  const std::vector<std::string>& devices) {
  return locality::Machine::load().map([&](const locality::Machine& machine) {
    const json found = nearest_json(machine, devices);
    return options.as_json ? json_text(found, options) : nearest_text(found);
  });
}

wire::Result<std::string> metrics(const OutputOptions& options) {
  return live::request_status(options.socket).map([](const live::FabricStatus& status) {
    return live::to_metrics(status);
  });
}

wire::Result<std::string> map_of(const OutputOptions& options, const std::string& svg) {
  const auto status = live::request_status(options.socket);
  if (!status) return tl::unexpected(status.error());
  if (svg.empty()) {
    return options.as_json ? json_text(live::topology_json(*status), options)
                           : live::topology_text(*status, may_colour());
  }
  const std::string drawing = live::topology_svg(*status);
  if (svg == "-") return drawing;
  std::ofstream file(svg);
  if (!(file << drawing << std::flush)) {
    return wire::invalid(svg + " can't be written: " + std::strerror(errno));
  }
  return std::string();
}

wire::Result<std::string> answer_to(const json& request, const OutputOptions& options) {
  return live::send_request(options.socket, request).map([&](const json& answer) {
    return options.as_json ? json_text(answer, options) : changes_text(answer);
  });
}

wire::Result<std::string> show(const std::vector<live::View>& views, const OutputOptions& options) {
  if (options.as_json) return status_json(options);
  const bool logs =
      options.watch_seconds && !is_terminal() && views == std::vector{live::View::kGroups};
  return live::request_status(options.socket).map([&](const live::FabricStatus& status) {
    if (logs) return waiting_lines(status);
    std::string text;
    for (const live::View view : views) {
      text += (text.empty() ? "" : "\n") + to_text(status, view, may_colour());
    }
    return text;
  });
}

wire::Result<std::string> late(const OutputOptions& options) {
  return live::request_status(options.socket).map([&](const live::FabricStatus& status) {
    return options.as_json ? json_text(live::late_json(status), options)
                           : live::late_text(status, may_colour());
  });
}

std::string describe(const OutputOptions& options) {
  return options.as_json ? json_text(live::counter_descriptions(), options)
                         : live::describe_counters(may_colour());
}

}  // namespace cepheus::tools
