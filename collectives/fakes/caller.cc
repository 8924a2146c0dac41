#include "collectives/fakes/caller.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/fakes/allocations.h"
#include "collectives/group/transport.h"

namespace cepheus::coll::fake {

void use_small_sizes() {
  Transport::instance().forget_registrations();
  Parameters& p = parameters();
  p = {};
  p.carrier = static_cast<int>(Carrier::kDirect);
  p.eager_limit = 256;
  p.eager_message = 64;
  p.safeguard_samples = 0;
  p.collectives = kAllCollectives;
  p.served = kAllServed;
  p.bulk_unit = 400;
  p.bulk_piece = 50;
  p.tree_segment = 100;
}

void use_safeguard() {
  Parameters& p = parameters();
  p.safeguard_samples = 500;
  p.safeguard_run = 1;
}

void use_long_reductions() {
  Parameters& p = parameters();
  p.most_gathered = 200;
  p.reduction_limit = 1 << 20;
  p.reduction_chunk = 100;
}

Code Gaps::pack(std::size_t offset, void* to, std::size_t length) {
  std::memcpy(to, memory_.data() + offset, length);
  return Code::kDone;
}

Code Gaps::unpack(std::size_t offset, const void* from, std::size_t length) {
  std::memcpy(memory_.data() + offset, from, length);
  return Code::kDone;
}

std::byte mix(std::byte left, std::byte right) {
  return static_cast<std::byte>(std::to_integer<unsigned>(left) * 3 +
                                std::to_integer<unsigned>(right) * 5 + 1);
}

Code Mixing::apply(const void* left, void* right, std::size_t elements) {
  const auto* const from = static_cast<const std::byte*>(left);
  auto* const to = static_cast<std::byte*>(right);
  for (std::size_t i = 0; i < elements; ++i) to[i] = mix(from[i], to[i]);
  return Code::kDone;
}

namespace {

using Bytes = std::vector<std::byte>;

// Sums of floats depend on their order, because each is rounded.
Bytes contribution(const ReductionShape& shape, int rank, std::size_t seed,
                   const Library& library = {}) {
  Bytes bytes(shape.block);
  for (std::size_t i = 0; library && i < bytes.size() / sizeof(float); ++i) {
    const float value =
        0.1F * static_cast<float>(seed * 131 + static_cast<std::size_t>(rank) * 37 + i * 7 + 1);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  if (library) return bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(seed * 131 + static_cast<std::size_t>(rank) * 37 + i * 7 + 1);
  return bytes;
}

// right = left op right.
void apply(const Library& library, Bytes& left, Bytes& right) {
  const auto values = [](Bytes& bytes) { return reinterpret_cast<std::uint8_t*>(bytes.data()); };
  if (library)
    arithmetic::Batch(*library).combine(values(right), values(left), right.size());
  else
    (void)Mixing().apply(left.data(), right.data(), left.size());
}

// In pairs by rank.
Bytes reduced(std::vector<Bytes> blocks, const Library& library) {
  while (blocks.size() > 1) {
    std::vector<Bytes> next;
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      const std::size_t last = std::min(i + 1, blocks.size() - 1);
      if (last > i) apply(library, blocks[i], blocks[last]);
      next.push_back(std::move(blocks[last]));
    }
    blocks = std::move(next);
  }
  return blocks.front();
}

}  // namespace

Bytes memory_before(const ReductionShape& shape, int ranks, int rank, std::size_t seed,
                    const Library& library) {
  const Bytes own = contribution(shape, rank, seed, library);
  if (shape.collective != Collective::kAllgather) return own;
  Bytes all(shape.block * static_cast<std::size_t>(ranks), std::byte{0xEE});
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(shape.block) * rank);
  return all;
}

