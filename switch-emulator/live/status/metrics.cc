// A page is written in one pass, family by family: fabric, switches, states, ports, links, groups.
// After the limit samples are only counted, so groups are omitted first. A family appears even
// without samples. Names from outside pass printable(), and quotes and backslashes are escaped.
#include "switch-emulator/live/status/metrics.h"

#include <charconv>
#include <utility>

#include "switch-emulator/live/status/printable.h"
#include "switch-emulator/live/status/readings.h"

namespace cepheus::live {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// A label's value within quotes.
std::string in_quotes(const std::string& value) {
  std::string out = "\"";
  for (const char c : printable(value)) {
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

// Families one after the other, each with all its samples together, as the format requires.
class Page {
 public:
  explicit Page(std::size_t max_samples) : max_(max_samples) {}

  // A family appears even without samples, so that users can find it.
  void family(std::string name, const char* type, std::string_view help) {
    name_ = std::move(name);
    text_ += "# HELP " + name_ + " ";
    for (const char c : help) text_ += c == '\\' ? std::string("\\\\") : std::string(1, c);
    text_ += "\n# TYPE " + name_ + " " + type + "\n";
  }
  template <typename Number>
  void sample(const Labels& labels, Number value) {
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
    if (!labels.empty()) text_ += '}';
    text_ += " " + number(value) + "\n";
  }
  std::string finish() {
    ++max_;
    family("cepheus_metrics_left_out", "gauge", "samples omitted from this page");
    sample({}, std::uint64_t{left_out_});
    return std::move(text_);
  }

 private:
  std::size_t max_, samples_ = 0, left_out_ = 0;
  std::string text_, name_;
};

template <typename Object>
struct Labelled {
  Labels labels;
  const Object* object = nullptr;
};
template <typename Object>
using All = std::vector<Labelled<Object>>;

// A status's objects by scope.
struct Objects {
  explicit Objects(const FabricStatus& status) {
    fabric.push_back({{}, &status});
    for (const SwitchStatus& one : status.switches) add(one);
  }

  All<FabricStatus> fabric;
  All<SwitchStatus> switches;
  All<PortStatus> ports;
  All<net::LinkCounters> links;
  All<fabric::GroupView> groups;
  All<fabric::SenderGroupView> sender_groups;

 private:
  void add(const SwitchStatus& one) {
    switches.push_back({{{"switch", one.name}}, &one});
    for (const PortStatus& port : one.ports) {
      const Labels at = {{"switch", one.name}, {"port", port.name}};
      ports.push_back({at, &port});
      links.push_back({{at[0], at[1], {"way", "in"}}, &port.in});
      links.push_back({{at[0], at[1], {"way", "out"}}, &port.out});
    }
    for (const fabric::GroupView& group : one.groups) {
      groups.push_back({{{"switch", one.name},
                         {"group", group.id.to_string()},
                         {"epoch", std::to_string(group.epoch)}},
                        &group});
    }
    for (const fabric::SenderGroupView& group : one.sender_groups) {
      sender_groups.push_back({{{"switch", one.name},
                                {"sender", group.sender.to_string()},
                                {"qpn", std::to_string(group.virtual_qpn.value())},
                                {"addressed", group.addressed.to_string()},
                                {"epoch", std::to_string(group.epoch)}},
                               &group});
    }
  }
};

// Prometheus counts time in seconds.
struct Metric {
  explicit Metric(const ReadingInfo& reading) : is_time(reading.unit() == "us") {
    std::string_view name = reading.name;
    if (is_time) name.remove_suffix(std::string_view("us").size());
    if (reading.scope != "fabric") (family += reading.scope) += '_';
    (family += name) += is_time ? "seconds" : "";
    if (reading.kind == Kind::kCounter) family += "_total";
  }

  std::string family = "cepheus_";
  bool is_time;
};

template <typename Object>
void put_readings(Page& page, const All<Object>& objects) {
  for (const Reading<Object>& reading : readings<Object>()) {
    const Metric metric(reading);
    page.family(metric.family, reading.kind == Kind::kCounter ? "counter" : "gauge", reading.help);
    const bool is_rare = std::is_same_v<Object, PortStatus> && reading.listing != Listing::kOwn;
    for (const auto& [labels, object] : objects) {
      const std::uint64_t value = reading.of(*object);
      if (is_rare && value == 0) continue;
      if (metric.is_time) {
        page.sample(labels, static_cast<double>(value) / 1e6);
      } else {
        page.sample(labels, value);
      }
    }
  }
}

// 0 or 1.
void put_states(Page& page, const Objects& all) {
  page.family("cepheus_port_attached", "gauge", "1: a client holds the host's port");
  for (const auto& [labels, port] : all.ports) {
    if (port->kind == net::PortKind::kHost) page.sample(labels, std::uint64_t{port->attached});
  }
  page.family("cepheus_port_dark", "gauge", "1: a silent trunk");
  for (const auto& [labels, port] : all.ports) {
    if (port->kind == net::PortKind::kSwitch) page.sample(labels, std::uint64_t{port->dark});
  }
  page.family("cepheus_link_up", "gauge", "0: the link is cut");
  for (std::size_t p = 0; p < all.ports.size(); ++p) {
    const PortStatus& port = *all.ports[p].object;
    page.sample(all.links[2 * p].labels, std::uint64_t{port.in_up});
    page.sample(all.links[2 * p + 1].labels, std::uint64_t{port.out_up});
  }
}

void put_groups(Page& page, const Objects& all) {
  page.family("cepheus_group_active", "gauge", "1: data may flow; 0: registration is under way");
  for (const auto& [labels, group] : all.groups) page.sample(labels, std::uint64_t{group->active});
  put_readings(page, all.groups);
  put_readings(page, all.sender_groups);
}

}  // namespace

std::string to_metrics(const FabricStatus& status, std::size_t max_samples) {
  const Objects all(status);
  Page page(max_samples);
  page.family("cepheus_up", "gauge", "1: the fabric answers");
  page.sample({}, std::uint64_t{1});
  page.family("cepheus_uptime_seconds", "gauge", "since the fabric began to serve");
  page.sample({}, status.uptime_seconds);
  page.family("cepheus_mtu_bytes", "gauge", "largest payload of a packet");
  page.sample({}, std::uint64_t{status.mtu});
  put_readings(page, all.fabric);
  put_readings(page, all.switches);
  put_states(page, all);
  put_readings(page, all.ports);
  put_readings(page, all.links);
  put_groups(page, all);
  return page.finish();
}

std::string metrics_without_fabric(const std::string& reason) {
  Page page(kMaxSamples);
  page.family("cepheus_up", "gauge", "1: the fabric answers");
  page.sample({}, std::uint64_t{0});
  return "# " + printable(reason) + "\n" + page.finish();
}

}  // namespace cepheus::live
