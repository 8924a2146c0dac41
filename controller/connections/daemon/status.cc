#include "controller/connections/daemon/status.h"

#include <poll.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "controller/connections/client/client.h"

namespace cepheus::connections {
namespace {

constexpr int kPatienceMs = 5000;

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

}  // namespace

int show_status(const std::string& socket, bool as_json) {
  const auto fail = [](const std::string& why) {
    std::cerr << why << "\n";
    return 1;
  };
  auto client = Client::open(socket);
  if (!client) return fail(client.error().text);
  Message request;
  request.type = MessageType::kStatusRequest;
  if (auto sent = client->send(request); !sent) return fail(sent.error().text);
  while (true) {
    auto event = client->next();
    if (!event) return fail(event.error().text);
    if (*event && (*event)->type == MessageType::kStatus) {
      const auto status = nlohmann::json::parse((*event)->status);
      if (as_json) {
        std::cout << status.dump() << "\n";
      } else {
        print(status);
      }
      return 0;
    }
    pollfd waits{client->fd(), client->events(), 0};
    if (poll(&waits, 1, kPatienceMs) == 0) {
      return fail("cepheus-cmd at " + socket + " does not answer: see whether it is stopped");
    }
  }
}

}  // namespace cepheus::connections
