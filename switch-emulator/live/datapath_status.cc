// What a datapath tells about itself, and its captures.
#include <filesystem>
#include <system_error>

#include "switch-emulator/live/datapath.h"

namespace cepheus::live {
namespace {

using NamedCounters = std::vector<std::pair<std::string, std::uint64_t>>;

void put(NamedCounters& counters, std::string_view name, std::uint64_t value) {
  if (value != 0) counters.emplace_back(name, value);
}

template <typename CounterType, typename Get>
void put_all(NamedCounters& counters, Get get) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(CounterType::kCount); ++c) {
    put(counters, name(static_cast<CounterType>(c)), get(static_cast<CounterType>(c)));
  }
}

void put_drops(NamedCounters& counters, const LinkSideDrops& drops) {
  put(counters, "drop_bad_icrc", drops.bad_icrc);
  put(counters, "drop_damaged", drops.corrupt);
  put(counters, "drop_delay_line_full", drops.delay_line_full);
  put(counters, "drop_link_no_slot", drops.no_slot);
  put(counters, "drop_link_share", drops.share_used_up);
}

}  // namespace

std::vector<SwitchStatus> Datapath::status() const {
  std::vector<SwitchStatus> all;
  for (const SwitchState& state : switches_) {
    const net::SwitchConfig& config = state.engine->config();
    const fabric::Counters& counters = state.engine->counters();
    SwitchStatus status;
    status.name = config.name;
    status.groups = state.engine->groups();
    status.tombstones = state.engine->tombstone_count();
    put_all<fabric::Counter>(status.counters, [&](fabric::Counter c) { return counters[c]; });
    for (std::size_t p = 0; p < config.ports.size(); ++p) {
      const Port& port = ports_[state.first_port + p];
      PortStatus entry;
      entry.id = port.id;
      entry.name = config.ports[p].name;
      entry.kind = port.end.kind;
      entry.link = links_[port.out].link.config();
      entry.in_loss = links_[port.in].link.config().loss;
      entry.in_up = links_[port.in].link.is_up();
      entry.out_up = links_[port.out].link.is_up();
      entry.in = links_[port.in].link.counters();
      entry.out = links_[port.out].link.counters();
      entry.rx_frames = port.rx.frames;
      entry.rx_bytes = port.rx.bytes;
      entry.rx_payload_bytes = port.rx.payload_bytes;
      entry.tx_frames = port.tx.frames;
      entry.tx_bytes = port.tx.bytes;
      entry.tx_payload_bytes = port.tx.payload_bytes;
      entry.attached = true;
      put_all<fabric::Counter>(entry.counters,
                               [&](fabric::Counter c) { return counters.of(port.id, c); });
      put_drops(entry.counters, port.drops);
      if (port.end.kind == net::PortKind::kHost) {
        const Host& host = hosts_[port.end.host];
        const fabric::AccessPort& client = *host.client;
        entry.address = config.ports[p].host;
        entry.attached = client.is_open();
        if (host.shared != nullptr) entry.client_pid = host.shared->client().pid;
        entry.dropped_egress_full = client.counters()[fabric::PortCounter::kDropEgressFull];
        put_all<fabric::PortCounter>(entry.counters,
                                     [&](fabric::PortCounter c) { return client.counters()[c]; });
      }
      status.ports.push_back(std::move(entry));
    }
    all.push_back(std::move(status));
  }
  return all;
}

std::vector<Datapath::Cable> Datapath::cables() const {
  std::vector<Cable> all;
  for (const Host& host : hosts_) {
    const SwitchState& at = switches_[ports_[host.port].of_switch];
    const std::string& name = host.identity.name;
    all.push_back({name, at.engine->config().name, name, host.uplink, host.downlink});
  }
  for (const Port& port : ports_) {
    if (port.end.kind != net::PortKind::kSwitch) continue;
    const net::SwitchConfig& near = switches_[port.of_switch].engine->config();
    const net::SwitchConfig& far = switches_[port.end.peer_switch].engine->config();
    const std::string name = near.name + "-" + near.ports[port.id.value()].name;
    all.push_back({near.name, far.name, name, port.out, port.in});
  }
  return all;
}

wire::Result<void> Datapath::capture(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return wire::fail(wire::ErrorCode::kInvalid,
                      "can't make the capture directory " + directory + ": " + error.message());
  }
  for (Port& port : ports_) {
    const net::SwitchConfig& config = switches_[port.of_switch].engine->config();
    const std::string& peer = config.ports[port.id.value()].name;
    const bool is_host = port.end.kind == net::PortKind::kHost;
    const std::string file = is_host ? peer : config.name + "-" + peer;
    auto tap = PcapTap::create(directory + "/" + file + ".pcap");
    if (!tap) return tl::unexpected(tap.error());
    port.tap = std::move(*tap);
  }
  return {};
}

void Datapath::flush_captures() {
  for (Port& port : ports_) {
    if (port.tap != nullptr) port.tap->flush();
  }
}

}  // namespace cepheus::live
