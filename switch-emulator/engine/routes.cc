#include "switch-emulator/engine/routes.h"

#include <algorithm>
#include <map>

#include "switch-emulator/engine/bridging.h"
#include "wire/byte_order.h"
#include "wire/roce.h"
#include "wire/splitmix.h"

namespace cepheus::fabric {
std::uint32_t flow_hash(const wire::Mac& self, const Frame& frame, const wire::Ipv4Header& ip) {
  std::uint64_t h = std::uint64_t{ip.source.value()} << 32 | ip.destination.value();
  const auto header = frame.header();
  if (ip.protocol == wire::Ipv4Header::kUdp && header.size() >= wire::kBthOffset) {
    if (const auto udp = wire::Udp::parse(header.subspan(wire::kUdpOffset))) {
      h ^= std::uint64_t{udp->source_port} << 16 | udp->destination_port;
    }
  }
  const std::uint64_t salt = wire::load_be32(self.octets.data() + 2);
  return static_cast<std::uint32_t>(wire::splitmix(wire::splitmix(h) + salt) >> 32);
}

Routes::Routes(const SwitchConfig& config) : up_(config.ports.size(), true) {
  std::map<std::vector<PortId>, ClassNo> known;
  const auto add = [&](Ipv4 host, const std::vector<PortId>& ports) {
    const auto [at, is_new] = known.try_emplace(ports, static_cast<ClassNo>(classes_.size()));
    if (is_new) classes_.push_back(ports);
    class_of_.insert_or_assign(host, at->second);
  };
  for (const Route& route : config.routes) {
    if (!route.ports.empty()) add(route.host, route.ports);
  }
  for (std::uint16_t i = 0; i < config.ports.size(); ++i) {
    if (config.ports[i].kind == PortKind::kHost) add(config.ports[i].host, {PortId(i)});
  }
}

std::optional<Routes::ClassNo> Routes::find(Ipv4 host) const {
  const auto at = class_of_.find(host);
  if (at == class_of_.end()) return std::nullopt;
  return at->second;
}

std::optional<PortId> Routes::next_hop(Ipv4 destination, std::uint32_t flow, PortId ingress) const {
  const auto c = find(destination);
  if (!c) return std::nullopt;
  const auto& choices = classes_[*c];
  const auto serves = [&](PortId port) { return is_up(port) && port != ingress; };
  const PortId usual = choices[flow % choices.size()];
  if (serves(usual)) return usual;
  // What its flows share out among the others, not to the next one alone.
  const auto others = static_cast<std::size_t>(std::ranges::count_if(choices, serves));
  if (others == 0) return std::nullopt;
  auto skip = (flow / choices.size()) % others;
  for (const PortId port : choices) {
    if (serves(port) && skip-- == 0) return port;
  }
  return std::nullopt;
}

void Routes::forward(Call& call, const Frame& frame, const wire::Ipv4Header& ip) const {
  const auto port = next_hop(ip.destination, flow_hash(call.config.mac, frame, ip), call.ingress);
  if (!port) return call.count(Counter::kDropNoRoute);
  if (ip.ttl <= 1) return call.count(Counter::kDropTtl);
  Frame* copy = call.emit(*port, frame);
  if (copy == nullptr) return;
  route_on(*copy, ip, call.config.mac, call.port(*port).peer_mac);
  call.count(Counter::kUnicastForwarded);
}

}  // namespace cepheus::fabric
