#include "switch-emulator/live/metrics.h"

#include <algorithm>
#include <charconv>

#include "switch-emulator/engine/counters.h"
#include "switch-emulator/live/link_counters.h"
#include "switch-emulator/live/printable.h"
#include "switch-emulator/ports/access_port.h"

namespace cepheus::live {
namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Within quotes: a label's value.
std::string in_quotes(std::string_view value) {
  std::string out = "\"";
  for (const char c : printable(std::string(value))) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string number(std::uint64_t n) { return std::to_string(n); }
std::string number(double n) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, n);
  return std::string(text, end.ptr);
}

// Families one after the other, with all their samples together, as the format wants it.
class Page {
 public:
  explicit Page(std::size_t max_samples) : max_(max_samples) {}

  // Mentioned though it may have no samples: what can be asked for is to be seen.
  void family(std::string name, const char* type, std::string_view help) {
    name_ = std::move(name);
    text_ += "# HELP " + name_ + " ";
    for (const char c : help) text_ += c == '\\' ? std::string("\\\\") : std::string(1, c);
    text_ += "\n# TYPE " + name_ + " " + type + "\n";
  }
  template <typename Number>
  void sample(Labels labels, Number value) {
    if (samples_ == max_) {
      ++left_out_;
      return;
    }
    ++samples_;
    text_ += name_;
    char before = '{';
    for (const auto& [name, content] : labels) {
      (text_ += before).append(name).append("=").append(in_quotes(content));
      before = ',';
    }
    if (labels.size() != 0) text_ += '}';
    text_ += " " + number(value) + "\n";
  }
  std::string finish() {
    ++max_;
    family("cepheus_metrics_left_out", "gauge", "samples that this page has no room for");
    sample({}, std::uint64_t{left_out_});
    return std::move(text_);
  }

 private:
  std::size_t max_, samples_ = 0, left_out_ = 0;
  std::string text_, name_;
};

// What a table's line counts. "... their bytes" goes on with the line before.
class Help {
 public:
  std::string operator()(std::string_view says) {
    constexpr std::string_view kMore = "... ";
    if (says.starts_with(kMore)) return whole_ + ", " + std::string(says.substr(kMore.size()));
    whole_ = says;
    return whole_;
  }

 private:
  std::string whole_;
};

std::uint64_t value_of(const NamedCounters& counters, std::string_view name) {
  const auto found =
      std::find_if(counters.begin(), counters.end(), [&](auto& c) { return c.first == name; });
  return found == counters.end() ? 0 : found->second;
}

template <typename F>
void for_each_port(const FabricStatus& status, F&& f) {
  for (const SwitchStatus& one : status.switches) {
    for (const PortStatus& port : one.ports) f(one, port);
  }
}

void put_switches(Page& page, const FabricStatus& status) {
  Help help;
  for (const wire::CounterText& text : fabric::kCounterTexts) {
    const std::string name(text.name);
    page.family("cepheus_switch_" + name + "_total", "counter", help(text.says));
    for (const SwitchStatus& one : status.switches) {
      page.sample({{"switch", one.name}}, value_of(one.counters, name));
    }
  }
  page.family("cepheus_switch_groups", "gauge", "tables of groups, pending ones included");
  for (const SwitchStatus& one : status.switches) {
    page.sample({{"switch", one.name}}, std::uint64_t{one.groups.size()});
  }
  page.family("cepheus_switch_tombstones", "gauge", "identifiers that rest after unregistering");
  for (const SwitchStatus& one : status.switches) {
    page.sample({{"switch", one.name}}, std::uint64_t{one.tombstones});
  }
}

void put_port_counter(Page& page, const FabricStatus& status, std::string_view name,
                      const std::string& help) {
  page.family("cepheus_port_" + std::string(name) + "_total", "counter", help);
  for_each_port(status, [&](const SwitchStatus& one, const PortStatus& port) {
    const std::uint64_t value = value_of(port.counters, name);
    if (value != 0) page.sample({{"switch", one.name}, {"port", port.name}}, value);
  });
}

// A family with a sample for each way of each port.
template <typename In, typename Out>
void put_ways(Page& page, const FabricStatus& status, const std::string& name, const char* type,
              std::string_view help, In&& in, Out&& out) {
  page.family(name, type, help);
  for_each_port(status, [&](const SwitchStatus& one, const PortStatus& port) {
    page.sample({{"switch", one.name}, {"port", port.name}, {"way", "in"}}, in(port));
    page.sample({{"switch", one.name}, {"port", port.name}, {"way", "out"}}, out(port));
  });
}

