// A slice copies up to kPortsAtOnce ports, or groups up to a cost of kPathsAtOnce paths. So each
// port or group is consistent in itself, while the packets between two slices appear in the later
// one only. A group that ends between slices is left out. Names are constant and copied outside.
#include "switch-emulator/live/datapath/reporting.h"

#include <algorithm>
#include <chrono>

#include "wire/clock.h"

namespace cepheus::live {
namespace {

// Objects copied in one slice: about ten microseconds.
constexpr std::size_t kPortsAtOnce = 16;
constexpr std::size_t kPathsAtOnce = 128;
constexpr std::size_t kGroupAsPaths = 32;  // cost of a group apart from its paths

// `get` returns a counter's value.
template <typename Counter, typename Get>
void copy(wire::CounterValues<Counter>& values, Get get) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(Counter::kCount); ++c) {
    values[static_cast<Counter>(c)] = get(static_cast<Counter>(c));
  }
}

// All but the name.
void read_port(const fabric::Switch& engine, wire::PortId id, const Reporting::PortSource& source,
               PortStatus& entry) {
  const fabric::PortConfig& config = engine.config().ports[id.value()];
  entry.id = id;
  entry.kind = config.kind;
  entry.link = source.out->config();
  entry.in_loss = source.in->config().loss;
  entry.in_up = source.in->is_up();
  entry.out_up = source.out->is_up();
  entry.in = source.in->counters();
  entry.out = source.out->counters();
  entry.rx = *source.rx;
  entry.tx = *source.tx;
  entry.drops = *source.drops;
  if (source.queue) entry.queue = source.queue();
  copy(entry.engine, [&](fabric::Counter c) { return engine.counters().of(id, c); });
  if (source.access == nullptr) {
    entry.attached = true;
    entry.dark = entry.in_up && entry.out_up && !engine.is_up(id);
    return;
  }
  entry.address = config.host;
  entry.attached = source.access->is_open();
  entry.access = source.access->counters();
  if (source.client_pid) entry.client_pid = source.client_pid();
}

std::vector<PortStatus> read_ports(const Reporting::SwitchSource& source,
                                   const Reporting::Slice& slice) {
  const auto& names = source.engine->config().ports;
  std::vector<PortStatus> ports(source.ports.size());
  for (std::size_t first = 0; first < ports.size(); first += kPortsAtOnce) {
    const std::size_t end = std::min(first + kPortsAtOnce, ports.size());
    slice([&] {
      for (std::size_t p = first; p < end; ++p) {
        const wire::PortId id(static_cast<std::uint16_t>(p));
        read_port(*source.engine, id, source.ports[p], ports[p]);
      }
    });
  }
  for (std::size_t p = 0; p < ports.size(); ++p) ports[p].name = names[p].name;
  return ports;
}

std::vector<fabric::GroupView> read_groups(const fabric::Switch& engine,
                                           const Reporting::Slice& slice) {
  std::vector<wire::McstId> ids;
  std::vector<fabric::GroupView> groups;
  slice([&] { ids = engine.group_ids(); });
  for (std::size_t next = 0; next < ids.size();) {
    slice([&] {
      std::size_t paths = 0;
      for (; next < ids.size() && paths < kPathsAtOnce; ++next) {
        auto view = engine.group(ids[next]);
        if (!view) continue;
        paths += kGroupAsPaths + view->paths.size();
        groups.push_back(std::move(*view));
      }
    });
  }
  return groups;
}

}  // namespace

std::vector<SwitchStatus> Reporting::status(const Slice& slice) const {
  std::vector<SwitchStatus> all;
  for (const SwitchSource& source : switches_) {
    const fabric::Switch& engine = *source.engine;
    SwitchStatus& status = all.emplace_back();
    status.name = engine.config().name;
    status.groups = read_groups(engine, slice);
    status.ports = read_ports(source, slice);
    slice([&] {
      status.sender_groups = engine.sender_groups();
      status.tombstones = engine.tombstone_count();
      copy(status.engine, [&](fabric::Counter c) { return engine.counters()[c]; });
      if (source.one_armed != nullptr) status.one_armed = *source.one_armed;
    });
  }
  return all;
}

FabricStatus Reporting::timed_status(const Slice& slice) const {
  FabricStatus all;
  all.now = wire::monotonic_now();
  all.utc = std::chrono::system_clock::now().time_since_epoch();
  all.switches = status(slice);
  return all;
}

}  // namespace cepheus::live
