// Topology <-> TOML. The reader reports the first error; the writer leaves defaults out. Switches
// are read before hosts and trunks, which name them; without any there is one, s0. A [link] holds
// for every link that does not overwrite its values. What has the right form is then checked by
// find_problem(), and its answer gets the line of the table.
//
// Bounds stand at each key; kMaxTableSpace limits groups. The writer does not write a host's two
// link directions separately.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "net/nearest_name.h"
#include "net/queue_settings.h"
#include "net/time_settings.h"
#include "net/toml_table.h"
#include "net/topology.h"
#include "net/topology_check.h"
#include "net/units.h"

namespace cepheus::net {
namespace {

constexpr std::int64_t kMaxTableSpace = 1 << 20;

std::optional<wire::Mac> parse_mac(std::string_view text) {
  wire::Mac mac;
  if (text.size() != mac.to_string().size()) return std::nullopt;
  for (std::size_t i = 0; i < mac.octets.size(); ++i) {
    const char* first = text.data() + 3 * i;
    if (i > 0 && first[-1] != ':') return std::nullopt;
    const auto [end, error] = std::from_chars(first, first + 2, mac.octets[i], 16);
    if (error != std::errc{} || end != first + 2) return std::nullopt;
  }
  return mac;
}

class Reader {
 public:
  explicit Reader(const std::string& source_name) : errors_(source_name) {}

  wire::Result<Topology> read(const std::string& text) {
    if (const auto table = parse_toml(text, errors_)) read_root(*table);
    if (!errors_.first()) check();
    if (errors_.first()) return wire::invalid(*errors_.first());
    topology_.assign_link_seeds();
    return std::move(topology_);
  }

 private:
  void read_root(const toml::table& table) {
    const TomlTable root(errors_, table, "the topology",
                         {"fabric", "link", "switch", "host", "trunk"});
    if (const toml::table* fabric = root.table("fabric")) read_fabric(*fabric);
    if (const toml::table* link = root.table("link")) read_link(*link, "[link]", default_link_);
    if (!root.has("switch")) topology_.switches.push_back({"s0", {}});
    for (const toml::table* t : root.tables("switch")) read_switch(*t);
    for (const toml::table* t : root.tables("host")) read_host(*t);
    for (const toml::table* t : root.tables("trunk")) read_trunk(*t);
  }

  void read_fabric(const toml::table& table) {
    const TomlTable in(errors_, table, "[fabric]",
                       {"mtu", "icrc", "seed", "mcst_pool", "mrp_port", "hello", "one_armed",
                        "one_armed_dpdk", "key_file", "users"});
    fabric_line_ = in.line();
    in.read_integer("mtu", 256, 4096, topology_.mtu);
    in.read_choice("icrc", {{"deferred", false}, {"always", true}}, topology_.icrc_always);
    in.read_integer("seed", 0, INT64_MAX, topology_.seed);
    in.read("mcst_pool", topology_.mcst_pool);
    in.read_integer("mrp_port", 1, 65535, topology_.mrp_port);
    in.read("hello", topology_.hello);
    in.read("one_armed", topology_.one_armed);
    in.read("one_armed_dpdk", topology_.one_armed_dpdk);
    in.read("key_file", topology_.key_file);
    if (in.has("users")) {
      if (auto users = in.strings("users")) {
        topology_.users = std::move(*users);
      } else {
        in.error("users", "users is not a list; write users = [\"alice\", \"1001\"]");
      }
    }
  }

  void read_link(const toml::table& table, const std::string& label, LinkConfig& link) {
    const TomlTable in(errors_, table, label,
                       {"rate", "delay", "mtu", "queue", "loss", "duplicate", "reorder",
                        "reorder_by", "corrupt", "ecn", "pfc"});
    in.read("rate", link.rate);
    in.read("delay", link.delay);
    in.read_integer("mtu", 256, 4096, link.mtu);
    in.read_bytes("queue", link.queue_bytes);
    in.read_probability("loss", link.loss);
    in.read_probability("duplicate", link.duplicate);
    in.read_probability("reorder", link.reorder);
    in.read("reorder_by", link.reorder_by);
    in.read_probability("corrupt", link.corrupt);
    read_ecn(errors_, in, label, link.ecn);
    read_pfc(errors_, in, label, link.pfc);
  }

  LinkConfig link_of(const TomlTable& owner, const std::string& label) {
    LinkConfig link = default_link_;
    if (const toml::table* table = owner.table("link")) read_link(*table, "link of " + label, link);
    return link;
  }

