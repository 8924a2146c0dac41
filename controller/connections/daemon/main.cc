// cepheus-cmd: the connection management daemon of one host, and its status. Serving checks the
// address, reads the key, and needs "%h" in --peers; log lines go to standard error. Status
// connects as a program does, sends one request, and waits for events kTimeLimitMs at a time.
//
// Exit status: 0 done, 1 no daemon answers, 2 wrong usage or it can't listen.
#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "controller/connections/client/client.h"
#include "controller/connections/daemon/daemon.h"
#include "support/command_line/command_line.h"
#include "support/command_line/process.h"

namespace {

using namespace cepheus;

constexpr int kUsage = 2;

wire::Result<std::optional<wire::MrpKey>> read_key(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return wire::MrpKey::read(path,
                            "can't read the key " + path + "; correct --key or CEPHEUS_KEY_FILE");
}

int serve(const std::string& host, const std::string& key_file,
          connections::DaemonSettings settings) {
  const auto fail = [](const std::string& why) {
    std::cerr << "cepheus-cmd: " << why << "\n";
    return kUsage;
  };
  const auto address = wire::Ipv4::parse(host);
  if (!address || address->is_unset())
    return fail("--host '" + host + "' is not an IPv4 address; give this host's, as in 10.0.0.1");
  settings.peers.host = *address;
  auto key = read_key(key_file);
  if (!key) return fail(key.error().text);
  settings.peers.key = std::move(*key);
  if (settings.peers.pattern.find("%h") == std::string::npos) {
    return fail("--peers '" + settings.peers.pattern +
                "' lacks %h, which stands for a host's address");
  }
  if (settings.listen.empty()) {
    settings.listen = host + ":" + std::to_string(connections::kDefaultPort);
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("cepheus-cmd"));
  spdlog::set_pattern("cepheus-cmd: %v");
  const auto ended = connections::Daemon(settings).run();
  return ended ? 0 : fail(ended.error().text);
}

constexpr int kTimeLimitMs = 5000;

// For people.
void print(const nlohmann::json& s) {
  std::cout << "host " << s.at("host").get<std::string>() << ", programs: " << s.at("programs")
            << "\n";
  for (const auto& service : s.at("services")) {
    std::cout << "service " << service.at("name").get<std::string>() << "  pid "
              << service.at("pid") << "\n";
  }
  for (const auto& c : s.at("connections")) {
    std::cout << c.at("role").get<std::string>() << " of " << c.at("service").get<std::string>()
              << "  virtual qp 0x" << std::hex << c.at("virtual_qpn").get<unsigned>() << std::dec
              << "  pid " << c.at("pid") << "  " << c.at("state").get<std::string>() << " "
              << c.at("age_seconds").get<double>() << " s ";
    for (const auto& host : c.at("hosts")) std::cout << " " << host.get<std::string>();
    std::cout << "\n";
  }
  for (const auto& peer : s.at("peers")) {
    std::cout << "peer " << peer.at("host").get<std::string>() << "  "
              << (peer.at("dialled").get<bool>() ? "dialled" : "accepted") << ", "
              << (peer.at("up").get<bool>() ? "up " : "coming ")
              << peer.at("age_seconds").get<double>() << " s, " << peer.at("connections")
              << " connections\n";
  }
  for (const auto& [name, count] : s.at("left_off").items()) {
    if (count.get<unsigned>() > 0) std::cout << "and " << count << " more " << name << "\n";
  }
  for (const auto& [name, count] : s.at("refusals").items()) {
    if (count.get<std::uint64_t>() > 0) std::cout << "refusals " << name << " " << count << "\n";
  }
}

// An exit code; 1: no daemon answers.
int show_status(const std::string& socket, bool as_json) {
  const auto fail = [](const std::string& why) {
    std::cerr << "cepheus-cmd: " << why << "\n";
    return 1;
  };
  auto client = connections::Client::open(socket);
  if (!client) return fail(client.error().text);
  const auto sent = client->send({.type = connections::MessageType::kStatusRequest});
  if (!sent) return fail(sent.error().text);
  while (true) {
    auto event = client->next();
    if (!event) return fail(event.error().text);
    if (*event && (*event)->type == connections::MessageType::kStatus) {
      const auto status = nlohmann::json::parse((*event)->status);
      if (as_json) {
        std::cout << status.dump() << "\n";
      } else {
        print(status);
      }
      return 0;
    }
    pollfd waits{client->fd(), client->events(), 0};
    const int ready = poll(&waits, 1, kTimeLimitMs);
    if (ready == 0) {
      return fail("cepheus-cmd at " + socket + " does not answer; is it stopped or overloaded?");
    }
    if (ready < 0 && errno != EINTR) {
      return fail("can't wait for " + socket + ": " + std::strerror(errno));
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Connect senders of sender groups with their receivers: the daemon of one host."};
  command_line::set_up(app, "cepheus-cmd", CEPHEUS_VERSION);
  app.fallthrough();
  connections::DaemonSettings settings;
  settings.socket = connections::Client::default_socket();
  settings.peers.pattern = "%h:" + std::to_string(connections::kDefaultPort);
  std::string host, key_file;
  bool as_json = false;
  app.add_option("--host", host, "serve the host with this address in the fabric")
      ->type_name("ADDRESS");
  app.add_option("--listen", settings.listen,
                 "listen for other daemons here (default: the host's address, port 18517)")
      ->type_name("HOST:PORT|unix:PATH");
  app.add_option("--socket", settings.socket, "listen for programs of this host at this socket")
      ->type_name("PATH")
      ->envname("CEPHEUS_CMD_SOCKET")
      ->capture_default_str();
  app.add_option("--peers", settings.peers.pattern,
                 "reach other daemons at this address; %h stands for the host's address")
      ->type_name("HOST:PORT|unix:PATH")
      ->capture_default_str();
  app.add_option("--key", key_file, "sign messages with the fabric's key from this file")
      ->type_name("FILE")
      ->envname("CEPHEUS_KEY_FILE");
  app.add_option("--peer-timeout-ms", settings.peers.time_limit_ms,
                 "take another daemon for dead after this silence in milliseconds")
      ->type_name("N")
      ->check(CLI::Range(100, 60000))
      ->capture_default_str();
  app.add_option("--ready-fd", settings.ready_fd, "write a line to this descriptor when serving")
      ->type_name("FD");
  auto* status = app.add_subcommand(
      "status", "show the running daemon's services, connections, peers and refusals");
  status->add_flag("--json", as_json, "print one JSON object");
  command_line::set_example(*status, "cepheus-cmd status --socket /run/cepheus-cmd/cmd.sock");
  command_line::set_example(
      app, "cepheus-cmd --host 10.0.0.1",
      "Exit status: 0 done, 1 no daemon answers status, 2 wrong usage, or it can't listen.");
  app.callback([&] {
    if (!*status && host.empty())
      throw CLI::RequiredError("--host ADDRESS (or the command status)");
  });
  if (const auto code = command_line::parse(app, argc, argv)) return *code;
  if (*status) return show_status(settings.socket, as_json);
  return serve(host, key_file, settings);
}

}  // namespace

int main(int argc, char** argv) {
  return cepheus::command_line::run_program("cepheus-cmd", [&] { return run(argc, argv); });
}
