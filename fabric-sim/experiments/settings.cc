// A topology is compared by its file's lines, once for each direction of its links, without names,
// places and seeds. Rules and times that no file has are compared by field. Configurations of NICs
// and of DCQCN are taken apart completely, so a new field does not compile until it is handled
// here. One log exists at a time.
#include "fabric-sim/experiments/settings.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <ostream>
#include <sstream>
#include <string_view>

#include "net/units.h"
#include "nic-emulator/engine/live_defaults.h"

namespace cepheus::sim {
namespace {

SettingsLog* current_log = nullptr;

using Settings = std::set<std::string>;

template <typename T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, wire::Duration> || std::is_same_v<T, wire::BitRate>) {
    return net::to_text(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return net::number_to_text(value);
  } else {
    return std::to_string(value);
  }
}

// The lines of its file, without names, places and seeds.
void add_topology(const net::Topology& topology, Settings& all) {
  constexpr std::array<std::string_view, 5> kPlaces = {"name", "address", "switch", "between",
                                                       "seed"};
  std::istringstream lines(topology.to_toml());
  for (std::string line; std::getline(lines, line);) {
    const auto key = line.substr(0, line.find(" = "));
    if (key == line || std::ranges::find(kPlaces, key) != kPlaces.end()) continue;
    if (key == "mtu" && topology.mtu == net::Topology().mtu) continue;
    all.insert(line);
  }
}

// A file has one setting for both directions of a link, but here they may differ.
net::Topology turned(net::Topology topology) {
  for (net::HostSpec& host : topology.hosts) host.up = host.down;
  for (net::TrunkSpec& trunk : topology.trunks) trunk.ab = trunk.ba;
  return topology;
}

// What no topology file has.
void add_rules(const net::SwitchConfig& config, Settings& all) {
#define CEPHEUS_RULE(name, kind, help) \
  if (!config.rules.name) all.insert("rule " #name " = off");
#include "net/rules.def"
  const net::SwitchConfig usual;
  if (config.check_icrc != usual.check_icrc) all.insert("switch check_icrc = false");
  if (config.sender_lives != usual.sender_lives) {
    all.insert("switch sender_lives = " + net::to_text(config.sender_lives));
  }
  if (config.gate_rnr_timer != usual.gate_rnr_timer) {
    all.insert("switch gate_rnr_timer = " + text_of(config.gate_rnr_timer));
  }
}

void add_congestion(const rnic::CongestionConfig& config, Settings& all) {
  all.insert("NIC congestion = DCQCN (off)");
  const rnic::CongestionConfig usual;
  if (config.notification != usual.notification) all.insert("DCQCN notification = ce-echo");
  if (config.cnp_interval != usual.cnp_interval) {
    all.insert("DCQCN cnp_interval = " + net::to_text(config.cnp_interval));
  }
  const auto& [alpha_timer, rate_timer, byte_counter, fast_recovery, additive, hyper, hyper_grows,
               min, g, cut_interval, always_clamps] = config.reaction;
  const rnic::DcqcnParameters orig;
  const auto add = [&](const char* name, const auto& value, const auto& published) {
    if (value != published) all.insert(std::string("DCQCN ") + name + " = " + text_of(value));
  };
  add("alpha_timer", alpha_timer, orig.alpha_timer);
  add("rate_timer", rate_timer, orig.rate_timer);
  add("byte_counter", byte_counter, orig.byte_counter);
  add("fast_recovery", fast_recovery, orig.fast_recovery);
  add("additive_bps", additive, orig.additive_bps);
  add("hyper_bps", hyper, orig.hyper_bps);
  add("hyper_grows", hyper_grows, orig.hyper_grows);
  add("min_bps", min, orig.min_bps);
  add("g", g, orig.g);
  add("cut_interval", cut_interval, orig.cut_interval);
  add("always_clamps", always_clamps, orig.always_clamps);
}

// A field that NicConfig gets does not compile until it stands here.
void add_nic(const rnic::NicConfig& nic, const rnic::NicConfig& usual, Settings& all) {
  const auto& [address, mac, gateway, max_mtu, make_icrc, window_packets, cautious_window,
               ack_every, min_ack_timeout, timeout_doublings, every_nak_counts, manners,
               own_timeout_code, moves_payload, guard, max_rnr_wait, congestion, max_qps, max_srqs,
               max_regions, seed] = nic;
  const auto add = [&](const char* name, const auto& value, const auto& shipped) {
    if (value == shipped) return;
    all.insert(std::string("NIC ") + name + " = " + text_of(value) + " (" + text_of(shipped) + ")");
  };
  add("max_mtu", max_mtu, usual.max_mtu);
  add("window_packets", window_packets, usual.window_packets);
  add("cautious_window", cautious_window, usual.cautious_window);
  add("ack_every", ack_every, usual.ack_every);
  add("min_ack_timeout", min_ack_timeout, usual.min_ack_timeout);
  add("timeout_doublings", timeout_doublings, usual.timeout_doublings);
  add("every_nak_counts", every_nak_counts, usual.every_nak_counts);
  add("moves_payload", moves_payload, usual.moves_payload);
  add("max_rnr_wait", max_rnr_wait, usual.max_rnr_wait);
  add("max_qps", max_qps, usual.max_qps);
  add("max_srqs", max_srqs, usual.max_srqs);
  add("max_regions", max_regions, usual.max_regions);
  if (manners.ignores_timeout_code)
    all.insert("NIC own_timeout_code = " + text_of(own_timeout_code));
  add("manners", manners != usual.manners, false);
  if (congestion) add_congestion(*congestion, all);
}

}  // namespace

std::set<std::string> unusual_settings(const net::Topology& topology, const rnic::NicConfig& nic) {
  Settings all;
  add_topology(topology, all);
  add_topology(turned(topology), all);
  for (const net::SwitchSpec& spec : topology.switches) add_rules(spec.config, all);
  add_nic(nic, rnic::live_defaults(topology.mtu, topology.slowest_rate()), all);
  return all;
}

SettingsLog::SettingsLog() {
  assert(current_log == nullptr);
  current_log = this;
}

SettingsLog::~SettingsLog() { current_log = nullptr; }

void SettingsLog::note(const net::Topology& topology, const rnic::NicConfig& nic) {
  if (current_log != nullptr) current_log->settings_.merge(unusual_settings(topology, nic));
}

void SettingsLog::write(std::ostream& out) const {
  if (settings_.empty()) return;
  out << "\nSettings of some or all runs that are not the shipped defaults:\n";
  for (const std::string& setting : settings_) out << "  " << setting << '\n';
}

}  // namespace cepheus::sim