  void read_switch(const toml::table& table) {
    const TomlTable in(errors_, table, "[[switch]]",
                       {"name",          "max_groups", "max_groups_per_host", "register_rate",
                        "probe_rate",    "max_paths",  "reduction_memory",    "data_window",
                        "max_held",      "age",        "pending_age",         "orphan_age",
                        "gate_age",      "rest",       "confirm_wait",        "feedback_wait",
                        "source_change", "write_mode", "cnp_policy",          "cnp_window",
                        "sender_groups", "buffer",     "buffer_share",        "buffer_reserve",
                        "group_halt"});
    SwitchSpec spec;
    SwitchConfig& config = spec.config;
    if (!in.read("name", spec.name)) in.error("name", "no name; write name = \"s0\"");
    in.read_integer("max_groups", 0, kMaxTableSpace, config.max_groups);
    in.read_integer("max_groups_per_host", 1, kMaxTableSpace, config.max_groups_per_host);
    in.read_integer("register_rate", 1, 1'000'000, config.register_rate);
    in.read_integer("probe_rate", 0, 1'000'000, config.probe_rate);
    in.read_integer("max_paths", 2, 65535, config.max_paths);
    in.read_bytes("reduction_memory", config.reduction_memory);
    in.read_integer("data_window", 1, 1 << 22, config.data_window);
    in.read_integer("max_held", 0, 65535, config.max_held);
    in.read("age", config.age);
    in.read("pending_age", config.pending_age);
    in.read("orphan_age", config.orphan_age);
    in.read("gate_age", config.gate_age);
    in.read("rest", config.rest);
    in.read("confirm_wait", config.confirm_wait);
    in.read("feedback_wait", config.feedback_wait);
    in.read_choice("source_change",
                   {{"rebase", SourceChange::kRebase}, {"host-sync", SourceChange::kHostSync}},
                   config.rules.source_change);
    in.read_choice("write_mode",
                   {{"regions", WriteMode::kRegions},
                    {"per-request", WriteMode::kPerRequest},
                    {"same-key", WriteMode::kSameKey},
                    {"none", WriteMode::kNone}},
                   config.rules.write_mode);
    in.read_choice("cnp_policy",
                   {{"all", CnpPolicy::kAll},
                    {"worst-path", CnpPolicy::kWorstPath},
                    {"tmcf", CnpPolicy::kTmcf}},
                   config.rules.cnp_policy);
    in.read("cnp_window", config.cnp_window);
    if (const auto problem = find_time_problem(config)) in.error(problem->setting, problem->text);
    in.read_choice("sender_groups",
                   {{"everywhere", SenderGroups::kEverywhere},
                    {"racks", SenderGroups::kRacks},
                    {"off", SenderGroups::kOff}},
                   config.sender_groups);
    read_buffer(in, config.buffer);
    config.name = spec.name;
    topology_.switches.push_back(std::move(spec));
    switch_lines_.push_back(in.line());
  }

  void read_host(const toml::table& table) {
    const TomlTable in(errors_, table, "[[host]]",
                       {"name", "address", "switch", "interface", "mac", "link"});
    HostSpec host;
    const std::string number = std::to_string(topology_.hosts.size());
    if (!in.read("name", host.name)) in.error("name", "no name; write name = \"h" + number + "\"");
    if (!in.read("address", host.address)) {
      in.error("address", "no address; write address = \"10.0.0." +
                              std::to_string(topology_.hosts.size() % 254 + 1) + "\"");
    }
    std::string switch_name;
    if (in.read("switch", switch_name)) {
      host.switch_index = switch_called(switch_name, in, "switch");
    } else if (topology_.switches.size() > 1) {
      in.error("switch", "there are several switches; name the host's with switch = \"" +
                             topology_.switches[0].name + "\"");
    }
    in.read("interface", host.interface);
    read_mac(in, host);
    host.up = host.down = link_of(in, "[[host]]");
    topology_.hosts.push_back(std::move(host));
    host_lines_.push_back(in.line());
  }

  void read_mac(const TomlTable& in, HostSpec& host) {
    std::string text;
    if (!in.read("mac", text)) return;
    host.any_mac = text == "any";
    if (!host.any_mac) host.mac = parse_mac(text);
    if (!host.any_mac && !host.mac) {
      in.error("mac", "mac = \"" + text +
                          "\" is not a MAC address; write mac = \"02:00:00:00:00:01\", or \"any\"");
    }
  }

