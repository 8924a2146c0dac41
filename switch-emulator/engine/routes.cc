#include "switch-emulator/engine/routes.h"

#include <algorithm>
#include <bit>

#include "switch-emulator/engine/group/bridging.h"
#include "wire/byte_order.h"
#include "wire/roce.h"
#include "wire/situation.h"
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

Routes::Routes(const SwitchConfig& config)
    : attachments_(config.attachments),
      up_(config.ports.size(), true),
      lacks_(config.ports.size()) {
  const auto add_class = [&](Ipv4 attachment, const std::vector<PortId>& ports) {
    classes_.push_back({ports, attachment});
    return static_cast<ClassNo>(classes_.size() - 1);
  };
  for (const Route& route : config.routes) {
    if (!route.ports.empty())
      behind_.emplace(route.attachment, add_class(route.attachment, route.ports));
  }
  for (std::uint16_t i = 0; i < config.ports.size(); ++i) {
    if (config.ports[i].kind == PortKind::kHost) {
      own_.insert_or_assign(config.ports[i].host, add_class({}, {PortId(i)}));
    }
  }
}

bool Routes::set_unreachable(PortId port, std::span<const Ipv4> attachments) {
  std::vector<bool>& lacks = lacks_[port.value()];
  if (attachments.empty() && lacks.empty()) return false;
  lacks.resize(classes_.size());
  std::vector<Ipv4> sorted(attachments.begin(), attachments.end());
  std::ranges::sort(sorted);
  bool changed = false;
  for (ClassNo c = 0; c < classes_.size(); ++c) {
    const Ipv4 attachment = classes_[c].attachment;
    const bool lacked = !attachment.is_unset() && std::ranges::binary_search(sorted, attachment);
    changed |= lacks[c] != lacked;
    lacks[c] = lacked;
  }
  if (attachments.empty()) lacks.clear();
  return changed;
}

void Routes::list_unreachable(std::vector<Ipv4>& attachments) const {
  attachments.clear();
  for (ClassNo c = 0; c < classes_.size(); ++c) {
    const Class& one = classes_[c];
    const auto serves_it = [&](PortId port) { return serves(port, c); };
    if (!one.attachment.is_unset() && std::ranges::none_of(one.ports, serves_it)) {
      attachments.push_back(one.attachment);
    }
  }
}

std::optional<Routes::ClassNo> Routes::find(Ipv4 host) const {
  constexpr std::uint32_t kGolden = 0x9E3779B1;  // spreads neighbouring addresses
  constexpr int kBits = std::bit_width(kFound - 1);
  Found& kept = found_[host.value() * kGolden >> (32 - kBits)];
  if (kept.number != kUnknown && kept.host == host) return kept.number;
  const auto number = look_up(host);
  if (number) kept = {host, *number};
  return number;
}

std::optional<Routes::ClassNo> Routes::look_up(Ipv4 host) const {
  if (const auto at = own_.find(host); at != own_.end()) return at->second;
  if (attachments_ == nullptr) return std::nullopt;
  const auto attachment = attachments_->find(host);
  if (attachment == attachments_->end()) return std::nullopt;
  const auto at = behind_.find(attachment->second);
  return at == behind_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<PortId> Routes::next_hop(Ipv4 destination, std::uint32_t flow, PortId ingress) const {
  const auto c = find(destination);
  if (!c) return std::nullopt;
  const auto& choices = classes_[*c].ports;
  const auto is_choice = [&](PortId port) { return serves(port, *c) && port != ingress; };
  const PortId usual = choices[flow % choices.size()];
  if (is_choice(usual)) return usual;
  CEPHEUS_SITUATION("a flow leaves its usual way");
  // So its flows spread over all others, not only over the next one.
  const auto others = static_cast<std::size_t>(std::ranges::count_if(choices, is_choice));
  if (others == 0) {
    CEPHEUS_SITUATION("no way leads to a host");
    return std::nullopt;
  }
  auto skip = (flow / choices.size()) % others;
  for (const PortId port : choices) {
    if (is_choice(port) && skip-- == 0) return port;
  }
  return std::nullopt;
}

void Routes::forward(Call& call, const Frame& frame, const wire::Ipv4Header& ip) const {
  const auto port = next_hop(ip.destination, flow_hash(call.config.mac, frame, ip), call.ingress());
  if (!port) return call.count(Counter::kDropNoRoute);
  if (ip.ttl <= 1) return call.count(Counter::kDropTtl);
  Frame* copy = call.emit(Counter::kUnicastForwarded, *port, frame);
  if (copy != nullptr) route_on(*copy, frame, ip, call.config.mac, call.port(*port).peer_mac);
}

}  // namespace cepheus::fabric
