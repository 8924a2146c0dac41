// cepheusctl: shows a running fabric and turns its links' faults on and off.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/reports/report_directory.h"
#include "switch-emulator/live/control_protocol.h"
#include "switch-emulator/live/metrics.h"
#include "switch-emulator/live/printable.h"
#include "switch-emulator/live/readings.h"
#include "switch-emulator/live/status.h"
#include "switch-emulator/live/topology_graph.h"
#include "switch-emulator/tools/endings.h"
#include "switch-emulator/tools/explain.h"
#include "switch-emulator/tools/metrics_server.h"
#include "switch-emulator/tools/nearest.h"
#include "switch-emulator/tools/record.h"
#include "switch-emulator/tools/top.h"
#include "switch-emulator/tools/web_server.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;

constexpr int kRefused = 1;  // the fabric refused, or does not exist
constexpr int kUsage = 2;

struct Command {
  std::string socket;
  bool as_json = false;
  std::optional<live::View> view;
  std::optional<double> watch_seconds;
  bool explains = false;                 // reads processes' reports, needs no fabric
  std::vector<std::string> nearest;      // of these devices, needs no fabric
  bool describes = false;                // describes readings, needs no fabric
  bool measures = false;                 // prints metrics
  std::optional<HttpAddress> listen;     // ... or serves them there
  std::optional<WebOptions> web;         // serves the web page
  std::optional<RecordOptions> records;  // writes a recording
  bool tops = false;                     // shows the fabric in a terminal
  bool once = false;                     // ... or prints it
  bool maps = false;                     // shows the topology
  std::string svg;                       // ... as a drawing in this file; "-": to standard output
  json request = {{"ask", "status"}};
};

int complain(const std::string& text, int exit_code) {
  std::cerr << "cepheusctl: " << live::printable(text) << "\n";
  return exit_code;
}

bool is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }
bool may_colour() { return is_terminal() && std::getenv("NO_COLOR") == nullptr; }

// A document over many lines for people; one line per document with --watch.
std::string json_text(const json& document, const Command& command) {
  return live::json_text(document, command.watch_seconds ? -1 : 2) + "\n";
}

wire::Result<std::string> explanation(const Command& command) {
  const auto reports = read_reports(reports::default_directory());
  if (!reports) return tl::unexpected(reports.error());
  const auto jobs = explain(*reports);
  return command.as_json ? json_text(to_json(jobs), command) : to_text(jobs, may_colour());
}

wire::Result<std::string> nearest(const Command& command) {
  return locality::Machine::load().map([&](const locality::Machine& machine) {
    const json found = nearest_json(machine, command.nearest);
    return command.as_json ? json_text(found, command) : nearest_text(found);
  });
}

wire::Result<std::string> metrics(const Command& command) {
  return live::ask_status(command.socket).map([](const live::FabricStatus& status) {
    return live::to_metrics(status);
  });
}

wire::Result<std::string> map_of(const Command& command) {
  const auto status = live::ask_status(command.socket);
  if (!status) return tl::unexpected(status.error());
  if (command.svg.empty()) {
    return command.as_json ? json_text(live::topology_json(*status), command)
                           : live::topology_text(*status, may_colour());
  }
  const std::string drawing = live::topology_svg(*status);
  if (command.svg == "-") return drawing;
  std::ofstream file(command.svg);
  if (!(file << drawing << std::flush)) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      command.svg + " can't be written: " + std::strerror(errno));
  }
  return std::string();
}

// Changes of a reload, a line each; nothing for other requests.
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

// One answer of the fabric in the user's format.
wire::Result<std::string> answer_text(const Command& command) {
  if (command.explains) return explanation(command);
  if (!command.nearest.empty()) return nearest(command);
  if (command.describes) {
    return command.as_json ? json_text(live::counter_descriptions(), command)
                           : live::describe_counters(may_colour());
  }
  if (command.measures) return metrics(command);
  if (command.maps) return map_of(command);
  if (!command.view) {
    return live::ask(command.socket, command.request).map([&](const json& answer) {
      return command.as_json ? json_text(answer, command) : changes_text(answer);
    });
  }
  const bool logs = command.watch_seconds && command.view == live::View::kGroups && !is_terminal();
  return live::ask_status(command.socket).map([&](const live::FabricStatus& status) {
    if (command.as_json) return json_text(live::to_json(status), command);
    return logs ? waiting_lines(status) : to_text(status, *command.view, may_colour());
  });
}

// Repeats until interrupted; the signals stay blocked, so that none is lost between two waits.
int watch(const Command& command) {
  const sigset_t endings = block_endings();
  const auto interval_ns = static_cast<std::int64_t>(*command.watch_seconds * 1e9);
  const timespec interval{interval_ns / 1'000'000'000, interval_ns % 1'000'000'000};
  while (true) {
    const auto text = answer_text(command);
    if (!text) return complain(text.error().text, kRefused);
    // On a terminal: cursor home, the text, then clear the rest of an earlier, longer text.
    if (is_terminal() && !command.as_json) std::cout << "\033[H\033[2J";
    std::cout << *text << std::flush;
    if (!std::cout) return kRefused;
    if (::sigtimedwait(&endings, nullptr, &interval) > 0) return 0;
  }
}

