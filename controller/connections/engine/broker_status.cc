// The data of cepheus-cmd status: services, connections of both sides, peers, counters of refusals.
// A list has at most kMostShown entries, and left_off counts the rest, so that the answer stays a
// frame of bounded size. Nothing changes by it.
#include <nlohmann/json.hpp>

#include "controller/connections/engine/broker.h"

namespace cepheus::connections {
namespace {

constexpr std::size_t kMostShown = 200;

double seconds(wire::Duration d) { return std::chrono::duration<double>(d).count(); }

// A list of at most kMostShown, and how many more there are.
class List {
 public:
  void add(nlohmann::json entry) {
    if (list_.size() < kMostShown) {
      list_.push_back(std::move(entry));
    } else {
      ++left_off_;
    }
  }
  void put(nlohmann::json& into, const std::string& name) {
    into[name] = std::move(list_);
    into["left_off"][name] = left_off_;
  }

 private:
  nlohmann::json list_ = nlohmann::json::array();
  std::size_t left_off_ = 0;
};

}  // namespace

nlohmann::json Broker::status(wire::Instant now) const {
  nlohmann::json status;
  status["host"] = host_.to_string();
  status["programs"] = programs_.size();
  List services, connections, peers;
  for (const auto& [name, program] : services_) {
    services.add({{"name", name}, {"pid", programs_.at(program).pid}});
  }
  for (const auto& [id, c] : outgoing_) {
    nlohmann::json hosts = nlohmann::json::array();
    for (const Branch& b : c.branches) {
      if (b.state != BranchState::kLeft) hosts.push_back(b.member.host.to_string());
    }
    connections.add({{"role", "sender"},
                     {"pid", programs_.at(c.owner).pid},
                     {"service", c.service},
                     {"virtual_qpn", c.virtual_qpn.value()},
                     {"state", c.is_connected ? "connected" : "connecting"},
                     {"hosts", std::move(hosts)},
                     {"age_seconds", seconds(now - c.since)}});
  }
  for (const auto& [id, c] : incoming_) {
    const char* state = c.state == IncomingState::kOffered    ? "offered"
                        : c.state == IncomingState::kAccepted ? "accepted"
                                                              : "connected";
    connections.add({{"role", "receiver"},
                     {"pid", programs_.at(c.owner).pid},
                     {"service", c.service},
                     {"virtual_qpn", c.virtual_qpn.value()},
                     {"state", state},
                     {"hosts", {c.host.to_string()}},
                     {"age_seconds", seconds(now - c.since)}});
  }
  for (const auto& [id, link] : links_) {
    peers.add({{"host", link.host.to_string()},
               {"dialled", link.is_dialled},
               {"up", link.is_up},
               {"connections", link.connections.size()},
               {"age_seconds", seconds(now - link.since)}});
  }
  services.put(status, "services");
  connections.put(status, "connections");
  peers.put(status, "peers");
  for (std::size_t i = 0; i < kRefusalTexts.size(); ++i) {
    status["refusals"][std::string(kRefusalTexts[i].name)] = refusals_[static_cast<Refusal>(i)];
  }
  return status;
}

}  // namespace cepheus::connections
