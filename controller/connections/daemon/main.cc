// cepheus-cmd: the connection management daemon of one host, and its status.
#include <poll.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "controller/connections/client/client.h"
#include "controller/connections/daemon/daemon.h"

namespace {

using namespace cepheus;

constexpr int kUsage = 2;

wire::Result<std::optional<wire::MrpKey>> read_key(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open()) {
    return wire::fail(wire::ErrorCode::kInvalid, "can't read the key " + path + ": correct --key");
  }
  auto key = wire::MrpKey::parse(text);
  if (!key) return wire::fail(key.error().code, path + ": " + key.error().text);
  return std::optional(std::move(*key));
}

int serve(const std::string& host, const std::string& key_file,
          connections::DaemonSettings settings) {
  const auto fail = [](const std::string& why) {
    std::cerr << "cepheus-cmd: " << why << "\n";
    return kUsage;
  };
  const auto address = wire::Ipv4::parse(host);
  if (!address || address->is_unset())
    return fail("--host takes this host's address in the fabric");
  settings.peers.host = *address;
  auto key = read_key(key_file);
  if (!key) return fail(key.error().text);
  settings.peers.key = std::move(*key);
  if (settings.peers.pattern.find("%h") == std::string::npos) {
    return fail("--peers must have %h where a host's address is to stand");
  }
  if (settings.listen.empty()) {
    settings.listen = host + ":" + std::to_string(connections::kDefaultPort);
  }
  const auto ended = connections::Daemon(settings).run();
  return ended ? 0 : fail(ended.error().text);
}

constexpr int kTimeLimitMs = 5000;

// For people.
void print(const nlohmann::json& s) {
  std::cout << "host " << s.at("host").get<std::string>() << ", " << s.at("programs")
            << " programs\n";
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
    std::cerr << why << "\n";
    return 1;
  };
  auto client = connections::Client::open(socket);
  if (!client) return fail(client.error().text);
  connections::Message request;
  request.type = connections::MessageType::kStatusRequest;
  if (auto sent = client->send(request); !sent) return fail(sent.error().text);
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
    if (poll(&waits, 1, kTimeLimitMs) == 0) {
      return fail("cepheus-cmd at " + socket + " does not answer: see whether it is stopped");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Connects programs that send to a group of hosts with those that receive."};
  app.set_version_flag("--version", CEPHEUS_VERSION);
  connections::DaemonSettings settings;
  settings.socket = connections::Client::default_socket();
  settings.peers.pattern = "%h:" + std::to_string(connections::kDefaultPort);
  const char* named = std::getenv("CEPHEUS_KEY_FILE");
  std::string host, key_file = named == nullptr ? "" : named;
  bool is_status = false, as_json = false;
  app.add_option("--host", host, "This host's address in the fabric");
  app.add_option(
      "--listen", settings.listen,
      "HOST:PORT or unix:PATH for other daemons (default: the host's address, port 18517)");
  app.add_option("--socket", settings.socket, "UNIX socket for programs of this host")
      ->capture_default_str();
  app.add_option("--peers", settings.peers.pattern,
                 "How another host's daemon is reached: HOST:PORT or unix:PATH, %h is its address")
      ->capture_default_str();
  app.add_option("--key", key_file, "File with the fabric's key (default: $CEPHEUS_KEY_FILE)");
  app.add_option("--patience-ms", settings.peers.time_limit_ms,
                 "Another daemon that is silent for so long is gone")
      ->check(CLI::Range(100, 60000))
      ->capture_default_str();
  app.add_option("--ready-fd", settings.ready_fd, "Writes a line there once it serves");
  auto* status = app.add_flag("--status", is_status, "Print the status of the running daemon");
  app.add_flag("--json", as_json, "The status as one JSON object")->needs(status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return kUsage;
  }
  if (is_status) return show_status(settings.socket, as_json);
  return serve(host, key_file, settings);
}
