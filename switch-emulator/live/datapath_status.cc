// What a datapath tells about itself, and its captures.
#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "switch-emulator/live/datapath.h"
#include "switch-emulator/live/link_counters.h"

namespace cepheus::live {

// Counters as they lie in memory: their names can wait.
template <typename CounterType>
struct CounterReading {
  std::array<std::uint64_t, static_cast<std::size_t>(CounterType::kCount)> values{};

  template <typename Get>
  void take(Get get) {
    for (std::size_t c = 0; c < values.size(); ++c) values[c] = get(static_cast<CounterType>(c));
  }
};

namespace {

// What one slice copies: some ten microseconds' worth.
constexpr std::size_t kPortsAtOnce = 16;
constexpr std::size_t kPathsAtOnce = 128;
constexpr std::size_t kGroupAsPaths = 32;  // what a group costs whatever its paths

void put(NamedCounters& counters, std::string_view name, std::uint64_t value) {
  if (value != 0) counters.emplace_back(name, value);
}

template <typename CounterType>
void put_all(NamedCounters& counters, const CounterReading<CounterType>& reading) {
  for (std::size_t c = 0; c < reading.values.size(); ++c) {
    put(counters, name(static_cast<CounterType>(c)), reading.values[c]);
  }
}

template <typename Counts, std::size_t kFields>
void put_fields(NamedCounters& counters, const CountedField<Counts> (&fields)[kFields],
                const Counts& counts) {
  for (const auto& field : fields) put(counters, field.text.name, counts.*field.value);
}

}  // namespace

struct Datapath::PortReading {
  PortStatus status;  // without names
  CounterReading<fabric::Counter> engine;
  LinkSideDrops drops;
  QueueReading queue;
  CounterReading<fabric::PortCounter> access;
};

void Datapath::read_port(const Port& port, PortReading& reading) const {
  const SwitchState& state = switches_[port.of_switch];
  const fabric::Counters& counters = state.engine->counters();
  PortStatus& entry = reading.status;
  entry.id = port.id;
  entry.kind = port.end.kind;
  entry.link = links_[port.out].link.config();
  entry.in_loss = links_[port.in].link.config().loss;
  entry.in_up = links_[port.in].link.is_up();
  entry.out_up = links_[port.out].link.is_up();
  entry.dark =
      port.is_up && !state.engine->is_up(port.id) && port.end.kind == net::PortKind::kSwitch;
  entry.in = links_[port.in].link.counters();
  entry.out = links_[port.out].link.counters();
  entry.rx_frames = port.rx.frames;
  entry.rx_bytes = port.rx.bytes;
  entry.rx_payload_bytes = port.rx.payload_bytes;
  entry.tx_frames = port.tx.frames;
  entry.tx_bytes = port.tx.bytes;
  entry.tx_payload_bytes = port.tx.payload_bytes;
  entry.attached = true;
  reading.drops = port.drops;
  reading.queue = read_queue(port);
  reading.engine.take([&](fabric::Counter c) { return counters.of(port.id, c); });
  if (port.end.kind != net::PortKind::kHost) return;
  const Host& host = hosts_[port.end.host];
  const fabric::AccessPort& client = *host.client;
  entry.address = state.engine->config().ports[port.id.value()].host;
  entry.attached = client.is_open();
  if (host.shared != nullptr) entry.client_pid = host.shared->client().pid;
  entry.dropped_egress_full = client.counters()[fabric::PortCounter::kDropEgressFull];
  reading.access.take([&](fabric::PortCounter c) { return client.counters()[c]; });
}

std::vector<PortStatus> Datapath::status_of_ports(const SwitchState& state,
                                                  const Slice& slice) const {
  const auto& names = state.engine->config().ports;
  std::vector<PortReading> readings(names.size());
  for (std::size_t first = 0; first < readings.size(); first += kPortsAtOnce) {
    const std::size_t end = std::min(first + kPortsAtOnce, readings.size());
    slice([&] {
      for (std::size_t p = first; p < end; ++p) {
        read_port(ports_[state.first_port + p], readings[p]);
      }
    });
  }
  std::vector<PortStatus> ports;
  ports.reserve(readings.size());
  for (std::size_t p = 0; p < readings.size(); ++p) {
    PortStatus& entry = ports.emplace_back(std::move(readings[p].status));
    entry.name = names[p].name;
    put_all(entry.counters, readings[p].engine);
    put_fields(entry.counters, kLinkSideDrops, readings[p].drops);
    put_fields(entry.counters, kQueueReadings, readings[p].queue);
    put_all(entry.counters, readings[p].access);
  }
  return ports;
}

std::vector<fabric::GroupView> Datapath::status_of_groups(const SwitchState& state,
                                                          const Slice& slice) const {
  std::vector<wire::McstId> ids;
  std::vector<fabric::GroupView> groups;
  slice([&] { ids = state.engine->group_ids(); });
  for (std::size_t next = 0; next < ids.size();) {
    slice([&] {
      std::size_t paths = 0;
      for (; next < ids.size() && paths < kPathsAtOnce; ++next) {
        for (fabric::GroupView& view : state.engine->groups(ids[next])) {
          paths += kGroupAsPaths + view.paths.size();
          groups.push_back(std::move(view));
        }
      }
    });
  }
  return groups;
}

std::vector<SwitchStatus> Datapath::status(const Slice& slice) const {
  std::vector<SwitchStatus> all;
  for (const SwitchState& state : switches_) {
    SwitchStatus& status = all.emplace_back();
    CounterReading<fabric::Counter> totals;
    CounterReading<fabric::PortCounter> one_armed;  // all zero without it
    status.name = state.engine->config().name;
    status.groups = status_of_groups(state, slice);
    status.ports = status_of_ports(state, slice);
    slice([&] {
      status.sender_groups = state.engine->sender_groups();
      status.tombstones = state.engine->tombstone_count();
      totals.take([&](fabric::Counter c) { return state.engine->counters()[c]; });
      if (one_armed_ == nullptr) return;
      one_armed.take([&](fabric::PortCounter c) { return one_armed_->counters()[c]; });
    });
    put_all(status.counters, totals);
    put_all(status.counters, one_armed);
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
