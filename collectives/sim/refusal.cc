// Of generators of its own, so that other parts of a seed's job stay as they are. Set-ups are rare, so
// most refusals of their messages begin with the job.
#include "collectives/sim/refusal.h"

#include <algorithm>
#include <random>

namespace cepheus::coll::sim {

Refusal::Refusal(const JobPlan& plan, const std::vector<Call>& program)
    : plan_(plan), program_(program) {
  const auto draw = [&](std::uint64_t stream) {
    std::mt19937_64 random(plan.seed ^ stream);
    rank_ = static_cast<int>(random() % static_cast<unsigned>(plan.ranks));
    return random;
  };
  switch (plan.refused) {
    case Refused::kNone:
      break;
    case Refused::kAgreement:
      from_ = draw(0xA6EE)() % plan.steps;
      tag_ = rank_ > 0 ? Tag::kPlan : Tag::kTimes;  // it is rank 0's child
      break;
    case Refused::kConfirmation:
      after_ = static_cast<int>(draw(0xB10C5)() % 2);
      tag_ = Tag::kBlocks;
      break;
    case Refused::kBlocks: {
      std::mt19937_64 random = draw(0xB10C6);
      from_ = random() % plan.steps;
      after_ = static_cast<int>(random() % 3);
      is_send_ = random() % 2 == 0;
      tag_ = plan.reduces_long && random() % 2 == 0 ? Tag::kPairs : Tag::kBlocks;
      break;
    }
    case Refused::kSetUp: {
      std::mt19937_64 random = draw(0x5E7);
      rank_ -= rank_ % plan.ranks_per_host;  // a member of the group
      from_ = random() % 3 == 0 ? random() % plan.steps : 0;
      after_ = static_cast<int>(random() % 2);
      choose_set_up_message(random() % 4);
      if (tag_ != Tag::kReductionControl) when_ = static_cast<fake::Mpi::Refuses>(random() % 3);
      break;
    }
  }
}

// Rank 0 leads the group. The first receive of control messages is the one of the first set-up: another
// one is tried again.
void Refusal::choose_set_up_message(std::size_t drawn) {
  if (drawn >= 2) {
    tag_ = Tag::kReductionControl;
    is_send_ = drawn == 2;
    if (!is_send_) from_ = 0, after_ = 0;
    return;
  }
  tag_ = drawn == 0 ? Tag::kReductionSetUp : Tag::kReductionOutcome;
  is_send_ = (rank_ == 0) == (tag_ == Tag::kReductionOutcome);
}

void Refusal::arm(fake::Mpi& mpi, const Team& team, int rank, std::size_t call,
                  bool confirms) const {
  mpi.refused_tag.reset();
  mpi.refused_send.reset();
  if (rank != rank_ || call < from_ || call >= program_.size()) return;
  if (program_[call].is_broadcast() && plan_.refused != Refused::kSetUp) return;
  if (plan_.refused != Refused::kAgreement && at_) return;
  if (plan_.refused == Refused::kConfirmation && !confirms) return;
  (is_send_ ? mpi.refused_send : mpi.refused_tag) = team.tag(tag_);
}

void Refusal::note(const fake::Mpi& mpi, std::size_t call) {
  if (at_ || mpi.refused() == 0) return;
  at_ = call;
  if (plan_.refused == Refused::kAgreement) end_from(call);
}

void Refusal::end_from(std::size_t call) { ends_from_ = std::min(ends_from_.value_or(call), call); }

bool Refusal::ends_nothing() const {
  const bool is_at_once = when_ == fake::Mpi::Refuses::kAtOnce;
  if (plan_.refused != Refused::kSetUp || is_send_) return false;
  return tag_ == (is_at_once ? Tag::kReductionOutcome : Tag::kReductionSetUp);
}

std::string Refusal::why_wrong(int rank, std::size_t call, bool is_saved, Code rc) const {
  const bool has_failed = rc != Code::kDone;
  if (!at_ || ends_nothing() || call < before())
    return has_failed ? " ends in error " + std::to_string(static_cast<int>(rc)) : "";
  if (has_failed || call < *at_) return "";
  if (ends_from_ && call >= *ends_from_) return " succeeds behind a failed agreement";
  // Control messages may be refused beside the call: members need them for an agreement.
  const bool is_part = rank == rank_ && tag_ != Tag::kReductionControl;
  if (call == *at_) return is_part ? " succeeds without a message that MPI has refused" : "";
  return is_saved ? "" : " succeeds, but MPI has refused a message before";
}

// The reduction before the refused one, or that one.
std::size_t Refusal::before() const {
  for (std::size_t call = *at_; call > 0; --call)
    if (!program_[call - 1].is_broadcast()) return call - 1;
  return *at_;
}

bool Refusal::may_end_both_ways(std::size_t call) const {
  if (!at_ || ends_nothing()) return false;
  if (call == *at_) return plan_.refused != Refused::kAgreement;
  return call == before();
}

}  // namespace cepheus::coll::sim
