// Headroom is the file's, or by rate and delay (headroom_for), or one frame if the rule
// pause_headroom is off. A buffer without a size gets HPCC's 32 MiB for 100 Gb/s in proportion to
// the fastest link, and at least twice the least. Whether a given size suffices is checked in
// topology_check.cc.
#include "net/buffer_plan.h"

#include <algorithm>

#include "net/pfc.h"

namespace cepheus::net {
namespace {

// For a fastest link of 100 Gb/s, as in HPCC's simulations; others in proportion.
constexpr wire::Bytes kUsualBuffer = 32 << 20;
constexpr wire::BitRate kAtRate{100'000'000'000};
constexpr wire::Bytes kFewFrames = 16;

void add_port(BufferPlan& plan, const LinkConfig& in, const LinkConfig& out, const Topology& t,
              const Rules& rules) {
  const wire::Bytes frame = largest_frame(t.mtu);
  wire::Bytes headroom = 0;
  if (in.pfc.on) {
    headroom = in.pfc.headroom != 0   ? in.pfc.headroom
               : rules.pause_headroom ? headroom_for(in, out, frame)
                                      : frame;
    if (plan.least == 0) plan.least = kFewFrames * frame;
    plan.least += headroom + plan.config.reserve;
  }
  plan.headroom.push_back(headroom);
  plan.repeat.push_back(headroom == 0 ? wire::Duration{0} : pause_repeat(in.rate));
}

void add_rate(wire::BitRate& fastest, const LinkConfig& link) {
  fastest.bits_per_second = std::max(fastest.bits_per_second, link.rate.bits_per_second);
}

}  // namespace

std::vector<BufferPlan> buffer_plans(const Topology& t) {
  const auto is_lossless = [](const auto& link) { return link.pfc.on; };
  const bool any = std::ranges::any_of(t.hosts, is_lossless, &HostSpec::up) ||
                   std::ranges::any_of(t.trunks, is_lossless, &TrunkSpec::ab) ||
                   std::ranges::any_of(t.trunks, is_lossless, &TrunkSpec::ba);
  if (!any) return {};
  std::vector<BufferPlan> plans(t.switches.size());
  std::vector<wire::BitRate> fastest(t.switches.size(), wire::BitRate{1});
  for (std::size_t s = 0; s < plans.size(); ++s) plans[s].config = t.switches[s].config.buffer;
  for (const HostSpec& host : t.hosts) {
    const Rules& rules = t.switches[host.switch_index].config.rules;
    add_port(plans[host.switch_index], host.up, host.down, t, rules);
    add_rate(fastest[host.switch_index], host.up);
  }
  for (const TrunkSpec& trunk : t.trunks) {
    add_port(plans[trunk.a], trunk.ba, trunk.ab, t, t.switches[trunk.a].config.rules);
    add_port(plans[trunk.b], trunk.ab, trunk.ba, t, t.switches[trunk.b].config.rules);
    add_rate(fastest[trunk.a], trunk.ba);
    add_rate(fastest[trunk.b], trunk.ab);
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    if (plans[s].config.bytes != 0) continue;
    const double rate = static_cast<double>(fastest[s].bits_per_second);
    const auto usual = static_cast<wire::Bytes>(static_cast<double>(kUsualBuffer) * rate /
                                                static_cast<double>(kAtRate.bits_per_second));
    plans[s].config.bytes = std::max(usual, 2 * plans[s].least);
  }
  return plans;
}

}  // namespace cepheus::net
