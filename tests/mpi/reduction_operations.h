// Operations of reductions, predefined and user-defined, values for them, and the result that every
// rank must get: MPI_Reduce_local of all contributions, pairwise by rank.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/mpi/random_types.h"

namespace reductions {

using namespace random_types;

enum Family : unsigned {
  kSigned = 1,
  kUnsigned = 2,
  kAddress = 4,  // MPI_AINT and its kin: signed, without logical operations
  kFloating = 8,
  kComplex = 16,
  kBits = 32,
  kLogical = 64,
  kPair = 128,
};

// A predefined type: a value of `size` bytes, and of a pair the index at `index_at`. MPI may write
// the bytes between them and up to `extent`.
struct Numbers {
  const char* name;
  MPI_Datatype type;
  Family family;
  int size, index_at, extent;

  Map map() const {
    Map map;
    map.elements = {{{type, size}, 0}};
    if (family == kPair) map.elements.push_back({{MPI_INT, 4}, index_at});
    map.upper = extent;
    return map;
  }
};

inline constexpr int kLongDouble = 10;  // bytes of x86's; the rest of 16 is padding

inline const std::vector<Numbers>& all_numbers() {
  static const std::vector<Numbers> all = {
      {"MPI_INT8_T", MPI_INT8_T, kSigned, 1, 0, 1},
      {"MPI_SHORT", MPI_SHORT, kSigned, 2, 0, 2},
      {"MPI_INT", MPI_INT, kSigned, 4, 0, 4},
      {"MPI_LONG", MPI_LONG, kSigned, 8, 0, 8},
      {"MPI_INT64_T", MPI_INT64_T, kSigned, 8, 0, 8},
      {"MPI_UINT8_T", MPI_UINT8_T, kUnsigned, 1, 0, 1},
      {"MPI_UINT16_T", MPI_UINT16_T, kUnsigned, 2, 0, 2},
      {"MPI_UNSIGNED", MPI_UNSIGNED, kUnsigned, 4, 0, 4},
      {"MPI_UINT64_T", MPI_UINT64_T, kUnsigned, 8, 0, 8},
      {"MPI_AINT", MPI_AINT, kAddress, 8, 0, 8},
      {"MPI_COUNT", MPI_COUNT, kAddress, 8, 0, 8},
      {"MPI_FLOAT", MPI_FLOAT, kFloating, 4, 0, 4},
      {"MPI_DOUBLE", MPI_DOUBLE, kFloating, 8, 0, 8},
      {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, kFloating, kLongDouble, 0, 16},
      {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, kComplex, 8, 0, 8},
      {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, kComplex, 16, 0, 16},
      {"MPI_BYTE", MPI_BYTE, kBits, 1, 0, 1},
      {"MPI_C_BOOL", MPI_C_BOOL, kLogical, 1, 0, 1},
      {"MPI_2INT", MPI_2INT, kPair, 4, 4, 8},
      {"MPI_SHORT_INT", MPI_SHORT_INT, kPair, 2, 4, 8},
      {"MPI_LONG_INT", MPI_LONG_INT, kPair, 8, 8, 16},
      {"MPI_FLOAT_INT", MPI_FLOAT_INT, kPair, 4, 4, 8},
      {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, kPair, 8, 8, 16},
  };
  return all;
}

struct Predefined {
  const char* name;
  MPI_Op op;
  unsigned families;
};

inline const std::vector<Predefined>& all_predefined() {
  constexpr unsigned kIntegers = kSigned | kUnsigned;
  static const std::vector<Predefined> all = {
      {"MPI_MAX", MPI_MAX, kIntegers | kAddress | kFloating},
      {"MPI_MIN", MPI_MIN, kIntegers | kAddress | kFloating},
      {"MPI_SUM", MPI_SUM, kIntegers | kAddress | kFloating | kComplex},
      {"MPI_PROD", MPI_PROD, kIntegers | kAddress | kFloating | kComplex},
      {"MPI_LAND", MPI_LAND, kIntegers | kLogical},
      {"MPI_LOR", MPI_LOR, kIntegers | kLogical},
      {"MPI_LXOR", MPI_LXOR, kIntegers | kLogical},
      {"MPI_BAND", MPI_BAND, kIntegers | kAddress | kBits},
      {"MPI_BOR", MPI_BOR, kIntegers | kAddress | kBits},
      {"MPI_BXOR", MPI_BXOR, kIntegers | kAddress | kBits},
      {"MPI_MAXLOC", MPI_MAXLOC, kPair},
      {"MPI_MINLOC", MPI_MINLOC, kPair},
  };
  return all;
}

// Values of a type for an operation. `any_bits`: results may depend on the order of reduction. Else
// none does: sums and products are exact, and no integer overflows.
class Values {
 public:
  Values(const Numbers& numbers, MPI_Op op, bool any_bits, std::uint64_t key)
      : numbers_(numbers), op_(op), any_bits_(any_bits), random_(key) {}