  void read_trunk(const toml::table& table) {
    const TomlTable in(errors_, table, "[[trunk]]", {"between", "link"});
    TrunkSpec trunk;
    const auto ends = in.strings("between");
    if (!ends || ends->size() != 2) {
      in.error("between", "a trunk joins two switches; write between = [\"s0\", \"s1\"]");
    } else {
      trunk.a = switch_called((*ends)[0], in, "between");
      trunk.b = switch_called((*ends)[1], in, "between");
    }
    trunk.ab = trunk.ba = link_of(in, "[[trunk]]");
    topology_.trunks.push_back(trunk);
    trunk_lines_.push_back(in.line());
  }

  std::size_t switch_called(const std::string& name, const TomlTable& in, std::string_view key) {
    std::vector<std::string_view> names;
    for (const SwitchSpec& spec : topology_.switches) {
      if (spec.name == name) return static_cast<std::size_t>(&spec - topology_.switches.data());
      names.push_back(spec.name);
    }
    in.error(key, "there is no switch '" + name + "'" + did_you_mean(name, names) +
                      "; add a [[switch]] with that name");
    return 0;
  }

  void check() {
    const auto problem = find_problem(topology_);
    if (!problem) return;
    const auto line = [&](const std::vector<std::size_t>& lines) {
      return problem->index < lines.size() ? lines[problem->index] : 0;
    };
    switch (problem->of) {
      case TopologyProblem::Of::kFabric:
        return errors_.add(fabric_line_, problem->text);
      case TopologyProblem::Of::kSwitch:
        return errors_.add(line(switch_lines_), problem->text + ", in [[switch]]");
      case TopologyProblem::Of::kHost:
        return errors_.add(line(host_lines_), problem->text + ", in [[host]]");
      case TopologyProblem::Of::kTrunk:
        return errors_.add(line(trunk_lines_), problem->text + ", in [[trunk]]");
    }
  }

  TomlErrors errors_;
  Topology topology_;
  LinkConfig default_link_;
  std::size_t fabric_line_ = 0;
  std::vector<std::size_t> switch_lines_, host_lines_, trunk_lines_;
};

std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", unsigned{byte});
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// "key = value" for each parameter of a link that is not the default.
std::vector<std::string> link_settings(const LinkConfig& link) {
  const LinkConfig usual;
  std::vector<std::string> settings;
  const auto quantity = [&](const char* key, bool is_usual, const std::string& text) {
    if (!is_usual) settings.push_back(std::string(key) + " = " + toml_string(text));
  };
  const auto probability = [&](const char* key, double value) {
    if (value != 0) settings.push_back(std::string(key) + " = " + number_to_text(value));
  };
  quantity("rate", link.rate.is_unlimited(), to_text(link.rate));
  quantity("delay", link.delay == usual.delay, to_text(link.delay));
  if (link.mtu != 0) settings.push_back("mtu = " + std::to_string(link.mtu));
  quantity("queue", link.queue_bytes == usual.queue_bytes, bytes_to_text(link.queue_bytes));
  probability("loss", link.loss);
  probability("duplicate", link.duplicate);
  probability("reorder", link.reorder);
  quantity("reorder_by", link.reorder_by == usual.reorder_by, to_text(link.reorder_by));
  probability("corrupt", link.corrupt);
  if (link.ecn.on) settings.push_back("ecn = " + to_text(link.ecn));
  if (link.pfc.on) settings.push_back("pfc = " + to_text(link.pfc));
  return settings;
}

void write_link(std::ostream& out, const LinkConfig& link) {
  std::string all;
  for (const std::string& setting : link_settings(link)) {
    all += (all.empty() ? "" : ", ") + setting;
  }
  if (!all.empty()) out << "link = { " << all << " }\n";
}

void write_switch(std::ostream& out, const SwitchSpec& spec) {
  const SwitchConfig usual;
  const SwitchConfig& config = spec.config;
  const auto integer = [&](const char* key, std::uint32_t value, std::uint32_t usual_value) {
    if (value != usual_value) out << key << " = " << value << "\n";
  };
  const auto duration = [&](const char* key, wire::Duration value, wire::Duration usual_value) {
    if (value != usual_value) out << key << " = " << toml_string(to_text(value)) << "\n";
  };
  const auto bytes = [&](const char* key, auto value, auto usual_value) {
    if (value != usual_value) out << key << " = " << toml_string(bytes_to_text(value)) << "\n";
  };
  out << "\n[[switch]]\nname = " << toml_string(spec.name) << "\n";
  integer("max_groups", config.max_groups, usual.max_groups);
  integer("max_groups_per_host", config.max_groups_per_host, usual.max_groups_per_host);
  integer("register_rate", config.register_rate, usual.register_rate);
  integer("probe_rate", config.probe_rate, usual.probe_rate);
  integer("max_paths", config.max_paths, usual.max_paths);
  bytes("reduction_memory", config.reduction_memory, usual.reduction_memory);
  integer("data_window", config.data_window, usual.data_window);
  integer("max_held", config.max_held, usual.max_held);
  duration("age", config.age, usual.age);
  duration("pending_age", config.pending_age, usual.pending_age);
  duration("orphan_age", config.orphan_age, usual.orphan_age);
  duration("gate_age", config.gate_age, usual.gate_age);
  duration("rest", config.rest, usual.rest);
  duration("confirm_wait", config.confirm_wait, usual.confirm_wait);
  duration("feedback_wait", config.feedback_wait, usual.feedback_wait);
  if (config.rules.source_change == SourceChange::kHostSync) {
    out << "source_change = \"host-sync\"\n";
  }
  if (config.rules.write_mode != WriteMode::kRegions) {
    out << "write_mode = \"" << to_string(config.rules.write_mode) << "\"\n";
  }
  if (config.rules.cnp_policy == CnpPolicy::kAll) out << "cnp_policy = \"all\"\n";
  if (config.rules.cnp_policy == CnpPolicy::kTmcf) out << "cnp_policy = \"tmcf\"\n";
  duration("cnp_window", config.cnp_window, usual.cnp_window);
  if (config.sender_groups == SenderGroups::kRacks) out << "sender_groups = \"racks\"\n";
  if (config.sender_groups == SenderGroups::kOff) out << "sender_groups = \"off\"\n";
  const BufferConfig& buffer = config.buffer;
  bytes("buffer", buffer.bytes, usual.buffer.bytes);
  if (buffer.share != usual.buffer.share) {
    out << "buffer_share = " << number_to_text(buffer.share) << "\n";
  }
  bytes("buffer_reserve", buffer.reserve, usual.buffer.reserve);
  if (buffer.group_halt) out << "group_halt = true\n";
}

}  // namespace

wire::Result<Topology> Topology::from_toml(const std::string& text,
                                           const std::string& source_name) {
  return Reader(source_name).read(text);
}

wire::Result<Topology> Topology::from_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return wire::invalid("can't read topology file " + path + "; check its name and permissions");
  }
  return from_toml(text.str(), path);
}

