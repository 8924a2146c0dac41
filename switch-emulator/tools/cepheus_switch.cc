// cepheus-switch: an emulated fabric of Cepheus switches, to which user-space NICs attach over
// shared memory. Options become a topology, the fabric starts, --ready-fd and systemd get their
// message, and run() serves until a signal. The option --check prints its report and serves
// nothing.
//
// Exit status: 0 ended on request or usable, 1 could not serve, 2 wrong usage or topology. Errors
// and warnings are made printable, since they may quote a file.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "net/shapes.h"
#include "support/command_line/command_line.h"
#include "support/command_line/process.h"
#include "switch-emulator/live/control/descriptor_limit.h"
#include "switch-emulator/live/live_fabric.h"
#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/ports/payload_pool.h"
#include "switch-emulator/tools/box_check.h"

namespace {

using cepheus::live::LiveFabric;
using cepheus::net::Topology;

enum Exit { kDone = 0, kFailure = 1, kUsage = 2 };

constexpr std::size_t kMaxHosts = cepheus::fabric::PoolGeometry::kMaxHosts;

struct Arguments {
  std::string topology;
  std::string shape;
  std::string one_armed;
  std::size_t hosts = 0;
  std::string socket = cepheus::live::kDefaultSocket;
  std::string pcap;
  int ready_fd = -1;
  std::optional<std::uint32_t> max_groups;
  bool verbose = false;
  bool check = false;
};

LiveFabric* serving = nullptr;

void on_signal(int) {
  const int saved = errno;
  serving->stop();
  errno = saved;
}

void stop_on_signals(LiveFabric& fabric) {
  serving = &fabric;
  cepheus::command_line::handle_signals({SIGINT, SIGTERM, SIGHUP}, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
}

void ignore_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  serving = nullptr;
}

cepheus::wire::Result<Topology> topology_of(const Arguments& arguments) {
  auto topology = !arguments.topology.empty() ? Topology::from_file(arguments.topology)
                  : !arguments.shape.empty()
                      ? cepheus::net::from_shape(arguments.shape)
                      : cepheus::wire::Result<Topology>(Topology::star(arguments.hosts));
  if (topology && !arguments.one_armed.empty()) topology->one_armed = arguments.one_armed;
  if (topology && arguments.max_groups) {
    for (auto& spec : topology->switches) spec.config.max_groups = *arguments.max_groups;
  }
  return topology;
}

// The program that waits for the fabric reads one line and the end of the file.
bool report_ready(int fd, const std::string& socket) {
  const std::string line = "ready " + socket + "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(fd);
  return written;
}

// The error may quote a topology file.
void complain(const cepheus::wire::Error& error) {
  spdlog::error("{}", cepheus::live::printable(error.text));
}

void warn_of_few_descriptors(std::size_t hosts) {
  const std::size_t needed = hosts * cepheus::live::kDescriptorsPerHost;
  const std::size_t limit = cepheus::live::raise_descriptor_limit();
  if (needed < limit) return;
  spdlog::warn(
      "{} hosts need {} descriptors and the limit is {}: the last hosts will be refused; raise the "
      "limit with ulimit -Hn",
      hosts, needed, limit);
}

int serve(const Arguments& arguments) {
  const auto topology = topology_of(arguments);
  if (!topology) {
    complain(topology.error());
    return kUsage;
  }
  if (arguments.check) {
    const auto report = cepheus::tools::check_box(*topology);
    std::cout << report.json << '\n';
    return report.is_usable ? kDone : kFailure;
  }
  cepheus::live::LiveOptions options;
  options.socket = arguments.socket;
  options.pcap_dir = arguments.pcap;
  options.warn = [](const std::string& text) {
    spdlog::warn("{}", cepheus::live::printable(text));
  };
  if (!arguments.topology.empty()) {
    options.reread = [&arguments] { return topology_of(arguments); };
  }
  warn_of_few_descriptors(topology->hosts.size());
  auto fabric = LiveFabric::start(*topology, options);
  if (!fabric) {
    complain(fabric.error());
    return fabric.error().code == cepheus::wire::ErrorCode::kInvalid ? kUsage : kFailure;
  }
  stop_on_signals(**fabric);
  spdlog::info("{} hosts on {} switches at {}", topology->hosts.size(), topology->switches.size(),
               arguments.socket);
  if (!arguments.pcap.empty()) spdlog::info("captures in {}", arguments.pcap);
  if (arguments.ready_fd >= 0 && !report_ready(arguments.ready_fd, arguments.socket)) {
    spdlog::error("can't write to --ready-fd {}: {}", arguments.ready_fd, std::strerror(errno));
    ignore_signals();
    return kFailure;
  }
  sd_notify(0, "READY=1");
  (*fabric)->run();
  ignore_signals();
  spdlog::info("ending");
  return kDone;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Serve an emulated fabric of switches. Hosts attach over shared memory."};
  cepheus::command_line::set_up(app, "cepheus-switch", CEPHEUS_VERSION);
  cepheus::command_line::set_example(
      app, "cepheus-switch --hosts 4 --fabric /tmp/cepheus.sock",
      "Exit status: 0 ended on request, 1 could not serve, 2 wrong usage or topology.");
  auto* topology =
      app.add_option("--topology", arguments.topology, "serve the fabric that this file describes")
          ->type_name("FILE")
          ->check(CLI::ExistingFile);
  auto* hosts =
      app.add_option("--hosts", arguments.hosts, "serve N hosts h0, h1, ... on one switch")
          ->type_name("N")
          ->check(CLI::Range(std::size_t{1}, kMaxHosts));
  auto* shape = app.add_option("--shape", arguments.shape,
                               "serve star:8 (hosts), leaf-spine:4x2x4 (leaves, spines, hosts of "
                               "each leaf) or fat-tree:4 (ports of each switch)")
                    ->type_name("SHAPE");
  topology->excludes(hosts)->excludes(shape);
  shape->excludes(hosts);
  app.add_option("--one-armed", arguments.one_armed,
                 "reach all hosts without an interface of their own through this interface")
      ->type_name("INTERFACE");
  app.add_option("--fabric", arguments.socket, "listen for hosts at this socket")
      ->type_name("PATH")
      ->envname("CEPHEUS_FABRIC")
      ->capture_default_str();
  app.add_option("--pcap", arguments.pcap, "capture every port into this directory")
      ->type_name("DIR");
  app.add_option("--ready-fd", arguments.ready_fd, "write a line to this descriptor when serving")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--max-groups", arguments.max_groups,
         "keep at most N groups per switch; 0 refuses all (default: the topology's, else 1024)")
      ->type_name("N");
  app.add_flag("--check", arguments.check,
               "check whether this machine can serve the topology by its interfaces, print JSON, "
               "and exit; cepheus fabric-test --box shows it");
  app.add_flag("-v,--verbose", arguments.verbose, "log events");
  app.callback([&] {
    if (arguments.topology.empty() && arguments.shape.empty() && arguments.hosts == 0) {
      throw CLI::RequiredError("--hosts N, --shape SHAPE or --topology FILE");
    }
  });
  if (const auto code = cepheus::command_line::parse(app, argc, argv)) return *code;
  spdlog::set_default_logger(spdlog::stderr_logger_st("cepheus-switch"));
  spdlog::set_pattern("cepheus-switch: %v");
  spdlog::set_level(arguments.verbose ? spdlog::level::info : spdlog::level::warn);
  return serve(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  return cepheus::command_line::run_program("cepheus-switch", [&] { return run(argc, argv); });
}
