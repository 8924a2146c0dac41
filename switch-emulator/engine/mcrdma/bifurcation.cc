// Receivers with the same next hops are one branch; with racks (V-A), those of one class of routes.
// A receiver without a working port makes the whole rule impossible, and is named.
#include "switch-emulator/engine/mcrdma/bifurcation.h"

#include <algorithm>

namespace cepheus::fabric {
namespace {

// Receivers with equal keys form one branch.
struct NextHops {
  Routes::ClassNo rack;
  Branch branch;
};

std::optional<NextHops> next_hops(const SwitchConfig& config, const Routes& routes, Ipv4 receiver,
                                  PortId ingress) {
  const auto c = routes.find(receiver);
  if (!c) return std::nullopt;
  NextHops found{*c, {}};
  for (const PortId port : routes.ports(*c)) {
    if (routes.serves(port, *c) && port != ingress) found.branch.ports.push_back(port);
  }
  if (found.branch.ports.empty()) return std::nullopt;
  std::ranges::sort(found.branch.ports);
  const PortConfig& first = config.ports[found.branch.ports.front().value()];
  found.branch.is_here = first.kind == PortKind::kHost;
  return found;
}

}  // namespace

std::vector<Branch> bifurcate(const SwitchConfig& config, const Routes& routes,
                              std::span<const wire::MrpMember> receivers, PortId ingress,
                              std::size_t& unreachable) {
  std::vector<NextHops> all;
  const bool by_rack = config.sender_groups == net::SenderGroups::kRacks;
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    auto hops = next_hops(config, routes, receivers[i].host, ingress);
    if (!hops) {
      unreachable = i;
      return {};
    }
    const auto is_same = [&](const NextHops& other) {
      return by_rack ? other.rack == hops->rack : other.branch.ports == hops->branch.ports;
    };
    auto at = std::ranges::find_if(all, is_same);
    if (at == all.end()) at = all.insert(all.end(), std::move(*hops));
    at->branch.receivers.push_back(static_cast<std::uint8_t>(i));
  }
  std::vector<Branch> branches;
  branches.reserve(all.size());
  for (NextHops& one : all) branches.push_back(std::move(one.branch));
  return branches;
}

}  // namespace cepheus::fabric