std::string Topology::to_toml() const {
  std::ostringstream out;
  const Topology usual;
  out << "[fabric]\nmtu = " << mtu << "\n";
  if (icrc_always) out << "icrc = \"always\"\n";
  if (seed != usual.seed) out << "seed = " << seed << "\n";
  if (mcst_pool.base != usual.mcst_pool.base || mcst_pool.length != usual.mcst_pool.length) {
    out << "mcst_pool = \"" << mcst_pool.base.to_string() << "/" << mcst_pool.length << "\"\n";
  }
  if (mrp_port != usual.mrp_port) out << "mrp_port = " << mrp_port << "\n";
  if (hello != usual.hello) out << "hello = " << toml_string(to_text(hello)) << "\n";
  if (!one_armed.empty()) out << "one_armed = " << toml_string(one_armed) << "\n";
  if (!one_armed_dpdk.empty()) {
    out << "one_armed_dpdk = " << toml_string(one_armed_dpdk) << "\n";
  }
  if (!key_file.empty()) out << "key_file = " << toml_string(key_file) << "\n";
  for (std::size_t i = 0; i < users.size(); ++i) {
    out << (i == 0 ? "users = [" : ", ") << toml_string(users[i])
        << (i + 1 == users.size() ? "]\n" : "");
  }
  for (const SwitchSpec& spec : switches) write_switch(out, spec);
  for (const HostSpec& host : hosts) {
    out << "\n[[host]]\nname = " << toml_string(host.name)
        << "\naddress = " << toml_string(host.address.to_string()) << "\n";
    if (switches.size() > 1)
      out << "switch = " << toml_string(switches[host.switch_index].name) << "\n";
    if (!host.interface.empty()) out << "interface = " << toml_string(host.interface) << "\n";
    if (host.any_mac || host.mac) {
      out << "mac = " << toml_string(host.any_mac ? "any" : host.mac->to_string()) << "\n";
    }
    write_link(out, host.up);
  }
  for (const TrunkSpec& trunk : trunks) {
    out << "\n[[trunk]]\nbetween = [" << toml_string(switches[trunk.a].name) << ", "
        << toml_string(switches[trunk.b].name) << "]\n";
    write_link(out, trunk.ab);
  }
  return out.str();
}

}  // namespace cepheus::net