  void put(unsigned char* at) {
    switch (numbers_.family) {
      case kFloating:
        return put_floating(at, numbers_.size);
      case kComplex:
        put_floating(at, numbers_.size / 2);
        return put_floating(at + numbers_.size / 2, numbers_.size / 2);
      case kLogical:
        return store<std::uint64_t>(at, random_.next() & 1, 1);
      case kPair:
        store<std::int32_t>(at + numbers_.index_at, random_.below(1 << 20));
        if (numbers_.type == MPI_FLOAT_INT) return store(at, static_cast<float>(few()));
        if (numbers_.type == MPI_DOUBLE_INT) return store(at, static_cast<double>(few()));
        return store<std::int64_t>(at, few(), numbers_.size);
      default:
        return store<std::uint64_t>(at, integer(), numbers_.size);
    }
  }

 private:
  template <typename T>
  static void store(unsigned char* at, T value, int bytes = sizeof(T)) {
    std::memcpy(at, &value, static_cast<std::size_t>(bytes));
  }

  int few() { return random_.between(-3, 3); }  // values of several ranks may be alike

  std::uint64_t integer() {
    const bool is_signed = numbers_.family == kSigned || numbers_.family == kAddress;
    if (op_ == MPI_LAND || op_ == MPI_LOR || op_ == MPI_LXOR)
      return random_.one_in(2) ? 0 : random_.next();
    // No overflow with up to 16 ranks: some of Open MPI's functions saturate, and others wrap.
    if (op_ == MPI_PROD) {
      if (random_.one_in(16)) return 0;
      if (random_.one_in(2)) return 1;
      return static_cast<std::uint64_t>(numbers_.size >= 4 ? 3 : is_signed ? -1 : 1);
    }
    const int shift = 64 - 8 * numbers_.size + 5;
    if (op_ == MPI_SUM && is_signed)
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(random_.next()) >> shift);
    if (op_ == MPI_SUM) return random_.next() >> shift;
    return random_.next();
  }

  void put_floating(unsigned char* at, int size) {
    const long double value = any_bits_ ? any() : exact();
    if (size == 4) return store(at, static_cast<float>(value));
    if (size == 8) return store(at, static_cast<double>(value));
    store(at, value, kLongDouble);
  }
  long double exact() {
    const long double sign = random_.one_in(2) ? 1 : -1;
    if (op_ == MPI_PROD) return sign * std::ldexp(1.0L, random_.between(-1, 1));
    return sign * std::ldexp(static_cast<long double>(random_.between(1, 1 << 18)), -7);
  }
  long double any() {
    using Limits = std::numeric_limits<long double>;
    if (numbers_.family == kFloating && random_.one_in(32)) {
      switch (random_.below(3)) {
        case 0:
          return -0.0L;
        case 1:
          return Limits::infinity();
        default:
          return -Limits::quiet_NaN();  // as x86 makes it: there is one NaN only
      }
    }
    return std::ldexp(static_cast<long double>(static_cast<std::int64_t>(random_.next())),
                      random_.between(-70, -56));
  }

  const Numbers& numbers_;
  const MPI_Op op_;
  const bool any_bits_;
  Random random_;
};

