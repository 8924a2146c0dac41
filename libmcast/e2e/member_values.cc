// Reductions of values that all members can work out, by one operation and type after the other. Each
// result is compared with all contributions, combined in pairs by index.
#include <mcast/reduce.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "libmcast/e2e/member.h"
#include "libmcast/e2e/pattern.h"
#include "wire/splitmix.h"

namespace cepheus::mcast::e2e {
namespace {

struct Kind {
  mcast_reduction_t operation;
  mcast_type_t type;
  std::size_t size;
  void (*combine)(std::uint8_t* result, const std::uint8_t* value);
  void (*narrow)(std::uint8_t* value) = nullptr;  // makes a number of any bits
};

template <typename T, typename Op>
constexpr Kind kind_of(mcast_reduction_t operation, mcast_type_t type, Op) {
  static_assert(std::endian::native == std::endian::little, "the wire's order");
  return {operation, type, sizeof(T), [](std::uint8_t* result, const std::uint8_t* value) {
            T a, b;
            std::memcpy(&a, result, sizeof a);
            std::memcpy(&b, value, sizeof b);
            a = static_cast<T>(Op()(a, b));
            std::memcpy(result, &a, sizeof a);
          }};
}

// `chosen`, unless an operand is a NaN: then the result is the one NaN that switches send. Of two
// zeros, `sign` has the result's sign.
template <typename T>
T with_rules(T a, T b, T chosen, bool sign) {
  if (std::isnan(a) || std::isnan(b)) return -std::numeric_limits<T>::quiet_NaN();
  if (a == 0 && b == 0) return sign ? -T(0) : T(0);
  return chosen;
}

constexpr auto kSum = [](auto a, auto b) { return a + b; };
constexpr auto kProduct = [](auto a, auto b) { return a * b; };
constexpr auto kLess = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    return with_rules(a, b, std::min(a, b), std::signbit(a) || std::signbit(b));
  } else {
    return std::min(a, b);
  }
};
constexpr auto kMore = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    return with_rules(a, b, std::max(a, b), std::signbit(a) && std::signbit(b));
  } else {
    return std::max(a, b);
  }
};
constexpr auto kAny = [](auto a, auto b) { return a != 0 || b != 0; };
constexpr auto kBoth = [](auto a, auto b) { return a != 0 && b != 0; };
constexpr auto kOneOf = [](auto a, auto b) { return (a != 0) != (b != 0); };
constexpr auto kSame = [](auto a, auto b) { return a & b; };

// Sums and products by unsigned types, which wrap.
constexpr Kind kKinds[] = {
    kind_of<std::uint64_t>(MCAST_SUM, MCAST_INT64, kSum),
    kind_of<std::int64_t>(MCAST_MAX, MCAST_INT64, kMore),
    kind_of<std::uint64_t>(MCAST_MAX, MCAST_UINT64, kMore),
    kind_of<double>(MCAST_MIN, MCAST_DOUBLE, kLess),
    kind_of<float>(MCAST_MAX, MCAST_FLOAT, kMore),
    kind_of<std::uint8_t>(MCAST_SUM, MCAST_INT8, kSum),
    kind_of<std::uint32_t>(MCAST_PROD, MCAST_INT32, kProduct),
    kind_of<std::int16_t>(MCAST_MIN, MCAST_INT16, kLess),
    kind_of<std::uint16_t>(MCAST_LXOR, MCAST_UINT16, kOneOf),
    kind_of<std::int64_t>(MCAST_LOR, MCAST_INT64, kAny),
    kind_of<std::int8_t>(MCAST_LAND, MCAST_INT8, kBoth),
    kind_of<std::uint32_t>(MCAST_BAND, MCAST_UINT32, kSame),
};

// Thirds of integers: their sums and products are rounded, so they depend on their pairs.
template <typename T>
void make_third(std::uint8_t* value) {
  std::int32_t bits;
  std::memcpy(&bits, value, sizeof bits);
  const T third = static_cast<T>(bits) / 3;
  std::memcpy(value, &third, sizeof third);
}

template <typename T, typename Op>
constexpr Kind sum_of(mcast_reduction_t operation, mcast_type_t type, Op op) {
  Kind kind = kind_of<T>(operation, type, op);
  kind.narrow = make_third<T>;
  return kind;
}

// Of groups with floating_sums.
constexpr Kind kFloatingKinds[] = {
    sum_of<double>(MCAST_SUM, MCAST_DOUBLE, kSum),
    sum_of<float>(MCAST_SUM, MCAST_FLOAT, kSum),
    kind_of<std::uint64_t>(MCAST_SUM, MCAST_INT64, kSum),
    sum_of<double>(MCAST_PROD, MCAST_DOUBLE, kProduct),
    kind_of<float>(MCAST_MAX, MCAST_FLOAT, kMore),
};

