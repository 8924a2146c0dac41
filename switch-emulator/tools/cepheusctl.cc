// cepheusctl: shows a running fabric and turns its links' faults on and off. Each subcommand sets a
// function that makes a text (outputs.h), or one that does all by itself. The option --watch repeats
// the former until a signal or a failure.
//
// Exit status: 0 done, 1 the fabric refused or did not answer, 2 wrong usage.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/command_line/command_line.h"
#include "support/command_line/process.h"
#include "switch-emulator/live/status/metrics.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/tools/endings.h"
#include "switch-emulator/tools/metrics_server.h"
#include "switch-emulator/tools/outputs.h"
#include "switch-emulator/tools/record.h"
#include "switch-emulator/tools/top.h"
#include "switch-emulator/tools/web_server.h"

namespace cepheus::tools {
namespace {

using nlohmann::json;

constexpr int kRefused = 1;  // the fabric refused, or no fabric answered
constexpr int kUsage = 2;

struct Command {
  std::function<wire::Result<std::string>()> text;  // its output
  std::function<int()> act;                         // does all of it, if there is no such text
};

int complain(const std::string& text, int exit_code) {
  std::cerr << "cepheusctl: " << live::printable(text) << "\n";
  return exit_code;
}

int print(const wire::Result<std::string>& text) {
  if (!text) return complain(text.error().text, kRefused);
  std::cout << *text << std::flush;
  return std::cout ? 0 : kRefused;
}

int finish(const wire::Result<void>& done) {
  return done ? 0 : complain(done.error().text, kRefused);
}

// Repeats until interrupted; the signals stay blocked, so that none is lost between two waits.
int watch(const Command& command, const OutputOptions& options) {
  const sigset_t endings = block_endings();
  const auto interval_ns = static_cast<std::int64_t>(*options.watch_seconds * 1e9);
  const timespec interval{interval_ns / 1'000'000'000, interval_ns % 1'000'000'000};
  while (true) {
    const auto text = command.text();
    // On a terminal: cursor home, the text, then clear the rest of an earlier, longer text.
    if (text && is_terminal() && !options.as_json) std::cout << "\033[H\033[2J";
    if (const int failed = print(text); failed != 0) return failed;
    if (::sigtimedwait(&endings, nullptr, &interval) > 0) return 0;
  }
}

// Goes on if no fabric answers: one may start, and the page reports that none answers.
int serve(const OutputOptions& options, const HttpAddress& address) {
  return finish(serve_metrics(address, [&] {
    return metrics(options)
        .or_else([](const wire::Error& error) -> wire::Result<std::string> {
          return live::metrics_without_fabric(error.text);
        })
        .value();
  }));
}

int top(const OutputOptions& options, bool once) {
  if (once || options.as_json) return print(top_once(options.socket, options.as_json));
  if (!is_terminal() || ::isatty(STDIN_FILENO) == 0) {
    return complain("top needs a terminal; elsewhere run cepheusctl top --once, or --json", kUsage);
  }
  return finish(show_top(options.socket, may_colour()));
}

class CommandLine {
 public:
  CommandLine() : app_("Inspect and change a running fabric.") {
    command_line::set_up(app_, "cepheusctl", CEPHEUS_VERSION);
    app_.option_defaults()->always_capture_default(false);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--fabric", options_.socket, "connect to the fabric at this socket")
        ->envname("CEPHEUS_FABRIC")
        ->type_name("PATH")
        ->capture_default_str();
    app_.add_flag("--json", options_.as_json, "print JSON");
    add_view("status", "show ports, groups and counters",
             {live::View::kPorts, live::View::kGroups, live::View::kCounters});
    add_view("ports", "show hosts and trunks: address, client, link, frames, payload bytes",
             {live::View::kPorts});
    add_view("groups", "show multicast groups: tree, acknowledged packets, lagging members",
             {live::View::kGroups});
    add_view("counters", "show readings above 0 with their ports, links and groups",
             {live::View::kCounters})
        ->add_flag("--describe", describes_, "describe each reading instead")
        ->excludes("--watch");
    CLI::App* lates =
        app_.add_subcommand("late", "name the members that reductions wait for, and since when");
    lates->callback([this] { command_.text = [this] { return late(options_); }; });
    add_watch(*lates);
    add_topology();
    CLI::App* explains = app_.add_subcommand(
        "explain", "show path and reason of this user's MPI broadcasts, by communicator");
    explains->callback([this] { command_.text = [this] { return explanation(options_); }; });
    add_watch(*explains);
    CLI::App* nearest =
        app_.add_subcommand("nearest", "order RDMA devices by distance from this shell's cores");
    nearest->add_option("DEVICE", devices_, "order these devices, as ibv_devices lists them")
        ->type_name("")
        ->required();
    nearest->callback(
        [this] { command_.text = [this] { return tools::nearest(options_, devices_); }; });
    command_line::set_example(*nearest, "cepheusctl nearest mlx5_0 mlx5_1");
    add_metrics();
    add_top();
    add_web();
    add_record();
    add_link();
    add_request("reload", "reload", "reread the topology file; groups go on");
    add_request("reset-counters", "reset_counters", "set all counters to 0");
    add_request("stop", "stop", "end the fabric");
    command_line::set_example(
        app_, "cepheusctl --fabric /tmp/cepheus.sock ports",
        "Exit status: 0 done, 1 the fabric refused or did not answer, 2 wrong usage.\n"
        "CEPHEUS_REPORT_DIR: directory of explain's reports (default: /dev/shm/cepheus-UID, or\n"
        "/dev/shm/cepheus-UID.1 and so on if that name belongs to another user).\n"
        "NO_COLOR: no colour, not even on a terminal.");
  }

