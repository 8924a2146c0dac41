// Round trip: any topology that a file can express reads back as itself.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>

#include "net/topology.h"
#include "net/units.h"

namespace cepheus::net {
namespace {

using namespace std::chrono_literals;

rc::Gen<LinkConfig> any_link(std::uint32_t fabrics_mtu) {
  return rc::gen::exec([fabrics_mtu] {
    const auto probability = [] { return *rc::gen::inRange(0, 1001) / 1000.0; };
    LinkConfig link;
    link.rate.bits_per_second =
        *rc::gen::element<std::uint64_t>(0, 1, 2'500'000'000, 400'000'000'000);
    link.delay = wire::Duration(*rc::gen::inRange<std::int64_t>(0, 10'000'000'000));
    link.mtu =
        std::min(fabrics_mtu, *rc::gen::element<std::uint32_t>(0, 256, 512, 1024, 2048, 4096));
    link.queue_bytes = *rc::gen::inRange<wire::Bytes>(4096 + kFrameOverhead, 1 << 30);
    link.loss = probability();
    link.duplicate = probability();
    link.reorder = probability();
    link.reorder_by = wire::Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000));
    link.corrupt = probability();
    link.ecn.on = !link.rate.is_unlimited() && *rc::gen::arbitrary<bool>();
    link.pfc.on = !link.rate.is_unlimited() && *rc::gen::arbitrary<bool>();
    if (link.pfc.on) link.pfc.headroom = *rc::gen::inRange<wire::Bytes>(0, 100'000);
    if (!link.ecn.on) return link;
    link.ecn.kmin = *rc::gen::inRange<wire::Bytes>(1, 2000);
    link.ecn.kmax = *rc::gen::inRange<wire::Bytes>(2000, 4000);
    link.ecn.pmax = probability();
    return link;
  });
}

rc::Gen<SwitchConfig> any_switch_config() {
  return rc::gen::exec([] {
    const auto between = [](wire::Duration least, wire::Duration most) {
      return wire::Duration(*rc::gen::inRange(least.count(), most.count()));
    };
    SwitchConfig config;
    config.max_groups = *rc::gen::inRange<std::uint32_t>(0, 5000);
    config.max_groups_per_host = *rc::gen::inRange<std::uint32_t>(1, 5000);
    config.register_rate = *rc::gen::inRange<std::uint32_t>(1, 5000);
    config.probe_rate = *rc::gen::inRange<std::uint32_t>(0, 5000);
    config.max_paths = *rc::gen::inRange<std::uint32_t>(2, 1000);
    config.reduction_memory = *rc::gen::inRange<wire::Bytes>(0, 1 << 30);
    config.data_window = *rc::gen::inRange<std::uint32_t>(1, 1 << 22);
    config.max_held = *rc::gen::inRange<std::uint32_t>(0, 1000);
    config.age = between(7min, 1000h);
    config.pending_age = between(4s, 1min);
    config.orphan_age = between(1201ms, 4s);
    config.gate_age = between(6201ms, 1min);
    config.rest = between(201ms, 10s);
    config.confirm_wait = between(0s, 5ms);
    config.feedback_wait = between(0s, 1s);
    config.cnp_window = between(51us, 1s);
    config.rules.source_change = *rc::gen::element(SourceChange::kRebase, SourceChange::kHostSync);
    config.rules.write_mode = *rc::gen::element(WriteMode::kRegions, WriteMode::kPerRequest,
                                                WriteMode::kSameKey, WriteMode::kNone);
    config.rules.cnp_policy =
        *rc::gen::element(CnpPolicy::kAll, CnpPolicy::kWorstPath, CnpPolicy::kTmcf);
    config.buffer.bytes = *rc::gen::element<wire::Bytes>(0, kLargestSize);
    config.buffer.share = *rc::gen::inRange(1, 1000) / 1000.0;
    config.buffer.reserve = *rc::gen::inRange<wire::Bytes>(0, 10'000);
    return config;
  });
}

// Adds switches that trunks join into a tree.
void add_switches(Topology& t, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    SwitchSpec spec;
    spec.config = *any_switch_config();
    spec.name = spec.config.name = "s" + std::to_string(i);
    t.switches.push_back(spec);
    if (i == 0) continue;
    TrunkSpec trunk;
    trunk.a = *rc::gen::inRange<std::size_t>(0, i);
    trunk.b = i;
    trunk.ab = trunk.ba = *any_link(t.mtu);
    t.trunks.push_back(trunk);
  }
}

HostSpec any_host(const Topology& t, std::size_t i) {
  HostSpec host;
  host.name = "h" + std::to_string(i);
  host.address = Ipv4(Ipv4(10, 0, 0, 1).value() + static_cast<std::uint32_t>(i) * 77);
  host.switch_index = *rc::gen::inRange<std::size_t>(0, t.switches.size());
  if (*rc::gen::arbitrary<bool>()) host.interface = "p" + std::to_string(i);
  if (!t.one_armed.empty() && host.interface.empty()) {
    host.any_mac = *rc::gen::arbitrary<bool>();
    if (!host.any_mac) host.mac = wire::mac_for(host.address);
  }
  host.up = host.down = *any_link(t.mtu);
  return host;
}

rc::Gen<Topology> any_topology() {
  return rc::gen::exec([] {
    Topology t;
    t.mtu = *rc::gen::element<std::uint32_t>(256, 512, 1024, 2048, 4096);
    t.icrc_always = *rc::gen::arbitrary<bool>();
    t.seed = *rc::gen::inRange<std::uint64_t>(0, INT64_MAX);
    t.mcst_pool = {Ipv4(198, 18, 0, 0), *rc::gen::inRange(15, 31)};
    t.hello = wire::Duration(*rc::gen::inRange<std::int64_t>(100'000, 1'000'000'000));
    t.mrp_port = *rc::gen::inRange<std::uint16_t>(5000, 60000);
    const auto switches = *rc::gen::inRange<std::size_t>(1, 6);
    if (switches == 1 && *rc::gen::arbitrary<bool>()) t.one_armed = "arm0";
    if (!t.one_armed.empty() && *rc::gen::arbitrary<bool>()) t.one_armed_dpdk = "net_x,iface=arm0";
    add_switches(t, switches);
    const auto hosts = *rc::gen::inRange<std::size_t>(1, 8);
    for (std::size_t i = 0; i < hosts; ++i) {
      t.hosts.push_back(any_host(t, i));
      const auto method = [&](const HostSpec& h) -> SourceChange& {
        return t.switches[h.switch_index].config.rules.source_change;
      };
      method(t.hosts[i]) = method(t.hosts[0]);  // switches without hosts may have another
    }
    t.assign_link_seeds();
    return t;
  });
}

void expect_equal(const LinkConfig& a, const LinkConfig& b) {
  RC_ASSERT(a.rate.bits_per_second == b.rate.bits_per_second);
  RC_ASSERT(a.delay == b.delay);
  RC_ASSERT(a.mtu == b.mtu);
  RC_ASSERT(a.queue_bytes == b.queue_bytes);
  RC_ASSERT(a.loss == b.loss);
  RC_ASSERT(a.duplicate == b.duplicate);
  RC_ASSERT(a.reorder == b.reorder);
  RC_ASSERT(a.reorder_by == b.reorder_by);
  RC_ASSERT(a.corrupt == b.corrupt);
  RC_ASSERT(a.ecn == b.ecn);
  RC_ASSERT(a.pfc == b.pfc);
  RC_ASSERT(a.seed == b.seed);
}

void expect_equal(const SwitchConfig& a, const SwitchConfig& b) {
  RC_ASSERT(a.name == b.name);
  RC_ASSERT(a.max_groups == b.max_groups);
  RC_ASSERT(a.max_groups_per_host == b.max_groups_per_host);
  RC_ASSERT(a.register_rate == b.register_rate);
  RC_ASSERT(a.probe_rate == b.probe_rate);
  RC_ASSERT(a.max_paths == b.max_paths);
  RC_ASSERT(a.reduction_memory == b.reduction_memory);
  RC_ASSERT(a.data_window == b.data_window);
  RC_ASSERT(a.max_held == b.max_held);
  RC_ASSERT(a.age == b.age);
  RC_ASSERT(a.pending_age == b.pending_age);
  RC_ASSERT(a.orphan_age == b.orphan_age);
  RC_ASSERT(a.gate_age == b.gate_age);
  RC_ASSERT(a.feedback_wait == b.feedback_wait);
  RC_ASSERT(a.rest == b.rest);
  RC_ASSERT(a.confirm_wait == b.confirm_wait);
  RC_ASSERT(a.rules.source_change == b.rules.source_change);
  RC_ASSERT(a.rules.write_mode == b.rules.write_mode);
  RC_ASSERT(a.rules.cnp_policy == b.rules.cnp_policy);
  RC_ASSERT(a.cnp_window == b.cnp_window);
  RC_ASSERT(a.buffer == b.buffer);
}

RC_GTEST_PROP(TopologyFile, ReadsBackWhatItWrites, ()) {
  const Topology t = *any_topology();
  const auto back = Topology::from_toml(t.to_toml());
  if (!back) RC_FAIL(back.error().text + "\n" + t.to_toml());
  RC_ASSERT(back->mtu == t.mtu);
  RC_ASSERT(back->icrc_always == t.icrc_always);
  RC_ASSERT(back->seed == t.seed);
  RC_ASSERT(back->mcst_pool.base == t.mcst_pool.base);
  RC_ASSERT(back->mcst_pool.length == t.mcst_pool.length);
  RC_ASSERT(back->mrp_port == t.mrp_port);
  RC_ASSERT(back->hello == t.hello);
  RC_ASSERT(back->one_armed == t.one_armed);
  RC_ASSERT(back->one_armed_dpdk == t.one_armed_dpdk);
  RC_ASSERT(back->switches.size() == t.switches.size());
  for (std::size_t i = 0; i < t.switches.size(); ++i) {
    RC_ASSERT(back->switches[i].name == t.switches[i].name);
    expect_equal(back->switches[i].config, t.switches[i].config);
  }
  RC_ASSERT(back->hosts.size() == t.hosts.size());
  for (std::size_t i = 0; i < t.hosts.size(); ++i) {
    RC_ASSERT(back->hosts[i].name == t.hosts[i].name);
    RC_ASSERT(back->hosts[i].address == t.hosts[i].address);
    RC_ASSERT(back->hosts[i].switch_index == t.hosts[i].switch_index);
    RC_ASSERT(back->hosts[i].interface == t.hosts[i].interface);
    RC_ASSERT(back->hosts[i].mac == t.hosts[i].mac);
    RC_ASSERT(back->hosts[i].any_mac == t.hosts[i].any_mac);
    expect_equal(back->hosts[i].up, t.hosts[i].up);
    expect_equal(back->hosts[i].down, t.hosts[i].down);
  }
  RC_ASSERT(back->trunks.size() == t.trunks.size());
  for (std::size_t i = 0; i < t.trunks.size(); ++i) {
    RC_ASSERT(back->trunks[i].a == t.trunks[i].a);
    RC_ASSERT(back->trunks[i].b == t.trunks[i].b);
    expect_equal(back->trunks[i].ab, t.trunks[i].ab);
    expect_equal(back->trunks[i].ba, t.trunks[i].ba);
  }
}

}  // namespace
}  // namespace cepheus::net