// Any bits. A quarter of the values is 0, at other indices for each member and round: a logical
// result of all members is as often true as false.
std::vector<std::uint8_t> contribution_of(const json& c, const Kind& kind, std::uint64_t round,
                                          std::size_t member) {
  const std::uint64_t seed = 1000 * round + member;
  auto count = c.at("count").get<std::size_t>();
  if (c.value("mixed", false)) count = 1 + (round * 2'654'435'761u >> 7) % count;
  auto bytes = pattern(seed, count * kind.size);
  for (std::size_t i = 0; i < bytes.size(); i += kind.size) {
    if (kind.narrow != nullptr) kind.narrow(&bytes[i]);
    if (wire::splitmix(seed, i / kind.size) % 4 != 0) continue;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i), kind.size, std::uint8_t{0});
  }
  return bytes;
}

// Of `members` members from `first` on: of the largest power of two of them, and of the others.
std::vector<std::uint8_t> result_of(const json& c, const Kind& kind, std::uint64_t round,
                                    std::size_t first, std::size_t members) {
  if (members == 1) return contribution_of(c, kind, round, first);
  const std::size_t half = std::bit_ceil(members) / 2;
  auto left = result_of(c, kind, round, first, half);
  const auto right = result_of(c, kind, round, first + half, members - half);
  for (std::size_t i = 0; i < left.size(); i += kind.size) kind.combine(&left[i], &right[i]);
  return left;
}

struct Call {
  mcast_op_t op{};
  const Kind* kind = nullptr;
  std::uint64_t round = 0;
  std::vector<std::uint8_t> contribution, result;  // in place, there is no result
  std::optional<mcast_status_t> status;

  std::vector<std::uint8_t>& results() { return result.empty() ? contribution : result; }
};

void on_values(mcast_op_t* op, mcast_status_t status, std::size_t, std::uint32_t) {
  const std::lock_guard lock(callback_mutex);
  static_cast<Call*>(op->user)->status = status;
}

std::span<const Kind> kinds_of(const json& c) {
  return c.value("floating", false) ? std::span<const Kind>(kFloatingKinds) : kKinds;
}

std::unique_ptr<Call> call_of(const json& c, std::uint64_t round) {
  const std::span<const Kind> kinds = kinds_of(c);
  auto call = std::make_unique<Call>();
  call->op = {on_values, call.get()};
  call->kind = &kinds[(c.value("from", 0u) + round) % kinds.size()];
  call->round = round;
  call->contribution = contribution_of(c, *call->kind, round, c.at("index").get<std::size_t>());
  if (round % 2 == 0) call->result.resize(call->contribution.size());
  return call;
}

mcast_status_t start(mcast_group_h group, Call& call) {
  std::uint8_t* const contribution = call.contribution.data();
  return mcast_reduce(group, contribution, nullptr, call.results().data(), nullptr,
                      call.contribution.size() / call.kind->size, call.kind->operation,
                      call.kind->type, &call.op);
}

}  // namespace

// "rounds" rounds over "count" values each; "mixed": over up to that number. "from": the kind of the
// first round. "floating": sums of floating-point numbers among them. Each second one is in place. Up
// to "under_way" calls are under way. Ends with the first error.
json Member::reduce(Group& g, const json& c) {
  const std::uint64_t rounds = c.at("rounds");
  const auto most = c.value("under_way", std::size_t{1});
  std::deque<std::unique_ptr<Call>> open;
  std::uint64_t begun = 0, right = 0, wrong = 0;
  mcast_status_t failure = MCAST_OK;
  std::string text;
  std::unique_ptr<Call> next;
  const auto is_refused = [&] {
    if (!next) next = call_of(c, begun);
    const mcast_status_t status = start(g.handle, *next);
    if (status == MCAST_INPROGRESS) {
      open.push_back(std::move(next));
      ++begun;
    } else if (status != MCAST_ERR_AGAIN) {
      failure = status;
      text = mcast_last_error();
    }
    return status != MCAST_INPROGRESS;
  };
  while (failure == MCAST_OK && (begun < rounds || !open.empty())) {
    while (begun < rounds && open.size() < most && !is_refused()) {
    }
    if (open.empty()) {
      progress();
      continue;
    }
    if (!wait([&] { return open.front()->status.has_value(); }))
      std::abort();  // it owns the memory
    const auto ended = std::move(open.front());
    open.pop_front();
    failure = *ended->status;
    if (failure == MCAST_OK) {
      const auto members = c.at("members").get<std::size_t>();
      const auto expected = result_of(c, *ended->kind, ended->round, 0, members);
      ++(ended->results() == expected ? right : wrong);
    }
  }
  if (!wait([&] {
        return std::ranges::all_of(open, [](const auto& each) { return each->status.has_value(); });
      })) {
    std::abort();
  }
  return {{"status", failure},
          {"text", text},
          {"right", right},
          {"wrong", wrong},
          {"kinds", kinds_of(c).size()}};
}

}  // namespace cepheus::mcast::e2e
