// Any topology file is refused with a reason, or gives a topology that its own text describes in
// full.
//
// Input: after an even first byte, the file's text. After an odd one, numbers of lines of a file,
// so that mutations reach beyond the syntax.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

#include "net/settings_change.h"
#include "net/topology.h"

namespace {

using cepheus::net::Topology;

constexpr std::string_view kLines[] = {
    "[fabric]",
    "[link]",
    "[[switch]]",
    "[[host]]",
    "[[trunk]]",
    R"(name = "s0")",
    R"(name = "s1")",
    R"(name = "h0")",
    R"(name = "h1")",
    R"(address = "10.0.0.1")",
    R"(address = "10.0.0.2")",
    R"(switch = "s0")",
    R"(switch = "s1")",
    R"(between = ["s0", "s1"])",
    R"(between = ["s1", "s0"])",
    R"(interface = "p0")",
    R"(mac = "any")",
    R"(mac = "02:00:00:00:00:01")",
    R"(rate = "10Gbps")",
    R"(rate = "1bps")",
    R"(rate = "9000000Tbps")",
    R"(delay = "2us")",
    R"(delay = "60min")",
    R"(delay = "525600min")",
    R"(queue = "64KiB")",
    R"(queue = "1024GiB")",
    "loss = 0.5",
    "loss = nan",
    "duplicate = 1",
    "reorder = 1e-300",
    R"(reorder_by = "60min")",
    "corrupt = 0.25",
    "ecn = true",
    R"(ecn = { kmin = "1B", kmax = "1024GiB", pmax = 0.5 })",
    "pfc = true",
    R"(pfc = { headroom = "1024GiB" })",
    R"(link = { rate = "1Gbps", pfc = true, ecn = true, delay = "60min" })",
    R"(link = { rate = "9223372036854775807bps", pfc = true, delay = "60min" })",
    "mtu = 256",
    "mtu = 4096",
    R"(icrc = "always")",
    "seed = 9223372036854775807",
    R"(mcst_pool = "198.19.0.0/16")",
    R"(mcst_pool = "10.255.0.0/16")",
    "mrp_port = 65535",
    R"(hello = "50ms")",
    R"(one_armed = "p\"1")",
    R"(one_armed_dpdk = "\\\u0007\"")",
    R"(users = ["a\nb", "\"", "\\"])",
    "users = []",
    "max_groups = 0",
    "max_paths = 65535",
    "data_window = 4194304",
    "max_held = 65535",
    R"(age = "20min")",
    R"(pending_age = "4s")",
    R"(orphan_age = "4s")",
    R"(gate_age = "4s")",
    R"(rest = "40s")",
    R"(confirm_wait = "1ms")",
    R"(source_change = "host-sync")",
    R"(write_mode = "none")",
    R"(cnp_policy = "tmcf")",
    R"(cnp_window = "1ms")",
    R"(sender_groups = "racks")",
    R"(buffer = "1024GiB")",
    R"(buffer_reserve = "9223372036854775807B")",
    "buffer_share = 1e-300",
    "group_halt = true"};

std::string text_of(std::span<const std::uint8_t> bytes) {
  if (bytes.empty() || bytes[0] % 2 == 0) {
    const auto rest = bytes.subspan(std::min<std::size_t>(1, bytes.size()));
    return {rest.begin(), rest.end()};
  }
  std::string text;
  for (const std::uint8_t byte : bytes.subspan(1)) {
    text += std::string(kLines[byte % std::size(kLines)]) + "\n";
  }
  return text;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto topology = Topology::from_toml(text_of({data, size}));
  if (!topology) {
    require(!topology.error().text.empty());
    return 0;
  }
  const std::string text = topology->to_toml();
  const auto again = Topology::from_toml(text);
  require(again && again->to_toml() == text);
  const auto change = cepheus::net::compare(*topology, *again);
  require(change.taken.empty() && change.needs_restart.empty());
  if (topology->key_file.empty()) static_cast<void>(topology->plan());  // it reads the key's file
  return 0;
}