  int run(int argc, char** argv) {
    if (const auto code = command_line::parse(app_, argc, argv)) return *code;
    if (command_.act) return command_.act();
    return options_.watch_seconds ? watch(command_, options_) : print(command_.text());
  }

 private:
  CLI::App* add_view(const char* name, const char* help, std::vector<live::View> views) {
    CLI::App* sub = app_.add_subcommand(name, help);
    sub->callback([this, views = std::move(views)] {
      command_.text = [this, views] {
        return describes_ ? describe(options_) : show(views, options_);
      };
    });
    add_watch(*sub);
    return sub;
  }

  void add_request(const char* name, const char* request, const char* help) {
    app_.add_subcommand(name, help)->callback([this, request] {
      command_.text = [this, request] { return answer_to({{"ask", request}}, options_); };
    });
  }

  void add_watch(CLI::App& sub) {
    sub.add_option("--watch", options_.watch_seconds, "repeat every SECONDS until interrupted")
        ->type_name("[SECONDS]")
        ->expected(0, 1)
        ->default_str("1")
        ->check(CLI::Range(0.05, 86400.0));
  }

  void add_topology() {
    CLI::App* sub =
        app_.add_subcommand("topology", "show switches, their cables and the trees of groups");
    sub->add_option("--svg", svg_, "draw into FILE; - is standard output")->type_name("FILE");
    sub->callback([this] { command_.text = [this] { return map_of(options_, svg_); }; });
  }

  void add_metrics() {
    CLI::App* sub = app_.add_subcommand(
        "metrics", "print all readings in Prometheus's text format, once or over HTTP");
    sub->callback([this] {
      command_.act = [this] {
        return listen_ ? serve(options_, *listen_) : print(metrics(options_));
      };
    });
    add_listen(*sub, "serve http://ADDRESS:PORT/metrics until interrupted; port 0: any free port");
  }

  CLI::Option* add_listen(CLI::App& sub, const char* help) {
    return sub
        .add_option_function<std::string>(
            "--listen",
            [this](const std::string& text) {
              const auto address = parse_http_address(text);
              if (!address) throw CLI::ValidationError("--listen", address.error().text);
              listen_ = *address;
            },
            help)
        ->type_name("ADDRESS:PORT");
  }

