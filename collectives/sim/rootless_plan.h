// The reductions of a simulated job, and the faults of its groups: all from one seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cepheus::coll::sim {

enum class GroupFault : std::uint8_t {
  kNone,
  kFailed,        // ends fail one after the other; some show it
  kSilent,        // nothing moves in the group any more
  kDisconnected,  // nothing moves from or to one member, for a while or for ever
  kDeaf,          // results at one member are acknowledged and lost
  kMute,          // one member's NIC hands no completion over
  kRefused,       // no group comes up at first
  kBroadcasts,    // the group of the communicator's broadcasts fails, not that of its reductions
  kDeath,         // the process of one member ends
  kCount
};
const char* name(GroupFault fault);

// A collective of the program. Of kSum the switch would add bytes; of the others it makes the
// concatenation, and members reduce locally.
struct Collective {
  enum class Kind : std::uint8_t { kBarrier, kAllreduce, kReduce, kAllgather, kSum, kBroadcast };
  Kind kind = Kind::kBarrier;
  std::size_t bytes = 0;  // of each rank's contribution
  int root = 0;           // of kReduce and kBroadcast
  bool is_blocking = true;
  bool is_in_place = false;
};

struct RootlessPlan {
  static constexpr std::size_t kMostUnits = 8;  // of a call

  std::uint64_t seed = 0;
  int ranks = 2;
  std::uint32_t window = 2;
  std::size_t unit_bytes = 8;
  std::size_t most_in_flight = 1;  // calls of a rank
  bool has_whole_results = false;  // a rank sees a call's results once all are there
  std::vector<Collective> program;
  GroupFault fault = GroupFault::kNone;
  std::uint64_t event = 0;  // at which it is injected...
  bool is_at_end = false;   // ... or once a rank has ended its calls
  bool dies_later = false;  // a process ends, perhaps during the failover
  int more_faults = 0;      // of later groups, perhaps while they are set up
  bool has_slow_rank = false;
  bool has_absences = false;     // ranks compute for long outside MPI
  bool has_slow_link = false;    // on which control messages from one rank to another are late
  bool has_slow_set_up = false;  // one rank learns late that a group is ready
  std::uint64_t retry_after = 4;
  // A death: operations with the dead rank fail, and the others end all their calls. Else the
  // launcher ends the job after `events_to_end`.
  bool returns_errors = false;
  bool is_death_known = false;  // to all ranks, in the end; else where an operation failed
  std::uint64_t events_to_end = 0;

  bool is_healthy() const {
    return fault == GroupFault::kNone || fault == GroupFault::kRefused ||
           fault == GroupFault::kBroadcasts;
  }
};

RootlessPlan make_rootless_plan(std::uint64_t seed);
std::string to_text(const RootlessPlan& plan);

}  // namespace cepheus::coll::sim