void put_ports(Page& page, const FabricStatus& status) {
  page.family("cepheus_port_attached", "gauge", "1: a client holds the host's port");
  for_each_port(status, [&](const SwitchStatus& one, const PortStatus& port) {
    if (port.kind != net::PortKind::kHost) return;
    page.sample({{"switch", one.name}, {"port", port.name}}, std::uint64_t{port.attached});
  });
  page.family("cepheus_port_dark", "gauge", "1: a trunk that nothing comes from");
  for_each_port(status, [&](const SwitchStatus& one, const PortStatus& port) {
    if (port.kind == net::PortKind::kHost) return;
    page.sample({{"switch", one.name}, {"port", port.name}}, std::uint64_t{port.dark});
  });
  using Port = const PortStatus&;
  put_ways(
      page, status, "cepheus_link_up", "gauge", "0: the link is cut",
      [](Port p) { return std::uint64_t{p.in_up}; },
      [](Port p) { return std::uint64_t{p.out_up}; });
  put_ways(
      page, status, "cepheus_port_frames_total", "counter", "frames, in to the switch or out of it",
      [](Port p) { return p.rx_frames; }, [](Port p) { return p.tx_frames; });
  put_ways(
      page, status, "cepheus_port_frame_bytes_total", "counter", "bytes of frames",
      [](Port p) { return p.rx_bytes; }, [](Port p) { return p.tx_bytes; });
  put_ways(
      page, status, "cepheus_port_payload_bytes_total", "counter",
      "bytes of RoCE payload, repeats included", [](Port p) { return p.rx_payload_bytes; },
      [](Port p) { return p.tx_payload_bytes; });
  for (const auto& field : kLinkCounters) {
    put_ways(
        page, status, "cepheus_" + std::string(field.text.name) + "_total", "counter",
        field.text.says, [&](Port p) { return p.in.*field.value; },
        [&](Port p) { return p.out.*field.value; });
  }
  Help help;
  for (const wire::CounterText& text : fabric::kCounterTexts) {
    put_port_counter(page, status, text.name, help(text.says));
  }
  for (const wire::CounterText& text : fabric::kPortCounterTexts) {
    put_port_counter(page, status, text.name, help(text.says));
  }
  for (const auto& field : kLinkSideDrops) {
    put_port_counter(page, status, field.text.name, help(field.text.says));
  }
}

template <typename Value>
void put_group_family(Page& page, const FabricStatus& status, const char* name, const char* type,
                      const char* help, Value&& value) {
  page.family(name, type, help);
  for (const SwitchStatus& one : status.switches) {
    for (const fabric::GroupView& group : one.groups) {
      const std::string id = group.id.to_string(), epoch = std::to_string(group.epoch);
      page.sample({{"switch", one.name}, {"group", id}, {"epoch", epoch}},
                  std::uint64_t{value(group)});
    }
  }
}

void put_groups(Page& page, const FabricStatus& status) {
  using Group = const fabric::GroupView&;
  put_group_family(page, status, "cepheus_group_active", "gauge",
                   "1: data may flow; 0: registration is under way",
                   [](Group g) { return g.active; });
  put_group_family(page, status, "cepheus_group_paths", "gauge",
                   "ports of the switch that the group goes over",
                   [](Group g) { return g.paths.size(); });
  put_group_family(page, status, "cepheus_group_lag_packets", "gauge",
                   "packets that the path furthest behind has not acknowledged", [](Group g) {
                     std::uint32_t lag = 0;
                     for (const fabric::PathView& path : g.paths) lag = std::max(lag, path.lag);
                     return lag;
                   });
  put_group_family(page, status, "cepheus_group_table_bytes", "gauge",
                   "what a hardware table would hold of it", [](Group g) { return g.table_bytes; });
  put_group_family(page, status, "cepheus_group_data_packets_total", "counter",
                   "data packets that came in", [](Group g) { return g.data_packets; });
  put_group_family(page, status, "cepheus_group_data_bytes_total", "counter",
                   "bytes of data that came in", [](Group g) { return g.data_bytes; });
  put_group_family(page, status, "cepheus_group_copies_total", "counter", "copies sent",
                   [](Group g) { return g.copies; });
}

}  // namespace

std::string to_metrics(const FabricStatus& status, std::size_t max_samples) {
  Page page(max_samples);
  page.family("cepheus_up", "gauge", "1: the fabric answers");
  page.sample({}, std::uint64_t{1});
  page.family("cepheus_uptime_seconds", "gauge", "since the fabric began to serve");
  page.sample({}, status.uptime_seconds);
  page.family("cepheus_mtu_bytes", "gauge", "largest payload of a packet");
  page.sample({}, std::uint64_t{status.mtu});
  page.family("cepheus_refused_users_total", "counter",
              "connections of users who may not do what they asked for");
  page.sample({}, status.refused_users);
  put_switches(page, status);
  put_ports(page, status);
  put_groups(page, status);
  return page.finish();
}

std::string metrics_without_fabric(const std::string& reason) {
  Page page(kMaxSamples);
  page.family("cepheus_up", "gauge", "1: the fabric answers");
  page.sample({}, std::uint64_t{0});
  return "# " + printable(reason) + "\n" + page.finish();
}

}  // namespace cepheus::live
