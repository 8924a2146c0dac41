// Addresses are 10.0.0.1 and following in the order of hosts; each link gets its seed at the end.
// Numbers in a shape are 1 to kMostHosts. Limits: kMostHosts hosts, half as many switches of a
// leaf-spine fabric, kMostPorts ports of a fat-tree's switch. The other functions do not check
// their arguments.
#include "net/shapes.h"

#include <charconv>
#include <vector>

namespace cepheus::net {
namespace {

constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostPorts = 64;  // of a fat-tree's switches

std::size_t add_switches(Topology& t, const char* kind, std::size_t count) {
  const std::size_t first = t.switches.size();
  for (std::size_t i = 0; i < count; ++i) {
    SwitchSpec spec;
    spec.name = spec.config.name = kind + std::to_string(i);
    t.switches.push_back(std::move(spec));
  }
  return first;
}

void add_hosts(Topology& t, std::size_t at_switch, std::size_t count, const LinkConfig& link) {
  for (std::size_t i = 0; i < count; ++i) {
    HostSpec host;
    const std::size_t number = t.hosts.size();
    host.name = "h" + std::to_string(number);
    host.address = Ipv4(Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(number));
    host.switch_index = at_switch;
    host.up = host.down = link;
    t.hosts.push_back(std::move(host));
  }
}

void add_trunk(Topology& t, std::size_t a, std::size_t b, const LinkConfig& link) {
  t.trunks.push_back({a, b, link, link});
}

// The numbers behind the colon, with an x between them; none if the text has another form.
std::vector<std::size_t> numbers_of(std::string_view text) {
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::size_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number == 0 || number > kMostHosts) return {};
    numbers.push_back(number);
    if (next == end) return numbers;
    if (*next != 'x') return {};
    at = next + 1;
  }
}

tl::unexpected<wire::Error> invalid(std::string_view text, const std::string& why) {
  return wire::invalid("shape '" + std::string(text) + "': " + why);
}

}  // namespace

Topology Topology::star(std::size_t n, const LinkConfig& link) {
  Topology t;
  add_hosts(t, add_switches(t, "s", 1), n, link);
  t.assign_link_seeds();
  return t;
}

Topology leaf_spine(std::size_t leaves, std::size_t spines, std::size_t hosts_per_leaf,
                    const LinkConfig& link) {
  Topology t;
  const std::size_t first_leaf = add_switches(t, "leaf", leaves);
  const std::size_t first_spine = add_switches(t, "spine", spines);
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    add_hosts(t, first_leaf + leaf, hosts_per_leaf, link);
    for (std::size_t spine = 0; spine < spines; ++spine) {
      add_trunk(t, first_leaf + leaf, first_spine + spine, link);
    }
  }
  t.assign_link_seeds();
  return t;
}

Topology fat_tree(std::size_t k, const LinkConfig& link, std::size_t pods) {
  Topology t;
  const std::size_t half = k / 2;
  if (pods == 0) pods = k;
  const std::size_t first_edge = add_switches(t, "edge", pods * half);
  const std::size_t first_agg = add_switches(t, "agg", pods * half);
  const std::size_t first_core = add_switches(t, "core", half * half);
  for (std::size_t pod = 0; pod < pods; ++pod) {
    for (std::size_t i = 0; i < half; ++i) {
      const std::size_t edge = first_edge + pod * half + i;
      add_hosts(t, edge, half, link);
      for (std::size_t j = 0; j < half; ++j) {
        add_trunk(t, edge, first_agg + pod * half + j, link);
      }
    }
    for (std::size_t j = 0; j < half; ++j) {
      for (std::size_t i = 0; i < half; ++i) {
        add_trunk(t, first_agg + pod * half + j, first_core + j * half + i, link);
      }
    }
  }
  t.assign_link_seeds();
  return t;
}

wire::Result<Topology> from_shape(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const auto n =
      colon == text.npos ? std::vector<std::size_t>{} : numbers_of(text.substr(colon + 1));
  if (kind == "star") {
    if (n.size() == 1) return Topology::star(n[0]);
    return invalid(text, "write star:HOSTS, such as star:8");
  }
  if (kind == "leaf-spine") {
    const bool fits = n.size() == 3 && n[0] * n[2] <= kMostHosts && n[0] + n[1] <= kMostHosts / 2;
    if (fits) return leaf_spine(n[0], n[1], n[2]);
    return invalid(text,
                   "write leaf-spine:LEAVESxSPINESxHOSTS, hosts for each leaf, such as "
                   "leaf-spine:4x2x4, of at most 65536 hosts");
  }
  if (kind == "fat-tree") {
    if (n.size() == 1 && n[0] % 2 == 0 && n[0] <= kMostPorts) return fat_tree(n[0]);
    return invalid(
        text,
        "write fat-tree:PORTS, an even number of ports from 2 to 64: fat-tree:4 has 16 hosts");
  }
  return invalid(text, "there are star:HOSTS, leaf-spine:LEAVESxSPINESxHOSTS and fat-tree:PORTS");
}

}  // namespace cepheus::net