Bytes memory_after(const ReductionShape& shape, int ranks, int rank, std::size_t seed,
                   const Library& library, Pairs pairs) {
  if (shape.collective == Collective::kReduce && shape.root != rank)
    return contribution(shape, rank, seed, library);
  std::vector<Bytes> blocks;
  for (int each = 0; each < ranks; ++each)
    blocks.push_back(contribution(shape, each, seed, library));
  if (pairs == Pairs::kOthers) std::ranges::rotate(blocks, blocks.begin() + 1);
  if (shape.collective != Collective::kAllgather) return reduced(std::move(blocks), library);
  Bytes all;
  for (const Bytes& each : blocks) all.insert(all.end(), each.begin(), each.end());
  return all;
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

void Caller::begin(const ReductionShape& shape, std::vector<std::byte>& memory, bool blocking,
                   Code data, const Library& library) {
  const Counting counted(true);
  reduction_ = shape;
  blocking_ = blocking;
  const bool is_gather = shape.collective == Collective::kAllgather;
  const auto own = is_gather ? static_cast<std::size_t>(team_.self()) * shape.block : 0;
  const bool has_result = shape.collective == Collective::kAllreduce || is_gather ||
                          (shape.collective == Collective::kReduce && shape.root == team_.self());
  data_ = {{memory.data() + own, shape.block},
           {memory.data(), has_result ? memory.size() : 0},
           library ? nullptr : &mixing_,
           library};
  if (data != Code::kDone) data_.contribution.lose_data(data);
  algorithm_ = nullptr;
}

SizeClass Caller::sizes() const {
  if (!reduction_) return {Collective::kBcast, payload_->bytes(), blocking_};
  return {reduction_->collective, reduction_->block, blocking_};
}

Code Caller::choose_algorithm() {
  confirms_ = false;
  if (is_long_one() && !algorithms_.may_network(data_)) {
    algorithm_ = &algorithms_.begin_long(*reduction_, data_, false, {Way::kOther},
                                         algorithms_.why_not_network(data_));
    return Code::kDone;
  }
  if (!is_compared()) {
    algorithm_ = &algorithms_.begin_long(*reduction_, data_, false, {}, "");
    return Code::kDone;
  }
  Choice choice;
  const Code rc = safeguard_.choose(sizes(), choice);
  if (const auto judgement = safeguard_.take_judgement()) {
    const Counting uncounted(false);
    ++comparisons_;
    Way& known = ways_.emplace(judgement->sizes, Way::kNetwork).first->second;
    if (std::exchange(known, judgement->way) != judgement->way) ++changes_;
  }
  if (rc != Code::kDone) return rc;
  confirms_ = choice.confirms;
  const bool is_network = choice.way == Way::kNetwork;
  const std::string_view why = is_network ? std::string_view() : safeguard_.reason();
  algorithm_ = is_long_one() ? &algorithms_.begin_long(*reduction_, data_, false, choice, why)
               : reduction_  ? &algorithms_.begin(*reduction_, data_, blocking_, choice, why)
               : is_network  ? &algorithms_.begin(*payload_, root_, blocking_, why)
                             : &algorithms_.begin_other(*payload_, root_, blocking_, why);
  return rc;
}

Code Caller::progress() {
  const Counting counted(true);
  if (algorithm_ == nullptr) {
    const Code rc = choose_algorithm();
    if (rc != Code::kDone) return rc;
  }
  const Code rc = algorithm_->progress();
  if (rc != Code::kDone) return rc;
  return payload_ ? payload_->error() : data_.result.error();
}

void Caller::finish(Code rc) {
  const bool is_right = rc == Code::kDone || rc == Code::kNotServed;
  const bool is_timed = is_right && algorithm_ != nullptr && algorithm_->is_comparable();
  if (is_right || (algorithm_ != nullptr && algorithm_->has_met_all())) {
    safeguard_.end(is_timed ? std::optional(algorithm_->route()) : std::nullopt);
  } else {
    safeguard_.fail(algorithm_ != nullptr && algorithm_->is_refused());
    if (!payload_ || !is_mistake(rc)) host::retire_tags(team_.comm());
  }
  payload_.reset();
  reduction_.reset();
}

void Caller::look_after() {
  const Counting counted(true);
  (void)algorithms_.look_after();
}

bool Caller::close() {
  if (!algorithms_.tear_down()) return false;
  if (algorithms_.has_given_up() || safeguard_.has_failed()) host::retire_tags(team_.comm());
  algorithms_.detach();
  return true;
}

}  // namespace cepheus::coll::fake
