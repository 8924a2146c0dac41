// A status as JSON. The fields of each object are listed once: a Writer and a Reader both go
// through the list. The Reader skips unknown keys and refuses missing ones. Counters that are 0 are
// not written, and readings that are computed from other fields are neither written nor read. The
// key "waiting_for" is written for other programs only.
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <vector>

#include "switch-emulator/live/status/control_protocol.h"
#include "switch-emulator/live/status/readings.h"
#include "switch-emulator/live/status/status.h"

namespace cepheus::live {
namespace {

using nlohmann::json;

// `T` may be const: a writing Archive leaves the object unchanged.
template <typename T, typename Object>
concept Of = std::is_same_v<std::remove_const_t<T>, Object>;

void fields(auto& archive, Of<net::LinkConfig> auto& link) {
  archive("rate_bps", link.rate.bits_per_second);
  archive("delay_ns", link.delay);
  archive("queue_bytes", link.queue_bytes);
  archive("loss", link.loss);
  archive("duplicate", link.duplicate);
  archive("reorder", link.reorder);
  archive("reorder_by_ns", link.reorder_by);
  archive("corrupt", link.corrupt);
  archive("seed", link.seed);
}

void fields(auto& archive, Of<net::LinkCounters> auto& link) { archive.readings(link); }

void fields(auto& archive, Of<PortStatus> auto& port) {
  archive("id", port.id);
  archive("name", port.name);
  archive("kind", port.kind);
  archive("address", port.address);
  archive("attached", port.attached);
  archive("client_pid", port.client_pid);
  archive("reserved", port.reserved);
  archive("reserved_by", port.reserved_by);
  archive("link", port.link);
  archive("in_loss", port.in_loss);
  archive("in_up", port.in_up);
  archive("out_up", port.out_up);
  archive("dark", port.dark);
  archive("in", port.in);
  archive("out", port.out);
  archive.readings(port);
}

void fields(auto& archive, Of<fabric::RegionView> auto& region) {
  archive("number", region.number);
  archive("virtual_address", region.virtual_address);
  archive("length", region.length);
}

void fields(auto& archive, Of<fabric::LateView> auto& late) {
  archive("unit", late.unit);
  archive("since_ns", late.since);
  archive("operation", late.operation);
  archive("type", late.type);
  archive("bytes", late.bytes);
}

void fields(auto& archive, Of<fabric::PathView> auto& path) {
  archive("port", path.port);
  archive("name", path.name);
  archive("is_host", path.is_host);
  archive("host", path.host);
  archive("qpn", path.qpn);
  archive("acked", path.acked);
  archive("lag", path.lag);
  archive("turns_offset", path.turns_offset);
  archive("is_source", path.is_source);
  archive("is_worst", path.is_worst);
  archive("towards_leader", path.towards_leader);
  archive("window", path.window);
  archive("regions", path.regions);
  archive("late", path.late);
}

void fields(auto& archive, Of<fabric::WriteRefusal> auto& refusal) {
  archive("host", refusal.host);
  archive("region", refusal.region);
  archive("offset", refusal.offset);
  archive("length", refusal.length);
  archive("by_nic", refusal.by_nic);
  archive("count", refusal.count);
}

void fields(auto& archive, Of<fabric::ReductionView> auto& reduction) {
  archive("unit", reduction.unit);
  archive("window", reduction.window);
  archive("is_root", reduction.is_root);
  archive("is_flat", reduction.is_flat);
  archive("newest", reduction.newest);
  archive("complete", reduction.complete);
  archive("results", reduction.results);
  archive("waits_since_ns", reduction.waits_since);
  archive("failure", reduction.failure);
}

void fields(auto& archive, Of<fabric::GroupView> auto& group) {
  archive("id", group.id);
  archive("epoch", group.epoch);
  archive("leader", group.leader);
  archive("active", group.active);
  archive("source_change", group.source_change);
  archive("write_mode", group.write_mode);
  archive("cnp_policy", group.cnp_policy);
  archive("path_mtu", group.path_mtu);
  archive("mtu_limit", group.mtu_limit);
  archive("write_refused", group.refused);
  archive("reduction", group.reduction);
  archive("start", group.start);
  archive("base", group.base);
  archive("sent", group.sent);
  archive("acknowledged", group.acknowledged);
  archive("source", group.source);
  archive("next_source", group.next_source);
  archive("held_nak", group.held_nak);
  archive("window", group.window);
  archive("paths", group.paths);
  archive.readings(group);
}

void fields(auto& archive, Of<fabric::SenderReceiverView> auto& receiver) {
  archive("host", receiver.host);
  archive("qpn", receiver.qpn);
  archive("known", receiver.is_known);
  archive("acked", receiver.acked);
  archive("lag", receiver.lag);
  archive("regions", receiver.regions);
}

void fields(auto& archive, Of<fabric::SenderGroupView> auto& group) {
  archive("sender", group.sender);
  archive("alias", group.alias);
  archive("addressed", group.addressed);
  archive("virtual_qpn", group.virtual_qpn);
  archive("sender_qpn", group.sender_qpn);
  archive("epoch", group.epoch);
  archive("merges", group.merges);
  archive("branches", group.branches);
  archive("replicas", group.replicas);
  archive("receivers", group.receivers);
  archive.readings(group);
}

void fields(auto& archive, Of<SwitchStatus> auto& one) {
  archive("name", one.name);
  archive("ports", one.ports);
  archive("groups", one.groups);
  archive("sender_groups", one.sender_groups);
  archive.readings(one);
}

void fields(auto& archive, Of<FabricStatus> auto& status) {
  archive("pid", status.pid);
  archive("uptime_seconds", status.uptime_seconds);
  archive("now_ns", status.now);
  archive("utc_ns", status.utc);
  archive("mtu", status.mtu);
  archive("icrc_always", status.icrc_always);
  archive("switches", status.switches);
  archive.readings(status);
}

template <typename T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;
template <typename T>
concept Number = requires(T value) {
  value.value();
};  // PSNs, QPNs and ports

class Writer {
 public:
  template <typename T>
  void operator()(const char* key, const T& value) {
    out[key] = written(value);
  }
  // Own keys, and "counters" with the values that are not 0.
  template <typename Object>
  void readings(const Object& object) {
    for (const Reading<Object>& reading : live::readings<Object>()) {
      if (reading.set == nullptr) continue;
      const std::string key(reading.name);
      const std::uint64_t value = reading.of(object);
      if (reading.listing == Listing::kOwn) {
        out[key] = value;
      } else if (json& counters = out["counters"]; value != 0) {
        counters[key] = value;
      } else if (counters.is_null()) {
        counters = json::object();
      }
    }
  }

