// One table serves both readers: Open MPI's MCA parameters and the preloaded library's environment.
// take() keeps the former value if the new number is out of range. The fingerprint hashes the
// shared settings (FNV-1a), so that ranks compare one number.
#include "collectives/core/parameters.h"

#include <dlfcn.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace cepheus::coll {

Parameters& parameters() {
  static Parameters p;
  return p;
}

std::vector<SharedSetting> shared_settings(const Parameters& p) {
  return {{"mode", p.mode},
          {"min_members", p.min_members},
          {"eager_limit", p.eager_limit},
          {"eager_message", p.eager_message},
          {"mrp_port", p.mrp_port},
          {"ranks_per_host", p.ranks_per_host},
          {"set_up_after", p.set_up_after},
          {"set_up_bytes", static_cast<long long>(p.set_up_bytes)},
          {"collectives", p.served},
          {"reduction_limit", static_cast<long long>(p.reduction_limit)},
          {"reproducible", p.reproducible},
          {"ordered_starts", p.ordered_starts},
          {"safeguard_samples", p.safeguard_samples},
          {"priority", p.priority}};  // Open MPI chooses by it
}

std::string names_of(unsigned served) {
  std::string names;
  for (std::size_t i = 0; i < kCollectives; ++i) {
    if ((served >> i & 1) == 0) continue;
    names += (names.empty() ? "" : ",") + std::string(name(static_cast<Collective>(i)));
  }
  return names;
}

unsigned Parameters::fingerprint() const {
  unsigned hash = 2166136261u;
  for (const SharedSetting& each : shared_settings(*this))
    hash = (hash ^ static_cast<unsigned>(each.value)) * 16777619u;
  return hash;
}