// Continues without a fabric: it may start later, and the page reports its absence.
int serve(const Command& command) {
  const auto served = serve_metrics(*command.listen, [&] {
    return metrics(command)
        .or_else([](const wire::Error& error) -> wire::Result<std::string> {
          return live::metrics_without_fabric(error.text);
        })
        .value();
  });
  return served ? 0 : complain(served.error().text, kRefused);
}

int top(const Command& command) {
  if (command.once || command.as_json) {
    const auto text = top_once(command.socket, command.as_json);
    if (!text) return complain(text.error().text, kRefused);
    std::cout << *text << std::flush;
    return std::cout ? 0 : kRefused;
  }
  if (!is_terminal() || ::isatty(STDIN_FILENO) == 0) {
    return complain("top needs a terminal: take top --once, or --json", kUsage);
  }
  const auto shown = show_top(command.socket, may_colour());
  return shown ? 0 : complain(shown.error().text, kRefused);
}

int run(const Command& command) {
  if (command.tops) return top(command);
  if (command.watch_seconds) return watch(command);
  if (command.listen) return serve(command);
  if (command.web) {
    WebOptions options = *command.web;
    options.fabric_socket = command.socket;
    const auto served = serve_web(options);
    return served ? 0 : complain(served.error().text, kRefused);
  }
  if (command.records) {
    RecordOptions options = *command.records;
    options.fabric_socket = command.socket;
    const auto recorded = record(options);
    return recorded ? 0 : complain(recorded.error().text, kRefused);
  }
  const auto text = answer_text(command);
  if (!text) return complain(text.error().text, kRefused);
  std::cout << *text << std::flush;
  return std::cout ? 0 : kRefused;
}

class CommandLine {
 public:
  CommandLine() : app_("Looks into a running Cepheus fabric.", "cepheusctl") {
    app_.option_defaults()->always_capture_default(false);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", "cepheusctl " CEPHEUS_VERSION "\n");
    app_.add_option("--socket", command_.socket, "the fabric's socket, as given to cepheus-switch")
        ->envname("CEPHEUS_FABRIC")
        ->type_name("PATH");
    app_.add_flag("--json", command_.as_json, "print JSON, for programs");
    app_.footer(
        "Exit status: 0 done, 1 the fabric refused or is not there, 2 wrong usage.\n"
        "Reports of `explain` are read from $CEPHEUS_REPORT_DIR, else /dev/shm/cepheus-UID,\n"
        "or /dev/shm/cepheus-UID.1 and so on where another user has that name.\n"
        "Colour is used on a terminal only, and not if NO_COLOR is set.");
    add_view("ports", "hosts and trunks: address, client, link, frames and payload bytes",
             live::View::kPorts);
    add_view("groups", "multicast groups: tree, each path's acknowledgements, lagging members",
             live::View::kGroups);
    add_view("counters", "readings that are not 0, with the ports, links and groups they are of",
             live::View::kCounters)
        ->add_flag("--describe", command_.describes, "describe each reading instead")
        ->excludes("--watch");
    add_topology();
    CLI::App* explains = app_.add_subcommand(
        "explain", "MPI programs of this user: calls by communicator, the path they took, and why");
    explains->callback([this] { command_.explains = true; });
    add_watch(*explains);
    app_.add_subcommand("nearest", "RDMA devices by how near they are to this shell's cores")
        ->add_option("devices", command_.nearest, "as ibv_devices lists them")
        ->type_name("DEVICE...")
        ->required();
    add_metrics();
    add_top();
    add_web();
    add_record();
    add_link();
    app_.add_subcommand("reload", "have the fabric read its topology file again, groups untouched")
        ->callback([this] {
          command_.request = {{"ask", "reload"}};
        });
    app_.add_subcommand("reset-counters", "set all counters to 0")->callback([this] {
      command_.request = {{"ask", "reset_counters"}};
    });
    app_.add_subcommand("stop", "end the fabric")->callback([this] {
      command_.request = {{"ask", "stop"}};
    });
  }

