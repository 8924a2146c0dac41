// On equal links, n packets over m links take the time of all on one link, and m - 1 times that of
// the longest. The exchanges are played through: a rank goes on whenever a message for it has been
// sent.
#include "fabric-sim/experiments/closed_forms.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "fabric-sim/experiments/testbed.h"

namespace cepheus::sim {
namespace {

constexpr std::size_t kFrameHeaders = 58;   // Ethernet, IPv4, UDP, BTH, ICRC
constexpr std::size_t kImmediate = 4;       // more, in packets of reductions
constexpr std::uint64_t kFabricMtu = 4096;  // of the experiments' fabrics

// Packets of a message, which follow each other: each has `most` bytes of payload, the last one the
// rest.
class Train {
 public:
  Train(std::uint64_t bytes, std::uint64_t most, std::size_t headers, const Ways& ways)
      : delay_us_(microseconds(ways.delay())) {
    const auto us_of_packet = [&](std::uint64_t payload) {
      const std::uint64_t size = (payload + 3) / 4 * 4 + headers;
      return static_cast<double>(size) * 8e6 / static_cast<double>(ways.rate().bits_per_second);
    };
    const std::uint64_t full = units_of(bytes, most) - 1;
    const double last = us_of_packet(bytes - full * most);
    us_on_link_ = static_cast<double>(full) * us_of_packet(most) + last;
    longest_ = full > 0 ? us_of_packet(most) : last;
  }

  // The time during which one link transmits them.
  double us_on_link() const { return us_on_link_; }
  double us_over(std::size_t links) const {
    const auto n = static_cast<double>(links);
    return us_on_link_ + (n - 1) * longest_ + n * delay_us_;
  }

 private:
  const double delay_us_;
  double us_on_link_ = 0, longest_ = 0;
};

struct Player {
  std::size_t next = 0;
  bool has_sent = false;
  double at = 0;                                // when its next exchange may begin
  double program_free = 0, link_free = 0;       // when they can take the next message
  std::map<Rank, std::deque<double>> arrivals;  // not taken yet, by sender
};

}  // namespace

double us_of(const Exchanges& exchanges, const Ways& ways, double post_us) {
  std::vector<Player> players(exchanges.size());
  std::vector<Rank> may_go_on(exchanges.size());
  std::iota(may_go_on.begin(), may_go_on.end(), Rank{0});
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
        const Train message(exchange.bytes, kFabricMtu, kFrameHeaders, ways);
        one.link_free = leaves + message.us_on_link();
        const double arrives = leaves + message.us_over(ways.links(r, *exchange.to));
        players[*exchange.to].arrivals[r].push_back(arrives);
        may_go_on.push_back(*exchange.to);
      }
      if (!exchange.from) continue;
      auto& arrivals = one.arrivals[*exchange.from];
      if (arrivals.empty()) break;
      one.at = std::max(one.at, arrivals.front());
      arrivals.pop_front();
    }
    end = std::max(end, one.at);
  }
  return end;
}

std::uint64_t hops_of(const Exchanges& exchanges, const Ways& ways) {
  std::uint64_t hops = 0;
  for (Rank r = 0; r < exchanges.size(); ++r) {
    for (const Exchange& one : exchanges[r]) {
      if (one.to) hops += units_of(one.bytes, kFabricMtu) * ways.links(r, *one.to);
    }
  }
  return hops;
}

std::size_t units_of(std::uint64_t bytes, std::uint64_t unit) {
  return bytes == 0 ? 1 : (bytes + unit - 1) / unit;
}

double us_of_reduction(std::uint64_t bytes, std::uint64_t unit, const Ways& ways) {
  const Train result(bytes, unit, kFrameHeaders + kImmediate, ways);
  return result.us_over(2 * ways.links_to_middle());
}

}  // namespace cepheus::sim
