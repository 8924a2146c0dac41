// On equal links, n packets over m links take the time of all on one link, and m - 1 times that of
// the longest. The exchanges are played through: a rank goes on whenever a message for it has been
// sent.
#include "fabric-sim/experiments/closed_forms.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <map>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kFrameHeaders = 58;   // Ethernet, IPv4, UDP, BTH, ICRC
constexpr std::size_t kImmediate = 4;       // more, in packets of reductions
constexpr std::uint64_t kFabricMtu = 4096;  // the fabrics' here
constexpr auto kFar = std::numeric_limits<std::size_t>::max();

// Trunks from one switch to each.
std::vector<std::size_t> trunks_from(std::size_t from,
                                     const std::vector<std::vector<std::size_t>>& neighbours) {
  std::vector<std::size_t> trunks(neighbours.size(), kFar);
  std::deque<std::size_t> next{from};
  trunks[from] = 0;
  for (; !next.empty(); next.pop_front()) {
    for (const std::size_t to : neighbours[next.front()]) {
      if (trunks[to] != kFar) continue;
      trunks[to] = trunks[next.front()] + 1;
      next.push_back(to);
    }
  }
  return trunks;
}

std::vector<std::uint64_t> parts_of(std::uint64_t bytes, std::uint64_t most) {
  std::vector<std::uint64_t> parts;
  for (; bytes > most; bytes -= most) parts.push_back(most);
  parts.push_back(bytes);
  return parts;
}

struct Player {
  std::size_t next = 0;
  bool has_sent = false;
  double at = 0;                                 // when its next exchange may begin
  double program_free = 0, link_free = 0;        // ... and have their next message
  std::map<Rank, std::vector<double>> arrivals;  // not taken yet
};

}  // namespace

Ways::Ways(const net::Topology& topology)
    : trunks_(topology.switches.size()),
      rate_(topology.hosts.front().up.rate),
      delay_(topology.hosts.front().up.delay) {
  std::vector<std::vector<std::size_t>> neighbours(topology.switches.size());
  for (const net::TrunkSpec& trunk : topology.trunks) {
    neighbours[trunk.a].push_back(trunk.b);
    neighbours[trunk.b].push_back(trunk.a);
  }
  for (const net::HostSpec& host : topology.hosts) {
    switch_of_.push_back(host.switch_index);
    auto& trunks = trunks_[host.switch_index];
    if (trunks.empty()) trunks = trunks_from(host.switch_index, neighbours);
  }
}

std::size_t Ways::links_to_switch_of(std::size_t at) const {
  std::size_t most = 0;
  for (const std::size_t s : switch_of_) most = std::max(most, 1 + trunks_[s][switch_of_[at]]);
  return most;
}

std::size_t Ways::most_links() const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < hosts(); ++i) most = std::max(most, 1 + links_to_switch_of(i));
  return most;
}

double Ways::us_on_link(std::uint64_t frame_bytes) const {
  return static_cast<double>(frame_bytes) * 8e6 / static_cast<double>(rate_.bits_per_second);
}

double Ways::us(const std::vector<std::uint64_t>& payloads, std::size_t links,
                std::size_t headers) const {
  double all = 0, longest = 0;
  for (const std::uint64_t payload : payloads) {
    const double one = us_on_link((payload + 3) / 4 * 4 + headers);
    all += one;
    longest = std::max(longest, one);
  }
  const auto n = static_cast<double>(links);
  return all + (n - 1) * longest + n * microseconds(delay_);
}

double Ways::us_of_message(std::uint64_t bytes, std::size_t links) const {
  return us(parts_of(bytes, kFabricMtu), links, kFrameHeaders);
}

double us_of(const Exchanges& exchanges, const Ways& ways, double post_us) {
  std::vector<Player> players(exchanges.size());
  std::vector<Rank> may_go_on(exchanges.size());
  for (Rank r = 0; r < may_go_on.size(); ++r) may_go_on[r] = r;
  double end = 0;
  while (!may_go_on.empty()) {
    const Rank r = may_go_on.back();
    may_go_on.pop_back();
    Player& one = players[r];
    for (; one.next < exchanges[r].size(); ++one.next, one.has_sent = false) {
      const Exchange& exchange = exchanges[r][one.next];
      if (exchange.to && !one.has_sent) {
        one.has_sent = true;
        one.at = std::max(one.at, one.program_free);
        one.program_free = one.at + post_us;
        const double leaves = std::max(one.at, one.link_free);
        const double takes = ways.us_of_message(exchange.bytes, ways.links(r, *exchange.to));
        one.link_free = leaves + ways.us_on_link(exchange.bytes + kFrameHeaders);
        players[*exchange.to].arrivals[r].push_back(leaves + takes);
        may_go_on.push_back(*exchange.to);
      }
      if (!exchange.from) continue;
      auto& arrivals = one.arrivals[*exchange.from];
      if (arrivals.empty()) break;
      one.at = std::max(one.at, arrivals.front());
      arrivals.erase(arrivals.begin());
    }
    end = std::max(end, one.at);
  }
  return end;
}

std::size_t units_of(std::uint64_t bytes, std::uint64_t unit) {
  return parts_of(bytes, unit).size();
}

double us_of_reduction(std::uint64_t bytes, std::uint64_t unit, const Ways& ways,
                       std::size_t links_to_root) {
  return ways.us(parts_of(bytes, unit), 2 * links_to_root, kFrameHeaders + kImmediate);
}

}  // namespace cepheus::sim