  json out = json::object();

 private:
  template <typename T>
  static json written(const std::vector<T>& values) {
    json all = json::array();
    for (const T& value : values) all.push_back(written(value));
    return all;
  }
  template <typename T>
  static json written(const std::optional<T>& value) {
    return value ? written(*value) : json();
  }
  static json written(wire::Ipv4 address) { return address.to_string(); }
  static json written(wire::Duration time) { return time.count(); }
  static json written(wire::Instant at) { return at.time_since_epoch().count(); }
  static json written(net::PortKind kind) {
    return kind == net::PortKind::kHost ? "host" : "switch";
  }
  template <typename T>
  static json written(const T& value) {
    if constexpr (kIsPlain<T>) {
      return value;
    } else if constexpr (Number<T>) {
      return value.value();
    } else {
      Writer inner;
      fields(inner, value);
      return std::move(inner.out);
    }
  }
};

// Throws json::exception if a key is missing; unknown ones are skipped.
class Reader {
 public:
  explicit Reader(const json& in) : in_(in) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    read(in_.at(key), value);
  }
  template <typename Object>
  void readings(Object& object) {
    for (const Reading<Object>& reading : live::readings<Object>()) {
      if (reading.set == nullptr) continue;
      const std::string key(reading.name);
      const bool is_own = reading.listing == Listing::kOwn;
      reading.set(object, is_own ? in_.at(key).template get<std::uint64_t>()
                                 : in_.at("counters").value(key, std::uint64_t{0}));
    }
  }
  template <typename T>
  static void read(const json& in, T& value) {
    if constexpr (kIsPlain<T>) {
      in.get_to(value);
    } else if constexpr (Number<T>) {
      value = T(in.get<decltype(value.value())>());
    } else {
      Reader inner(in);
      fields(inner, value);
    }
  }

 private:
  template <typename T>
  static void read(const json& in, std::vector<T>& values) {
    for (const json& one : in) read(one, values.emplace_back());
  }
  template <typename T>
  static void read(const json& in, std::optional<T>& value) {
    if (!in.is_null()) read(in, value.emplace());
  }
  // Unset, if it is no address.
  static void read(const json& in, wire::Ipv4& address) {
    address = wire::Ipv4::parse(in.get_ref<const std::string&>()).value_or(wire::Ipv4());
  }
  static void read(const json& in, wire::Duration& time) {
    time = wire::Duration(in.get<std::int64_t>());
  }
  static void read(const json& in, wire::Instant& at) {
    at = wire::Instant(wire::Duration(in.get<std::int64_t>()));
  }
  static void read(const json& in, net::PortKind& kind) {
    kind = in == "host" ? net::PortKind::kHost : net::PortKind::kSwitch;
  }

  const json& in_;
};

}  // namespace

json to_json(const FabricStatus& status) {
  Writer writer;
  fields(writer, status);
  for (json& one : writer.out["switches"]) {
    for (json& group : one["groups"]) {
      const auto id = wire::Ipv4::parse(group["id"].get_ref<const std::string&>());
      const WaitedFor late = waited_for(status, *id);
      group["waiting_for"] = {{"names", late.names}, {"packets", late.packets}};
    }
  }
  return std::move(writer.out);
}

wire::Result<FabricStatus> status_from_json(const json& in) try {
  FabricStatus status;
  Reader::read(in, status);
  return status;
} catch (const json::exception& e) {
  return wire::invalid(std::string("not a fabric's status, or another version's (") + e.what() +
                       ")");
}

wire::Result<FabricStatus> request_status(const std::string& fabric_socket) {
  return send_request(fabric_socket, {{"ask", "status"}}).and_then([](const json& answer) {
    return status_from_json(answer.value("status", json::object()));
  });
}

}  // namespace cepheus::live
