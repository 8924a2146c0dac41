// Named counters: an enumeration whose lines are those of one table, and the values.
//
// A table is a file of lines CEPHEUS_COUNTER(kDropTtl, "drop_ttl", "time to live used up"); a
// switch's has each counter's part in the balance before the text. A table is included once for the
// enumerators and once for their texts, and undefines the macro at its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cepheus::wire {

struct CounterText {
  std::string_view name;  // as programs print it
  std::string_view help;  // what it counts
};

// Counters of an enumeration that ends with kCount.
template <typename Counter>
class CounterValues {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t operator[](Counter c) const { return values_[static_cast<std::size_t>(c)]; }
  std::uint64_t& operator[](Counter c) { return values_[static_cast<std::size_t>(c)]; }
  void clear() { values_ = {}; }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Counter::kCount)> values_{};
};

}  // namespace cepheus::wire
