#include "collectives/fakes/caller.h"

#include <cstring>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"

namespace cepheus::coll::fake {

void use_small_sizes() {
  Parameters& p = parameters();
  p = {};
  p.carrier = static_cast<int>(Carrier::kDirect);
  p.eager_limit = 256;
  p.eager_message = 64;
  p.safeguard_samples = 0;
  p.bulk_unit = 400;
  p.bulk_piece = 50;
  p.tree_segment = 100;
}

void use_safeguard() {
  Parameters& p = parameters();
  p.safeguard_samples = 500;
  p.safeguard_run = 1;
}

Code Gaps::pack(std::size_t offset, void* to, std::size_t length) {
  std::memcpy(to, memory_.data() + offset, length);
  return Code::kDone;
}

Code Gaps::unpack(std::size_t offset, const void* from, std::size_t length) {
  std::memcpy(memory_.data() + offset, from, length);
  return Code::kDone;
}

Caller::Caller(host::Communicator& comm, int ranks_per_host)
    : team_(Team::all(comm, reserve_tags(comm))), algorithms_(team_), safeguard_(team_) {
  std::vector<Identity> ranks;
  for (int rank = 0; rank < team_.size(); ++rank)
    ranks.push_back({static_cast<std::uint64_t>(rank / ranks_per_host), 1, 0, ""});
  const Placement placement = Placement::of(ranks);
  const int own = placement.host_of[static_cast<std::size_t>(team_.self())];
  leader_ = placement.hosts[static_cast<std::size_t>(own)].front();
  algorithms_.place(placement, [] {});
}

void Caller::begin(std::vector<std::byte>& memory, int root, bool blocking, bool has_gaps) {
  gaps_.emplace(memory);
  const Counting counted(true);
  if (has_gaps)
    payload_.emplace(*gaps_, memory.size());
  else
    payload_.emplace(memory.data(), memory.size());
  root_ = root;
  blocking_ = blocking;
  algorithm_ = nullptr;
}

Code Caller::choose_algorithm() {
  Way way = Way::kMulticast;
  const Code rc = safeguard_.choose(payload_->bytes(), blocking_, way);
  if (const auto judgement = safeguard_.take_judgement()) {
    const Counting uncounted(false);
    ++comparisons_;
    Way& known = ways_.emplace(judgement->sizes, Way::kMulticast).first->second;
    if (std::exchange(known, judgement->way) != judgement->way) ++changes_;
  }
  if (rc != Code::kDone) return rc;
  algorithm_ = way == Way::kMulticast
                   ? &algorithms_.begin(*payload_, root_, blocking_, "")
                   : &algorithms_.begin_other(*payload_, root_, blocking_, safeguard_.reason());
  return rc;
}

Code Caller::progress() {
  const Counting counted(true);
  if (algorithm_ == nullptr) {
    const Code rc = choose_algorithm();
    if (rc != Code::kDone) return rc;
  }
  const Code rc = algorithm_->progress();
  return rc == Code::kDone ? payload_->error() : rc;
}

void Caller::finish(Code rc) {
  const bool is_right = rc == Code::kDone || rc == Code::kNotServed;
  const bool is_timed = is_right && algorithm_ != nullptr && algorithm_->is_comparable();
  safeguard_.end(is_timed ? std::optional(algorithm_->route()) : std::nullopt);
  payload_.reset();
}

void Caller::look_after() {
  const Counting counted(true);
  (void)algorithms_.look_after();
}

bool Caller::close() {
  if (!algorithms_.tear_down()) return false;
  algorithms_.detach();
  return true;
}

}  // namespace cepheus::coll::fake
