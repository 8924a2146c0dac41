// A seed gives the volume's shape and up to some twenty faults, most of them within 150 ms. Later
// kinds of fault have generators of their own, so that adding one changes no other fault of a seed.
// Plans that promise something, such as one hanging disk, remove the faults that would excuse its
// failure. Time limits are a hundredth of the live ones.
#include "replica/sim/volume_plan.h"

#include <algorithm>

#include "fabric-sim/core/random.h"

namespace cepheus::replica::sim {

using namespace std::chrono_literals;

namespace {

// Power failures everywhere, and replaced disks, near the time of another fault.
void add_losses(VolumePlan& plan, cepheus::sim::Random& random) {
  const auto add = [&](Fault::Kind kind) {
    const std::size_t other = plan.faults.empty() ? 0 : random.below(plan.faults.size());
    const bool is_near = !plan.faults.empty() && random.chance(0.7);
    const Instant at = is_near ? plan.faults[other].at + random.between(Duration{0}, Duration{10ms})
                               : Instant{random.between(Duration{0}, Duration{150ms})};
    plan.faults.push_back({kind, at, random.between(0, plan.replicas - 1), random.between(0, 1),
                           random.between(Duration{1ms}, Duration{20ms})});
  };
  for (unsigned i = random.chance(0.25) ? random.between(1, 3) : 0; i > 0; --i) {
    add(Fault::Kind::kPowerLoss);
  }
  for (unsigned i = random.chance(0.15) ? random.between(1, 2) : 0; i > 0; --i) {
    add(Fault::Kind::kNewDisk);
  }
}

Fault hang(cepheus::sim::Random& random, unsigned replicas) {
  Fault fault{Fault::Kind::kHungDisk, Instant{random.between(Duration{0}, Duration{150ms})},
              random.between(0, replicas - 1), random.between(0, 2)};
  // Evicted after 100 ms and more.
  fault.length =
      random.between(Duration{1ms}, random.chance(0.5) ? Duration{30ms} : Duration{300ms});
  return fault;
}

// A disk that hangs for ever must affect no other replica, nor do later faults of its own replica
// count. The writer has begun by then: it needs promises of all.
void let_one_disk_hang(VolumePlan& plan, cepheus::sim::Random& random) {
  plan.hangs_alone = true;
  plan.replicas = std::max(plan.replicas, 2u);
  Fault fault = hang(random, plan.replicas);
  fault.at = Instant{random.between(Duration{20ms}, Duration{150ms})};
  fault.length = 1h;
  std::erase_if(plan.faults, [&](const Fault& other) {
    const bool is_kind =
        other.kind == Fault::Kind::kPause || other.kind == Fault::Kind::kReplicaCrash;
    const bool is_its_own = is_kind && other.replica == fault.replica && other.at > fault.at;
    return !is_its_own && other.kind != Fault::Kind::kGroupFails;
  });
  plan.faults.push_back(fault);
}

// Hanging disks have a generator of their own, so the seed's other faults stay the same.
void add_hangs(VolumePlan& plan, std::uint64_t seed) {
  cepheus::sim::Random random(~seed);
  if (random.chance(0.05)) return let_one_disk_hang(plan, random);
  for (unsigned i = random.chance(0.25) ? random.between(1, 3) : 0; i > 0; --i) {
    Fault fault = hang(random, plan.replicas);
    if (!plan.faults.empty() && random.chance(0.6)) {
      fault.at = plan.faults[random.below(plan.faults.size())].at +
                 random.between(Duration{0}, Duration{10ms});
    }
    plan.faults.push_back(fault);
  }
}

// The others are in sync all the time: their requests end without that replica.
void let_fabric_refuse_one(VolumePlan& plan, std::uint64_t seed) {
  cepheus::sim::Random random(~seed * 2);
  if (plan.hangs_alone || !random.chance(0.05)) return;
  plan.replicas = std::max(plan.replicas, 2u);
  const Fault fault{.kind = Fault::Kind::kRefused,
                    .at = Instant{random.between(Duration{20ms}, Duration{150ms})},
                    .replica = random.between(0, plan.replicas - 1)};
  std::erase_if(plan.faults, [&](const Fault& other) {
    switch (other.kind) {
      case Fault::Kind::kWriterCrash:
      case Fault::Kind::kWriterStall:
      case Fault::Kind::kRival:
      case Fault::Kind::kGroupFails:
        return false;
      case Fault::Kind::kReplicaCrash:
      case Fault::Kind::kPause:
      case Fault::Kind::kCut:
        return other.replica != fault.replica;
      default:
        return true;
    }
  });
  plan.faults.push_back(fault);
}

void pause_writer(VolumePlan& plan, std::uint64_t seed) {
  cepheus::sim::Random random(~seed * 3);
  if (!random.chance(0.05)) return;
  plan.faults.push_back({.kind = Fault::Kind::kWriterPause,
                         .at = Instant{random.between(Duration{20ms}, Duration{150ms})},
                         .length = random.between(Duration{6ms}, Duration{40ms})});
}

// Not where a seed needs replicas without a fault.
void replace_all_disks(VolumePlan& plan, std::uint64_t seed) {
  cepheus::sim::Random random(~seed * 4);
  const bool is_one_refused = std::ranges::any_of(
      plan.faults, [](const Fault& fault) { return fault.kind == Fault::Kind::kRefused; });
  if (!random.chance(0.1) || plan.hangs_alone || is_one_refused) return;
  for (unsigned i = random.between(1, 2); i > 0; --i) {
    plan.faults.push_back({.kind = Fault::Kind::kNewDisks,
                           .at = Instant{random.between(Duration{5ms}, Duration{150ms})},
                           .length = random.between(Duration{1us}, Duration{30ms})});
  }
}

void add_writer_crashes(VolumePlan& plan, cepheus::sim::Random& random) {
  // A writer and a replica crash at about the same time: the likeliest place of errors.
  if (random.chance(0.4)) {
    plan.faults.push_back(
        {random.chance(0.7) ? Fault::Kind::kWriterCrash : Fault::Kind::kWriterStall,
         (plan.faults.empty() ? Instant{50ms} : plan.faults.front().at) +
             random.between(Duration{0}, Duration{15ms}),
         0, random.between(0, 25), random.between(Duration{5ms}, Duration{60ms})});
  }
  // A writer crashes among its first writes, which no bitmap has before.
  if (random.chance(0.3)) {
    plan.faults.push_back({Fault::Kind::kWriterCrash,
                           Instant{random.between(Duration{500us}, Duration{3ms})}, 0,
                           random.between(0, 60), random.between(Duration{4ms}, Duration{20ms})});
  }
  // A writer crashes just after it evicted a silent replica.
  if (random.chance(0.2)) {
    const Fault pause{Fault::Kind::kPause, Instant{random.between(Duration{5ms}, Duration{100ms})},
                      random.between(0, plan.replicas - 1), 0,
                      random.between(Duration{11ms}, Duration{20ms})};
    plan.faults.push_back(pause);
    plan.faults.push_back({Fault::Kind::kWriterCrash,
                           pause.at + random.between(Duration{7ms}, Duration{10ms}), 0,
                           random.between(0, 40), random.between(Duration{4ms}, Duration{20ms})});
  }
}

}  // namespace

VolumePlan VolumePlan::of_seed(std::uint64_t seed) {
  cepheus::sim::Random random(seed * 2 + 1);
  VolumePlan plan;
  plan.replicas = random.chance(0.7) ? 3 : random.between(1, 4);
  plan.depth = random.between(1, 8);
  plan.copy_rate = random.chance(0.3) ? 1'000'000 : 0;
  plan.operations = random.between(40, 200);
  if (random.chance(0.4)) plan.fua_share = random.chance(0.5) ? 1 : 0.5;
  // In half of the volumes at most one host loses memory; in the others any host may, repeatedly.
  const unsigned forgetful = random.between(0, plan.replicas - 1);
  const bool loses_memory = random.chance(0.3);
  const bool is_one = random.chance(0.5);
  const unsigned count = random.between(0, 7);
  for (unsigned i = 0; i < count; ++i) {
    Fault fault{static_cast<Fault::Kind>(random.below(8)),
                Instant{random.between(Duration{0}, Duration{150ms})},
                random.between(0, plan.replicas - 1), random.between(0, 25),
                random.between(Duration{100us}, Duration{40ms})};
    if (fault.kind == Fault::Kind::kHostCrash) {
      if (!loses_memory) fault.kind = Fault::Kind::kReplicaCrash;
      fault.replica = loses_memory && is_one ? forgetful : fault.replica;
    }
    plan.faults.push_back(fault);
  }
  add_writer_crashes(plan, random);
  plan.is_direct = cepheus::sim::Random(seed * 2).chance(0.3);
  for (Fault& fault : plan.faults) {
    if (plan.is_direct && is_one && fault.kind == Fault::Kind::kReplicaCrash) {
      fault.replica = forgetful;
    }
  }
  add_losses(plan, random);
  add_hangs(plan, seed);
  let_fabric_refuse_one(plan, seed);
  pause_writer(plan, seed);
  replace_all_disks(plan, seed);
  std::ranges::sort(plan.faults, {}, &Fault::at);
  return plan;
}

WriterSettings VolumePlan::settings(const Rules& rules) const {
  WriterSettings settings;
  settings.replicas = replicas;
  settings.depth = depth;
  settings.geometry = {std::uint64_t{blocks} * kBlock, kBlock, chunk_blocks * kBlock};
  settings.copy_rate = copy_rate;
  // A hundredth of the live time limits, because delays are that short, too.
  settings.ping = 2500us;
  settings.silence = 10ms;
  settings.disk = 100ms;
  settings.rejoin = 5ms;
  settings.rejoin_most = 600ms;
  settings.reform = 500us;
  settings.clean = 15ms;
  settings.rules = rules;
  return settings;
}

const char* to_string(Fault::Kind kind) {
  constexpr const char* kNames[] = {"replica's program crashes",
                                    "replica's host crashes",
                                    "writer dies",
                                    "writer stalls",
                                    "second writer",
                                    "cut",
                                    "group fails",
                                    "replica stalls",
                                    "power failure everywhere",
                                    "new disk",
                                    "disk hangs",
                                    "replica dies, and the fabric refuses it",
                                    "writer stops",
                                    "new disks everywhere"};
  return kNames[static_cast<unsigned>(kind)];
}

}  // namespace cepheus::replica::sim