  // The command, or the exit code if there is nothing (more) to do.
  std::variant<Command, int> parse(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
      const bool asks_no_fabric =
          command_.explains || command_.describes || !command_.nearest.empty();
      if (command_.socket.empty() && !asks_no_fabric) {
        throw CLI::RequiredError("--socket (or CEPHEUS_FABRIC)");
      }
    } catch (const CLI::Success& done) {  // --help, --version
      return app_.exit(done);
    } catch (const CLI::ParseError& error) {
      app_.exit(error);
      return kUsage;
    }
    return command_;
  }

 private:
  CLI::App* add_view(const char* name, const char* help, live::View view) {
    CLI::App* sub = app_.add_subcommand(name, help);
    sub->callback([this, view] { command_.view = view; });
    add_watch(*sub);
    return sub;
  }

  void add_watch(CLI::App& sub) {
    sub.add_option("--watch", command_.watch_seconds, "refresh every SECONDS until interrupted")
        ->type_name("[SECONDS]")
        ->expected(0, 1)
        ->default_str("1")
        ->check(CLI::Range(0.05, 86400.0));
  }

  void add_topology() {
    CLI::App* sub = app_.add_subcommand(
        "topology", "switches floor by floor, their cables, and the trees of groups");
    sub->add_option("--svg", command_.svg, "draw it into FILE; - for standard output")
        ->type_name("FILE");
    sub->callback([this] { command_.maps = true; });
  }

  void add_metrics() {
    CLI::App* sub = app_.add_subcommand(
        "metrics", "the fabric's readings in Prometheus's text format; once, or over HTTP");
    sub->callback([this] { command_.measures = true; });
    sub->add_option_function<std::string>(
           "--listen",
           [this](const std::string& text) {
             const auto address = parse_http_address(text);
             if (!address) throw CLI::ValidationError("--listen", address.error().text);
             command_.listen = *address;
           },
           "serve http://ADDRESS:PORT/metrics until interrupted; port 0: any free one")
        ->type_name("ADDRESS:PORT");
  }

  void add_top() {
    CLI::App* sub = app_.add_subcommand(
        "top", "on a terminal: rates of links and groups, lagging members, drops");
    sub->add_flag("--once", command_.once, "print it once; with --json for programs");
    sub->callback([this] { command_.tops = true; });
  }

  void add_web() {
    CLI::App* sub = app_.add_subcommand(
        "web",
        "a picture of the fabric for browsers, until interrupted: trees, rates, lagging members");
    sub->add_option_function<std::string>(
           "--listen",
           [this](const std::string& text) {
             const auto address = parse_http_address(text);
             if (!address) throw CLI::ValidationError("--listen", address.error().text);
             web_.listen = *address;
           },
           "where; port 0: any free one. Beyond loopback only with the token that is printed")
        ->type_name("ADDRESS:PORT")
        ->default_str("127.0.0.1:8080");
    sub->add_flag("--control", web_.control,
                  "let the page cut and mend links, lose packets and kill processes of hosts");
    sub->callback([this] { command_.web = web_; });
  }

  void add_record() {
    CLI::App* sub = app_.add_subcommand(
        "record", "a timeline for ui.perfetto.dev: broadcasts by rank, turns, waits, packets");
    sub->add_option("file", record_.file, "where to")->type_name("FILE")->required();
    sub->add_option("--seconds", record_.seconds, "so long; by default until interrupted")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.05, 86400.0));
    sub->add_option("--packets-per-second", record_.packets_per_second,
                    "data and acknowledgements to sample; rare packets are always recorded")
        ->type_name("N")
        ->check(CLI::Range(100, 1'000'000))
        ->capture_default_str();
    sub->callback([this] { command_.records = record_; });
  }

  void add_link() {
    CLI::App* sub =
        app_.add_subcommand("link", "change a host's link or a trunk, or cut and mend it");
    sub->add_option("link", link_, "a host, or a trunk by its switches: h1, leaf0-spine0")
        ->type_name("LINK")
        ->required();
    sub->add_option("--direction", direction_,
                    "which way: to-switch or to-host; of a trunk to-leaf0 or to-spine0; both")
        ->check([](const std::string& way) {
          const bool is_way = way == "both" || way.starts_with("to-");
          return is_way ? std::string() : "write both, or to- and the name at the end: " + way;
        })
        ->type_name("both|to-...")
        ->capture_default_str();
    CLI::Option* loss = sub->add_option("--loss", loss_, "lose each frame with this probability")
                            ->type_name("P")
                            ->check(CLI::Range(0.0, 1.0));
    CLI::Option* up = sub->add_flag("--up", up_, "mend the link");
    CLI::Option* down = sub->add_flag("--down", down_, "cut the link: every frame is dropped");
    up->excludes(down);
    sub->callback([this, loss] {
      if (loss->count() == 0 && !up_ && !down_) {
        throw CLI::ValidationError("link", "nothing to change; give --loss P, --up or --down");
      }
      // In the protocol the way from host to switch is "up".
      const char* way = direction_ == "to-switch" ? "up"
                        : direction_ == "to-host" ? "down"
                                                  : direction_.c_str();
      command_.request = {{"ask", "link"}, {"link", link_}, {"direction", way}};
      if (loss->count() != 0) command_.request["loss"] = loss_;
      if (up_ || down_) command_.request["up"] = up_;
    });
  }

  CLI::App app_;
  Command command_;
  WebOptions web_;
  RecordOptions record_;
  std::string link_;
  std::string direction_ = "both";
  double loss_ = 0;
  bool up_ = false, down_ = false;
};

}  // namespace
}  // namespace cepheus::tools

int main(int argc, char** argv) {
  cepheus::tools::CommandLine line;
  const auto parsed = line.parse(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  return cepheus::tools::run(std::get<cepheus::tools::Command>(parsed));
}