namespace {

constexpr Setting::Range kAny, kFromMinusOne{.least = -1}, kFromZero{.least = 0};
constexpr Setting::Range kFromOne{.least = 1}, kOfThousand{0, 1000}, kPort{0, 65535}, kSwitch{0, 1};
constexpr Setting::Range kByte{0, 255}, kPriority{0, 7}, kTwentyBits{0, 0xFFFFF};
constexpr Setting::Range kOutage{0, 30'000};

// Reads `collectives` into `served`.
std::string read_collectives() {
  Parameters& p = parameters();
  std::istringstream list(p.collectives != nullptr ? p.collectives : "");
  unsigned served = 0;
  for (std::string each; std::getline(list, each, ',');) {
    std::size_t i = 0;
    while (i < kCollectives && each != name(static_cast<Collective>(i))) ++i;
    if (i == kCollectives) {
      return "\"" + each + "\" is none of " + kAllCollectives + "; the default, " +
             kUsualCollectives + ", holds";
    }
    served |= 1u << i;
  }
  p.served = served;
  return "";
}

}  // namespace

std::vector<Setting> settings() {
  Parameters& p = parameters();
  return {
      {"priority",
       6,
       &p.priority,
       kAny,
       "Set the component's priority; the highest serves the collectives",
       {},
       true},
      {"verbose", 3, &p.verbose, kAny,
       "Log; 0: nothing; 1: one line per communicator with path and reason; 2: also each lane"},
      {"mode", 2, &p.mode, kAny, kModeHelp, {std::begin(kModes), std::end(kModes)}},
      {"min_members", 4, &p.min_members, kFromZero,
       "Give a group to communicators of at least this many ranks; smaller ones use Open MPI's own "
       "algorithms in every mode"},
      {"eager_limit", 5, &p.eager_limit, kFromZero,
       "Copy broadcasts up to this size in bytes through posted buffers, without waiting for "
       "receivers; larger ones use the user's buffers"},
      {"eager_message", 6, &p.eager_message, kFromOne,
       "Set the size of one posted buffer in bytes; longer eager broadcasts take several"},
      {"register_timeout_ms", 5, &p.register_timeout_ms, kFromZero,
       "Wait this time in milliseconds until switches and members confirm a group; 0: 20000, in "
       "mode "
       "try also at most 1000 after their last answer"},
      {"watchdog_ms", 5, &p.watchdog_ms, kFromZero,
       "Give a group up if no send completes for this time in milliseconds and no awaited member "
       "answers; 0: 2000 in mode try, 8000 in mode require (11300 on hardware); never less than "
       "the device's time-out and retries (8600 on the kernel's Soft-RoCE, 4600 on hardware)"},
      {"safeguard_threshold", 5, &p.safeguard_threshold, kFromZero,
       "Mode try: take a size class out of the network if its calls take this percentage longer "
       "there than the other way"},
      {"safeguard_samples", 5, &p.safeguard_samples, kOfThousand,
       "Mode try: send at most this many of 1000 calls the other way, to compare; 0: never "
       "compare, "
       "always use the network"},
      {"ranks_per_host", 5, &p.ranks_per_host, kFromMinusOne,
       "Let this many consecutive ranks share a host; its first rank has the NIC (cepheus-run "
       "sets it); 0: ranks on one machine share a host, in mode require ranks with one NIC "
       "address; -1: always ranks with one NIC address"},
      {"carrier",
       6,
       &p.carrier,
       kAny,
       "Choose the library that makes groups; direct: libmcast; ucx: UCX's rc_mcast, for which UCX "
       "is loaded",
       {"direct", "ucx"}},
      {"set_up_after", 5, &p.set_up_after, kFromMinusOne,
       "Set a communicator's group up after this many broadcasts, or that of its reductions after "
       "this many of them, because set-up costs more than a few calls gain; 0, and in mode "
       "require: at the first; -1: at the first broadcast, but after 32 reductions (cepheus-run "
       "sets -1)"},
      {"set_up_bytes", 5, &p.set_up_bytes, kFromZero,
       "Set a communicator's group up after this many bytes of broadcasts, or of reductions, too"},
      {"collectives",
       4,
       &p.collectives,
       kAny,
       "Serve these collectives, by names with commas between them, out of "
       "bcast,barrier,allreduce,reduce,allgather; the switches serve all but bcast, and reduce is "
       "mostly faster without them",
       {},
       false,
       read_collectives},
      {"reduction_limit", 5, &p.reduction_limit, kFromZero,
       "Serve a barrier, allreduce, reduce or allgather if all ranks together contribute up to "
       "this number of bytes; the network takes 8 packets of its path MTU, and beyond 32768 bytes "
       "allreduces and reduces alone, which it serves in parts, or messages do"},
      {"reproducible",
       5,
       &p.reproducible,
       kAny,
       "Choose the bits of long floating-point sums and products; rank: pairs by rank on every "
       "path, so that the network serves them only in flat groups with ascending addresses; tree: "
       "by the network in every group, with the same bits in all calls of one group; off: by the "
       "faster way",
       {std::begin(kReproducible), std::end(kReproducible)}},
      {"ordered_starts",
       5,
       &p.ordered_starts,
       kSwitch,
       "1: multicast persistent broadcasts; the program must start them in one order on all ranks, "
       "also relative to the communicator's other broadcasts; 0: use Open MPI's own algorithm, "
       "because MPI allows any order",
       {},
       true},
      {"mrp_port", 6, &p.mrp_port, kPort, "Use this UDP port for registration; 0: 18516"},
      {"link_outage_ms", 5, &p.link_outage_ms, kOutage,
       "Let a link be down for this time in milliseconds without ending groups: the NIC's time-out "
       "and retries take as long; 0: 2000"},
      {"traffic_class", 5, &p.traffic_class, kByte,
       "Send groups' packets with this IPv4 TOS: four times the DSCP"},
      {"service_level", 5, &p.service_level, kPriority,
       "Send groups' packets with this priority in their VLAN tags"},
      {"flow_label", 6, &p.flow_label, kTwentyBits,
       "Let the NIC derive the UDP source port of groups' packets from this flow label; 0: none"},
      {"max_eager_memory", 5, &p.max_eager_memory, kFromZero,
       "Limit the posted buffers of all communicators of a process to this size in bytes; 0: 64 "
       "MiB, enough for about 1000 communicators of few ranks"},
      {"device", 4, &p.device, kAny,
       "Use this verbs device; empty: the nearest active one on the route to groups"},
      {"mcst_pool", 6, &p.mcst_pool, kAny,
       "Take group addresses from this CIDR range; empty: 198.18.0.0/15"},
  };
}

std::string take(const Setting& setting, const std::function<void()>& read) {
  const long long least = setting.range.least, most = setting.range.most;
  const auto check = [&](auto& number) -> std::string {
    const auto before = number;
    read();
    if (std::cmp_greater_equal(number, least) && std::cmp_less_equal(number, most)) return "";
    const bool is_bounded = most != Setting::Range().most || std::cmp_greater(number, most);
    std::string text = std::to_string(number) + " is not ";
    text += is_bounded ? "from " + std::to_string(least) + " to " + std::to_string(most)
                       : std::to_string(least) + " or more";
    number = before;
    return text + "; the default, " + std::to_string(before) + ", holds";
  };
  if (const auto* number = std::get_if<int*>(&setting.storage)) return check(**number);
  if (const auto* number = std::get_if<unsigned long long*>(&setting.storage))
    return check(**number);
  read();
  return setting.check != nullptr ? setting.check() : "";
}

const char* component_directory() {
  static const std::string directory = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&component_directory), &info) == 0 ||
        info.dli_fname == nullptr)
      return std::string(".");
    // The file's own place, not a link's: packages put a link into Open MPI's own directory.
    std::error_code error;
    const auto resolved = std::filesystem::canonical(info.dli_fname, error);
    const std::string path = error ? info.dli_fname : resolved.string();
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  }();
  return directory.c_str();
}

}  // namespace cepheus::coll