// The layouts of types that user-defined operations get. The newest of equal handles counts: the
// older type is free already.
class Layouts {
 public:
  static void add(MPI_Datatype type, const Map* map) {
    const std::lock_guard guard(all().mutex);
    all().entries.emplace_back(type, map);
  }
  static void remove(const Map* map) {
    const std::lock_guard guard(all().mutex);
    std::erase_if(all().entries, [map](const Entry& entry) { return entry.second == map; });
  }
  static const Map* of(MPI_Datatype type) {
    const std::lock_guard guard(all().mutex);
    for (auto entry = all().entries.rbegin(); entry != all().entries.rend(); ++entry)
      if (entry->first == type) return entry->second;
    fprintf(stderr, "a user-defined operation got a type that the program did not pass\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return nullptr;
  }

 private:
  using Entry = std::pair<MPI_Datatype, const Map*>;
  struct All {
    std::mutex mutex;
    std::vector<Entry> entries;
  };
  static All& all() {
    static All all;
    return all;
  }
};

// User-defined operations reduce each byte of a type's elements.
using Combine = unsigned char (*)(unsigned left, unsigned right);

inline unsigned char add(unsigned left, unsigned right) {
  return static_cast<unsigned char>(left + right);
}
// Two maps x -> a x + b of numbers below 16, the left one last: associative, not commutative.
inline unsigned char compose(unsigned left, unsigned right) {
  const unsigned a = left >> 4, b = left & 15, c = right >> 4, d = right & 15;
  return static_cast<unsigned char>((a * c & 15) << 4 | ((a * d + b) & 15));
}
// Neither associative nor commutative: shows the tree of a reduction.
inline unsigned char order(unsigned left, unsigned right) {
  return static_cast<unsigned char>((left << 1 | left >> 7) * 5 + right * 3 + 1);
}

inline void combine_all(void* in, void* inout, int count, MPI_Datatype type, Combine combine) {
  const Map& map = *Layouts::of(type);
  Walk left(map, static_cast<unsigned char*>(in)), right(map, static_cast<unsigned char*>(inout));
  for (int i = 0; i < count; i++) {
    for (const Element& element : map.elements) {
      const unsigned char* const from = left.next();
      unsigned char* const to = right.next();
      for (int byte = 0; byte < element.basic.size; byte++)
        to[byte] = combine(from[byte], to[byte]);
    }
  }
}

template <Combine combine>
void user_function(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine_all(in, inout, *count, *type, combine);
}

// An operation with a side effect: it counts its applications. Each call that may be under way with
// others has a function of its own, since MPI may apply it in any thread.
inline constexpr int kMostCounters = 32;
inline std::atomic<long> applications[kMostCounters];
inline thread_local bool computes_reference = false;

template <int counter>
void counting_function(void* in, void* inout, int* count, MPI_Datatype* type) {
  if (!computes_reference) applications[counter] += *count;
  combine_all(in, inout, *count, *type, add);
}
template <int... counters>
MPI_User_function* counting_function_of(int counter, std::integer_sequence<int, counters...>) {
  static MPI_User_function* const all[] = {counting_function<counters>...};
  return all[counter];
}
inline MPI_User_function* counting_function_of(int counter) {
  return counting_function_of(counter, std::make_integer_sequence<int, kMostCounters>());
}

// Pairwise by rank, in rounds: 0 with 1, 2 with 3, ...; then 0 with 2, 4 with 6, ...; and so on. The
// lower rank's is the left operand. The first block becomes the result.
inline void reduce_pairwise(std::vector<Buffer>& blocks, int count, MPI_Datatype type, MPI_Op op) {
  computes_reference = true;
  for (std::size_t step = 1; step < blocks.size(); step *= 2) {
    for (std::size_t i = 0; i + step < blocks.size(); i += 2 * step) {
      if (count > 0)
        MPI_Reduce_local(blocks[i].origin(), blocks[i + step].origin(), count, type, op);
      std::swap(blocks[i], blocks[i + step]);
    }
  }
  computes_reference = false;
}

}  // namespace reductions
