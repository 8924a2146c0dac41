// The order of random draws is part of a seed: a new draw goes to the end, or has a generator of
// its own. Half of the jobs are short, so that the fault meets set-up or the first broadcasts. A
// third has two ranks a host, or three or four: then up to 9 ranks, else 2 to 6.
#include "collectives/sim/job_plan.h"

#include <random>

namespace cepheus::coll::sim {

const char* name(Fault fault) {
  constexpr const char* kNames[] = {"none",    "disconnected", "disconnected for long",
                                    "failed",  "deaf",         "mute",
                                    "refused", "taken",        "death"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Fault::kCount));
  return kNames[static_cast<std::size_t>(fault)];
}

const char* name(Refused refused) {
  constexpr const char* kNames[] = {"nothing", "its agreement", "a message behind an agreement",
                                    "a message with blocks", "a message of a group's set-up"};
  return kNames[static_cast<std::size_t>(refused)];
}

namespace {

// A draw of its own each, so that other parts of a seed's plan stay as they are.
Refused refused_of(const JobPlan& plan, bool may_be_agreement) {
  if (!plan.reduces) return Refused::kNone;
  if (may_be_agreement && plan.has_safeguard) return Refused::kAgreement;
  if (plan.has_safeguard && std::mt19937_64(plan.seed ^ 0xB10C)() % 2 == 0)
    return Refused::kConfirmation;
  const auto drawn = std::mt19937_64(plan.seed ^ 0x2EF5)() % 4;
  return drawn == 0 ? Refused::kBlocks : drawn == 1 ? Refused::kSetUp : Refused::kNone;
}

void crowd_hosts(JobPlan& plan) {
  std::mt19937_64 random(plan.seed ^ 0x4057);
  if (plan.ranks_per_host == 1 || random() % 2 == 0) return;
  plan.ranks_per_host = 3 + static_cast<int>(random() % 2);
  plan.ranks = plan.ranks_per_host + 1 +
               static_cast<int>(random() % static_cast<unsigned>(plan.ranks_per_host + 1));
}

// Of a generator of its own, so that other parts of a seed's plan stay as they are.
void draw_sums(JobPlan& plan) {
  std::mt19937_64 random(plan.seed ^ 0xF10A);
  plan.reproducible = static_cast<Reproducible>(random() % 3);
  plan.is_flat = random() % 4 != 0;
  plan.has_ascending_addresses = random() % 4 != 0;
  plan.has_memory_for_sums = random() % 8 != 0;
}

}  // namespace

bool JobPlan::limits_rnr_retries() const {
  rnic::NicConfig config;
  nic->apply(config);
  return config.manners.limits_rnr_retries;
}

JobPlan make_plan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  JobPlan plan;
  plan.seed = seed;
  // Of a stream of its own, so that other parts of a seed's plan stay as they are.
  const auto makes = rnic::nic_profiles();
  std::mt19937_64 of_its_own(~seed);
  plan.nic = &makes[of_its_own() % makes.size()];
  plan.reduces = of_its_own() % 2 == 0;
  const bool may_be_agreement = of_its_own() % 4 == 0;
  plan.fault = static_cast<Fault>(pick(static_cast<std::size_t>(Fault::kCount)));
  if (pick(3) == 0) {
    plan.ranks_per_host = 2;
    plan.ranks = 3 + static_cast<int>(pick(4));
  } else {
    plan.ranks = 2 + static_cast<int>(pick(4));
  }
  // Short jobs, in which the fault strikes at any step or while lanes are set up, and long ones.
  if (pick(2) == 0) {
    plan.steps = 3 + pick(5);
    if (pick(2) == 0)
      plan.event = pick(1500);
    else
      plan.set_up = pick(3);
  } else {
    plan.steps = 10 + pick(50);
  }
  if (pick(2) == 0 && !plan.is_healthy() && plan.fault != Fault::kDeath)
    plan.more_faults = 1 + static_cast<int>(pick(3));
  plan.has_slow_rank = pick(4) == 0;
  plan.has_slow_link = pick(4) == 0;
  plan.has_gaps = pick(3) == 0;
  plan.requires_multicast = pick(12) == 0;
  plan.events_to_end = pick(4000);
  plan.returns_errors = pick(2) == 0;
  plan.has_slow_set_up = pick(4) == 0;
  plan.has_safeguard = pick(3) == 0 && !plan.requires_multicast;
  plan.copies_little = pick(2) == 0;
  if (pick(3) == 0) plan.portion = 7 + pick(40);
  plan.fails_between_lanes = plan.fault == Fault::kFailed && of_its_own() % 2 == 0;
  if (plan.fails_between_lanes) {
    plan.event.reset();
    plan.set_up.reset();
  }
  crowd_hosts(plan);
  plan.refused = refused_of(plan, may_be_agreement);
  plan.reduces_long =
      plan.reduces && plan.ranks_per_host == 1 && std::mt19937_64(plan.seed ^ 0x10C5)() % 2 == 0;
  if (plan.reduces_long) draw_sums(plan);
  return plan;
}

std::string to_text(const JobPlan& plan) {
  std::string text = std::to_string(plan.ranks) + " ranks, " + std::to_string(plan.ranks_per_host) +
                     " a host, " + std::to_string(plan.steps) + " calls, fault " + name(plan.fault);
  if (plan.reduces) text += plan.reduces_long ? ", long reductions" : ", reductions";
  if (plan.reduces_long) {
    text += std::string(", sums by ") + kReproducible[static_cast<int>(plan.reproducible)];
    if (!plan.is_flat) text += ", not flat";
    if (!plan.has_ascending_addresses) text += ", addresses descend";
    if (!plan.has_memory_for_sums) text += ", no memory for sums";
  }
  if (plan.event) text += " at event " + std::to_string(*plan.event);
  if (plan.fails_between_lanes) text += " between two lanes";
  if (plan.set_up) text += " after set-up " + std::to_string(*plan.set_up);
  if (plan.more_faults > 0) text += ", " + std::to_string(plan.more_faults) + " more";
  if (plan.has_slow_rank) text += ", a slow rank";
  if (plan.has_slow_link) text += ", a slow link";
  if (plan.has_slow_set_up) text += ", slow set-up";
  if (plan.has_gaps) text += ", gaps";
  if (plan.copies_little) text += ", few copies";
  if (plan.portion > 0) text += ", messages of " + std::to_string(plan.portion) + " bytes";
  if (plan.has_safeguard) text += ", a safeguard";
  if (plan.refused != Refused::kNone)
    text += std::string(", a rank is refused ") + name(plan.refused);
  text += ", NICs of the make " + std::string(plan.nic->name);
  if (plan.requires_multicast) text += ", mode require";
  return text;
}

}  // namespace cepheus::coll::sim