  void add_top() {
    CLI::App* sub = app_.add_subcommand(
        "top", "refresh a terminal: links and groups by traffic, lagging members, drops");
    sub->add_flag("--once", once_, "print one look and exit");
    sub->callback([this] { command_.act = [this] { return top(options_, once_); }; });
  }

  void add_web() {
    CLI::App* sub = app_.add_subcommand(
        "web", "serve a live page until interrupted: trees, traffic, lagging members, drops");
    add_listen(
        *sub,
        "listen at this address; port 0: any free port; beyond loopback the page needs a token")
        ->default_str("127.0.0.1:8080");
    sub->add_flag("--control", web_.control,
                  "let the page cut and mend links, lose packets and kill processes of hosts");
    sub->callback([this] {
      command_.act = [this] {
        web_.listen = listen_.value_or(web_.listen);
        web_.fabric_socket = options_.socket;
        return finish(serve_web(web_));
      };
    });
  }

  void add_record() {
    CLI::App* sub = app_.add_subcommand(
        "record", "write a timeline for ui.perfetto.dev: broadcasts, turns, waits, packets");
    sub->add_option("FILE", record_.file, "write to this file")->type_name("")->required();
    command_line::set_example(*sub, "cepheusctl record --seconds 5 trace.json");
    sub->add_option("--seconds", record_.seconds,
                    "record for this many seconds (default: until interrupted)")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.05, 86400.0));
    sub->add_option("--packets-per-second", record_.packets_per_second,
                    "record at most N data and acknowledgement packets a second")
        ->type_name("N")
        ->check(CLI::Range(100, 1'000'000))
        ->capture_default_str();
    sub->callback([this] {
      command_.act = [this] {
        record_.fabric_socket = options_.socket;
        return finish(record(record_));
      };
    });
  }

  void add_link() {
    CLI::App* sub = app_.add_subcommand("link", "cut, mend or make lossy a host's link or a trunk");
    command_line::set_example(*sub, "cepheusctl link h1 --loss 0.1");
    sub->add_option("LINK", link_, "change the link of this host, or this trunk: h1, leaf0-spine0")
        ->type_name("")
        ->required();
    sub->add_option("--direction", direction_,
                    "change this direction: both, to-switch, to-host, or to-leaf0 of a trunk")
        ->check([](const std::string& way) {
          const bool is_way = way == "both" || way.starts_with("to-");
          return is_way ? std::string() : "give both, or to- and one end of the link, not " + way;
        })
        ->type_name("both|to-...")
        ->capture_default_str();
    CLI::Option* loss =
        sub->add_option("--loss", loss_, "lose each frame with this probability, 0 to 1")
            ->type_name("P")
            ->check(CLI::Range(0.0, 1.0));
    CLI::Option* up = sub->add_flag("--up", up_, "mend the link");
    CLI::Option* down = sub->add_flag("--down", down_, "cut the link: every frame is dropped");
    up->excludes(down);
    sub->callback([this, loss] {
      if (loss->count() == 0 && !up_ && !down_) {
        throw CLI::RequiredError("--loss P, --up or --down");
      }
      // In the protocol the way from host to switch is "up".
      const char* way = direction_ == "to-switch" ? "up"
                        : direction_ == "to-host" ? "down"
                                                  : direction_.c_str();
      json request = {{"ask", "link"}, {"link", link_}, {"direction", way}};
      if (loss->count() != 0) request["loss"] = loss_;
      if (up_ || down_) request["up"] = up_;
      command_.text = [this, request] { return answer_to(request, options_); };
    });
  }

  CLI::App app_;
  OutputOptions options_;
  Command command_;
  bool describes_ = false, once_ = false;
  std::vector<std::string> devices_;
  std::string svg_;
  std::optional<HttpAddress> listen_;
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
  return cepheus::command_line::run_program(
      "cepheusctl", [&] { return cepheus::tools::CommandLine().run(argc, argv); });
}
