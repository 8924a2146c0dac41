// The user's settings. The host fills them in before the first communicator. docs/parameters.md
// explains each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "collectives/core/collective.h"
#include "collectives/core/judge.h"
#include "collectives/core/mode.h"
#include "collectives/core/reproducible.h"

namespace cepheus::coll {

// The library that transmits a group's data.
enum class Carrier : int { kDirect = 0, kUcx = 1 };

inline constexpr char kAllCollectives[] = "bcast,barrier,allreduce,reduce,allgather";
inline constexpr unsigned kAllServed = (1u << kCollectives) - 1;  // Parameters::served
// Without reduce: by the hosts' own algorithms most ranks return before the root has the result, and
// these take less time (docs/results.md).
inline constexpr char kUsualCollectives[] = "bcast,barrier,allreduce,allgather";
inline constexpr unsigned kUsuallyServed =
    kAllServed & ~(1u << static_cast<unsigned>(Collective::kReduce));

struct Parameters {
  static constexpr int kUsualCalls = 32;  // before a group
  static constexpr int kBroadcastsAtOnce = -1;

  int priority = 95;
  int verbose = 0;
  int mode = static_cast<int>(Mode::kTry);
  int min_members = 2;
  int eager_limit = 65536;   // bytes: up to here a broadcast is copied through the eager lane
  int eager_message = 8192;  // bytes of each of its messages
  int register_timeout_ms = 0;
  int watchdog_ms = 0;
  int safeguard_threshold = 50;  // percent
  int safeguard_samples = 10;    // of 1000 broadcasts; 0: no safeguard
  int ranks_per_host = 0;
  int carrier = static_cast<int>(Carrier::kDirect);
  int set_up_after = kUsualCalls;             // calls of a communicator before its group
  unsigned long long set_up_bytes = 1 << 20;  // ... or bytes of them
  // Bytes that all ranks of a reduction contribute together.
  unsigned long long reduction_limit = 8192;
  int reproducible = static_cast<int>(Reproducible::kRank);  // of long floating-point sums
  int ordered_starts = 0;  // 1: all ranks start persistent broadcasts in one order
  int mrp_port = 0;
  int link_outage_ms = 0;
  int traffic_class = 106;  // UCX's default
  int service_level = 0;
  int flow_label = 0;
  unsigned long long max_eager_memory = 0;  // bytes; 0: libmcast's
  // No user's: tests make them small.
  size_t bulk_unit = size_t{64} << 20;       // bytes of each operation of a large broadcast
  size_t bulk_piece = size_t{4} << 20;       // bytes of each of its messages
  size_t tree_segment = size_t{1} << 20;     // bytes of each message down a tree
  size_t copied_bytes = 4096;                // of a message between ranks: up to this it is copied
  size_t most_gathered = 32768;              // bytes of a gather's result
  size_t reduction_chunk = size_t{1} << 17;  // bytes of each message of a long reduction
  std::uint32_t safeguard_run = 16;          // samples of a class's comparison
  const char* collectives = kUsualCollectives;  // `served` as the user gives it
  unsigned served = kUsuallyServed;             // a bit for each Collective
  // Null or empty: see docs/parameters.md.
  const char* device = nullptr;
  const char* mcst_pool = nullptr;

  size_t eager_bytes() const { return static_cast<size_t>(eager_limit); }
  size_t eager_unit() const { return static_cast<size_t>(eager_message); }
  size_t reduction_bytes() const { return static_cast<size_t>(reduction_limit); }
  // ... that a gather brings to all of them.
  size_t gathered_bytes() const { return std::min(reduction_bytes(), most_gathered); }
  bool has_long_reductions() const { return reduction_bytes() > most_gathered; }
  bool serves(Collective collective) const {
    return (served >> static_cast<unsigned>(collective) & 1) != 0;
  }
  bool serves_reductions() const { return served > 1; }
  bool reduces_long() const {
    return has_long_reductions() && (serves(Collective::kAllreduce) || serves(Collective::kReduce));
  }
  Mode chosen_mode() const { return static_cast<Mode>(mode); }
  Reproducible chosen_reproducible() const { return static_cast<Reproducible>(reproducible); }
  Carrier chosen_carrier() const { return static_cast<Carrier>(carrier); }
  bool is_safeguarded() const { return safeguard_samples > 0 && chosen_mode() == Mode::kTry; }
  Judge::Limits safeguard_limits() const {
    return {safeguard_threshold / 100.0, safeguard_samples / 1000.0, safeguard_run};
  }
  // The time after which an incomplete send fails the group; 0: libmcast's own limit. In mode try
  // the host's own broadcast can serve instead, so the limit is shorter.
  int time_limit_ms() const {
    constexpr int kOtherWay = 2000;
    return watchdog_ms == 0 && chosen_mode() == Mode::kTry ? kOtherWay : watchdog_ms;
  }
  // For how long a group may be registered while the fabric answers.
  int registration_ms() const { return register_timeout_ms == 0 ? 20000 : register_timeout_ms; }
  // For how long the fabric may be silent meanwhile; 0: as long. A job that has no other way waits.
  int registration_silence_ms() const {
    constexpr int kOtherWay = 1000;
    return register_timeout_ms == 0 && chosen_mode() == Mode::kTry ? kOtherWay : 0;
  }
  // The calls before the one that sets the group up, of broadcasts or of reductions.
  int calls_before_group(Collective collective) const {
    if (chosen_mode() == Mode::kRequire) return 0;
    if (set_up_after > kBroadcastsAtOnce) return set_up_after;
    return collective == Collective::kBcast ? 0 : kUsualCalls;
  }
  // Of shared_settings().
  unsigned fingerprint() const;
};
Parameters& parameters();

// The settings that must be equal on all ranks, so that a communicator agrees on paths. The first one
// is `mode`.
struct SharedSetting {
  const char* name;
  long long value;
};
std::vector<SharedSetting> shared_settings(const Parameters& parameters);
// The names of Parameters::served: "bcast,barrier".
std::string names_of(unsigned served);

struct Setting {
  struct Range {
    long long least = std::numeric_limits<long long>::min();
    long long most = std::numeric_limits<long long>::max();
  };
  const char* name;
  int level;  // Open MPI's, from 1 on
  std::variant<int*, unsigned long long*, const char**> storage;
  Range range;  // of a number
  const char* help;
  std::vector<const char*> choices = {};  // the names of an int's values, from 0 on
  bool is_open_mpis = false;
  // Of a text that take() checks: "", or the end of an error line.
  std::string (*check)() = nullptr;
};
// All that the user may set, for the host to read.
std::vector<Setting> settings();
// Lets `read` fill the setting in. A number beyond the range, or a wrong text, leaves the one from
// before, and the answer is the end of an error line.
std::string take(const Setting& setting, const std::function<void()>& read);
// Where this library is, with the host's help texts. UCX's part is in the directory ucx beside it.
const char* component_directory();

}  // namespace cepheus::coll
