// The steps of a simulated job, and its faults: all from one seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/core/reproducible.h"
#include "nic-emulator/engine/nic_profile.h"

namespace cepheus::coll::sim {

enum class Fault : std::uint8_t {
  kNone,
  kDisconnected,         // nothing moves from or to one rank, for a while
  kDisconnectedForLong,  // ... for ever
  kFailed,               // one end of a group fails
  kDeaf,                 // one end acknowledges arrivals and loses them
  kMute,                 // one end hands no completion over
  kRefused,              // switches refuse the first registrations
  kTaken,                // another group has the identifier, once
  kDeath,                // the process of one rank ends
  kCount
};
const char* name(Fault fault);

// Messages that MPI refuses to one rank, which the program has asked for errors.
enum class Refused : std::uint8_t {
  kNone,
  kAgreement,     // from some call on: receives of the safeguard's agreement on a reduction
  kConfirmation,  // a receive of blocks, of a reduction right behind an agreement
  kBlocks,        // a receive or a send of blocks, of any reduction
  kSetUp          // a receive or a send that a group of reductions needs
};
inline constexpr std::size_t kRefusals = 5;
const char* name(Refused refused);

struct JobPlan {
  std::uint64_t seed = 0;
  int ranks = 2;
  int ranks_per_host = 1;
  std::size_t steps = 60;     // calls
  bool reduces = false;       // half of the calls are reductions
  bool reduces_long = false;  // ... and some of them long ones
  // Of long floating-point sums: the parameter, and the group.
  Reproducible reproducible = Reproducible::kRank;
  bool is_flat = true, has_ascending_addresses = true, has_memory_for_sums = true;
  Fault fault = Fault::kNone;
  // The event behind which it strikes, or the set-up of a group; else at a random broadcast.
  std::optional<std::size_t> event, set_up;
  // kFailed: one lane serves all broadcasts before the fault, and the other one those behind it. The
  // fault strikes a rank between the two, so the others set the new lane up without knowing of it.
  bool fails_between_lanes = false;
  // The number of further faults, perhaps while the failover from the last one is not over.
  int more_faults = 0;
  bool has_slow_rank = false;    // which looks at its broadcast and its NIC rarely
  bool has_slow_link = false;    // on which control messages from one rank to another are late
  bool has_slow_set_up = false;  // one rank learns late that a group is ready
  bool has_gaps = false;         // some data is not contiguous
  bool copies_little = false;    // messages leave from the program's memory
  bool requires_multicast = false;
  bool has_safeguard = false;  // which compares the ways often; broadcasts have few sizes
  Refused refused = Refused::kNone;
  // Bytes of the messages that the groups' ways take; 0: any number. A member posts all of a unit's
  // pieces at once: the simulated watchdog knows of no members that are late, but alive.
  std::size_t portion = 0;
  // Make of all NICs. One that gives up on a receiver which is not ready fails its end of a group.
  const rnic::NicProfile* nic = rnic::nic_profiles().data();
  // A death: the launcher ends the job after this number of events. Until then the others wait, or
  // their operations with the dead rank fail.
  std::size_t events_to_end = 0;
  bool returns_errors = false;

  bool adds_by_rank() const { return is_flat && has_ascending_addresses; }
  bool networks_sums() const {
    return has_memory_for_sums && (adds_by_rank() || reproducible != Reproducible::kRank);
  }
  bool limits_rnr_retries() const;
  // An identifier that is in use is drawn again.
  bool is_healthy() const {
    return (fault == Fault::kNone || fault == Fault::kTaken) && !limits_rnr_retries() &&
           (refused == Refused::kNone || refused == Refused::kAgreement);
  }
};

JobPlan make_plan(std::uint64_t seed);
std::string to_text(const JobPlan& plan);

}  // namespace cepheus::coll::sim
