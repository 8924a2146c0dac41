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

namespace {

Hosts place(const Team& team, int ranks_per_host) {
  std::vector<int> leaders, inside, host_of;
  for (int each = 0; each < team.size(); ++each) {
    const int host = each / ranks_per_host;
    host_of.push_back(host);
    if (each % ranks_per_host == 0) leaders.push_back(each);
    if (host == team.self() / ranks_per_host) inside.push_back(each);
  }
  return {team.part(std::move(leaders)), team.part(std::move(inside)), std::move(host_of)};
}

}  // namespace

Caller::Caller(host::Communicator& comm, int ranks_per_host)
    : team_(Team::all(comm, reserve_tags(comm))), safeguard_(team_), team_algorithm_(team_) {
  if (ranks_per_host > 1) hosts_.emplace(place(team_, ranks_per_host));
  const Team& team = hosts_ ? hosts_->leaders : team_;
  if (team.self() >= 0) multicast_ = std::make_unique<Multicast>(team, [] {});
  if (hosts_) hosts_algorithm_.emplace(*hosts_, multicast_.get());
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
  if (hosts_algorithm_ && way == Way::kMulticast) {
    hosts_algorithm_->begin(*payload_, root_, blocking_);
    algorithm_ = &*hosts_algorithm_;
    return rc;
  }
  using Otherwise = TeamBroadcast::Otherwise;
  const bool is_saved = way != Way::kMulticast;
  team_algorithm_.begin({is_saved ? nullptr : multicast_.get(),
                         is_saved ? std::string_view(safeguard_.reason()) : "", *payload_, root_,
                         blocking_, blocking_ ? Otherwise::kSavedFunction : Otherwise::kTree});
  algorithm_ = &team_algorithm_;
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
  if (multicast_ != nullptr) multicast_->look_after();
}

bool Caller::close() {
  if (multicast_ == nullptr) return true;
  if (!multicast_->tear_down()) return false;
  multicast_->destroy_groups();
  multicast_->detach();
  return true;
}

}  // namespace cepheus::coll::fake
