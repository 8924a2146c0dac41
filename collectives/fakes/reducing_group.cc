// The switch and the NICs of a fake reducing group. A contribution is added as it arrives. A result
// is there once every member's contribution is. It is placed in the memory of the member's oldest
// receive; its completion comes apart, so that a failure can flush it.
#include "collectives/fakes/reducing_group.h"

#include <algorithm>
#include <utility>

#include "arithmetic/pairs.h"

namespace cepheus::coll::fake {

void ReducingGroup::contribute(int member, Unit unit) {
  end(member).units.push_back(std::move(unit));
}

std::optional<std::size_t> ReducingGroup::take_completion(int member) {
  End& own = end(member);
  if (own.completions.empty() || own.is_mute) return std::nullopt;
  const std::size_t bytes = own.completions.front();
  own.completions.pop_front();
  own.units.pop_front();
  ++own.first;
  return bytes;
}

std::vector<int> ReducingGroup::stopping() const {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(ends_.size()); ++i)
    if (end(i).is_stopping && !end(i).is_stopped) found.push_back(i);
  return found;
}

void ReducingGroup::end_stop(int member, std::mt19937_64& random) {
  End& own = end(member);
  own.is_stopped = true;
  const std::size_t left =
      own.is_mute ? 0 : static_cast<std::size_t>(random() % (own.completions.size() + 1));
  own.completions.resize(left);
}

std::uint64_t ReducingGroup::complete() const {
  return std::ranges::min(ends_, {}, &End::moved).moved;
}

std::vector<int> ReducingGroup::contributing() const {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(ends_.size()); ++i)
    if (end(i).moves() && end(i).moved < end(i).contributed()) found.push_back(i);
  return found;
}

void ReducingGroup::move_contribution(int member) {
  End& own = end(member);
  const std::uint64_t number = own.moved++;
  const Unit& unit = own.units[static_cast<std::size_t>(number - own.first)];
  if (sums_.size() <= number) sums_.resize(static_cast<std::size_t>(number) + 1);
  std::vector<std::byte>& sum = sums_[static_cast<std::size_t>(number)];
  if (unit.combiner && unit.combiner->depends_on_pairs()) {
    operands_[number][member] = unit.data;
    if (operands_[number].size() == ends_.size()) combine_operands(number, *unit.combiner);
    return;
  }
  if (unit.combiner && !sum.empty()) {
    arithmetic::Batch(*unit.combiner)
        .combine(reinterpret_cast<std::uint8_t*>(sum.data()),
                 reinterpret_cast<const std::uint8_t*>(unit.data.data()), sum.size());
    return;
  }
  sum.resize(unit.data.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = unit.adds ? static_cast<std::byte>(std::to_integer<unsigned>(sum[i]) +
                                                std::to_integer<unsigned>(unit.data[i]))
                       : sum[i] | unit.data[i];
  }
}

// Not by rank: the first member's values come last.
void ReducingGroup::combine_operands(std::uint64_t number, const arithmetic::Combiner& combiner) {
  std::vector<std::vector<std::byte>> all;
  for (auto& [member, data] : operands_[number]) all.push_back(std::move(data));
  operands_.erase(number);
  if (!adds_by_rank_) std::ranges::rotate(all, all.begin() + 1);
  const arithmetic::Batch batch(combiner);
  arithmetic::combine_in_pairs(all.size(), [&](std::size_t left, std::size_t right) {
    batch.combine(reinterpret_cast<std::uint8_t*>(all[left].data()),
                  reinterpret_cast<const std::uint8_t*>(all[right].data()), all[left].size());
  });
  sums_[static_cast<std::size_t>(number)] = std::move(all.front());
}

std::vector<int> ReducingGroup::receiving() const {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(ends_.size()); ++i)
    if (end(i).moves() && end(i).placed < complete()) found.push_back(i);
  return found;
}

void ReducingGroup::move_result(int member) {
  End& own = end(member);
  const std::uint64_t number = own.placed++;
  if (own.is_deaf) return;
  const std::vector<std::byte>& sum = sums_[static_cast<std::size_t>(number)];
  std::ranges::copy(sum, own.units[static_cast<std::size_t>(number - own.first)].result);
  own.completions.push_back(sum.size());
}

void ReducingGroup::fail(int member, bool shows) {
  end(member).has_failed = true;
  end(member).shows_failure = end(member).shows_failure || shows;
}

std::vector<int> ReducingGroup::stalled() const {
  std::vector<int> found;
  const bool is_whole = std::ranges::all_of(ends_, [](const End& each) { return each.moves(); });
  if (is_whole) return found;  // a member is late, or deaf: no NIC knows of a fault
  for (int i = 0; i < static_cast<int>(ends_.size()); ++i) {
    const End& each = end(i);
    if (!each.is_stopping && !each.shows_failure && each.placed < each.contributed())
      found.push_back(i);
  }
  return found;
}

bool ReducingGroup::is_over() const {
  return std::ranges::all_of(ends_, [](const End& each) { return each.is_stopped; });
}

}  // namespace cepheus::coll::fake
