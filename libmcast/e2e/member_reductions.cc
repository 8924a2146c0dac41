// Gathers of blocks that all members can work out, several under way. Each result is compared with
// all blocks. Rounds take turns: a block of the program's, a block in the result's memory, and a
// whole contribution in the result's memory, by one operation or another.
#include <mcast/reduce.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "libmcast/e2e/member.h"
#include "libmcast/e2e/pattern.h"

namespace cepheus::mcast::e2e {
namespace {

struct Reduction {
  mcast_op_t op{};
  std::vector<std::uint8_t> result;
  std::optional<mcast_status_t> status;
  std::uint64_t round = 0;
  Clock::time_point begun, ended;
};

void on_reduced(mcast_op_t* op, mcast_status_t status, std::size_t length, std::uint32_t) {
  const std::lock_guard lock(callback_mutex);
  auto& reduction = *static_cast<Reduction*>(op->user);
  if (reduction.status) std::abort();  // exactly once
  if (status == MCAST_OK && length != reduction.result.size()) std::abort();
  reduction.status = status;
  reduction.ended = Clock::now();
}

// Of each block in this round.
std::size_t size_of(const json& c, std::uint64_t round) {
  const std::size_t most = c.at("size");
  return c.value("mixed", false) ? (round * 2'654'435'761u >> 7) % (most + 1) : most;
}

std::vector<std::uint8_t> block_of(const json& c, std::uint64_t round, std::size_t member) {
  return pattern(c.at("seed").get<std::uint64_t>() + 1000 * round + member, size_of(c, round));
}

// All members' blocks, one after the other.
bool is_right(const json& c, const Reduction& reduction) {
  auto at = reduction.result.begin();
  for (std::size_t i = 0; i < c.at("members").get<std::size_t>(); ++i) {
    const auto block = block_of(c, reduction.round, i);
    if (!std::equal(block.begin(), block.end(), at)) return false;
    at += static_cast<std::ptrdiff_t>(block.size());
  }
  return true;
}

// Where all others contribute zeros, each of these operations brings the blocks together.
mcast_status_t reduce(mcast_group_h group, Reduction& one) {
  constexpr mcast_reduction_t kOperations[] = {MCAST_BOR, MCAST_SUM, MCAST_MAX, MCAST_BXOR};
  const mcast_reduction_t operation = kOperations[one.round / 3 % 4];
  std::uint8_t* const result = one.result.data();
  const std::size_t bytes = one.result.size();
  const bool is_wide = bytes % sizeof(std::uint64_t) == 0 && operation != MCAST_MAX;
  return is_wide ? mcast_reduce(group, result, nullptr, result, nullptr,
                                bytes / sizeof(std::uint64_t), operation, MCAST_UINT64, &one.op)
                 : mcast_reduce(group, result, nullptr, result, nullptr, bytes, operation,
                                MCAST_UINT8, &one.op);
}

mcast_status_t begin(mcast_group_h group, const json& c, Reduction& one) {
  const std::size_t size = size_of(c, one.round), index = c.at("index");
  const auto block = block_of(c, one.round, index);
  one.op = {on_reduced, &one};
  one.begun = Clock::now();
  std::uint8_t* const result = one.result.data();
  if (size == 0) return mcast_barrier(group, &one.op);
  if (one.round % 3 == 0) {
    return mcast_gather(group, block.data(), size, index * size, result, one.result.size(),
                        &one.op);
  }
  std::ranges::fill(one.result, one.round % 3 == 1 ? 0 : 0xEE);
  std::ranges::copy(block, result + index * size);
  if (one.round % 3 == 1) return reduce(group, one);
  return mcast_gather(group, result + index * size, size, index * size, result, one.result.size(),
                      &one.op);
}

}  // namespace

// Brings "members" blocks of "size" bytes together, "rounds" times, with up to "under_way"
// operations; "mixed": blocks of up to that size. Without bytes it is a barrier. Ends with the first
// error.
json Member::gather(Group& g, const json& c) {
  const std::uint64_t rounds = c.at("rounds");
  const auto most = c.value("under_way", std::size_t{1});
  std::deque<std::unique_ptr<Reduction>> open;
  std::vector<double> times;
  std::uint64_t begun = 0, right = 0, wrong = 0;
  mcast_status_t failure = MCAST_OK;
  std::string text;
  const auto start = [&] {
    auto next = std::make_unique<Reduction>();
    next->round = begun;
    next->result.resize(size_of(c, begun) * c.at("members").get<std::size_t>());
    const mcast_status_t status = begin(g.handle, c, *next);
    if (status == MCAST_ERR_AGAIN) return false;
    if (status == MCAST_INPROGRESS) {
      open.push_back(std::move(next));
      ++begun;
      return true;
    }
    failure = status;
    text = mcast_last_error();
    return false;
  };
  while (failure == MCAST_OK && (begun < rounds || !open.empty())) {
    while (begun < rounds && open.size() < most && start()) {
    }
    if (open.empty()) {
      progress();
      continue;
    }
    if (!wait([&] { return open.front()->status.has_value(); })) break;
    const auto done = std::move(open.front());
    open.pop_front();
    if (*done->status != MCAST_OK) {
      failure = *done->status;
    } else {
      ++(is_right(c, *done) ? right : wrong);
      times.push_back(std::chrono::duration<double, std::micro>(done->ended - done->begun).count());
    }
  }
  // The operations own their memory until they end.
  if (!wait([&] {
        return std::ranges::all_of(open, [](const auto& each) { return each->status.has_value(); });
      })) {
    std::abort();
  }
  std::ranges::sort(times);
  return {{"status", failure},
          {"text", text},
          {"right", right},
          {"wrong", wrong},
          {"least_us", times.empty() ? 0 : times.front()},
          {"median_us", times.empty() ? 0 : times[times.size() / 2]}};
}

}  // namespace cepheus::mcast::e2e
