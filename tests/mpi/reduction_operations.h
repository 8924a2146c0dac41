// Operations of reductions, predefined and user-defined, values for them, and the result that every
// rank must get, pairwise by rank: that of arithmetic/reference.h for MPI's operations on integers,
// floats and doubles, and else that of MPI_Reduce_local.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "arithmetic/reference.h"
#include "tests/mpi/random_types.h"

namespace reductions {

using namespace random_types;
namespace arithmetic = cepheus::arithmetic;

enum Family : unsigned {
  kSigned = 1,
  kUnsigned = 2,
  kAddress = 4,  // MPI_AINT and its kin, and Fortran's integers: signed, without logical operations
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

  // Empty: MPI's own functions reduce it.
  std::optional<arithmetic::Type> exact_type() const {
    using arithmetic::Type;
    const bool is_signed = family == kSigned || family == kAddress;
    if (family == kComplex || family == kPair || size > 8) return std::nullopt;
    if (family == kFloating) return size == 4 ? Type::kFloat : Type::kDouble;
    if (size == 8) return is_signed ? Type::kInt64 : Type::kUint64;
    if (size == 4) return is_signed ? Type::kInt32 : Type::kUint32;
    if (size == 2) return is_signed ? Type::kInt16 : Type::kUint16;
    return is_signed ? Type::kInt8 : Type::kUint8;
  }
};

inline constexpr int kLongDouble = 10;  // bytes of x86's; the rest of 16 is padding

inline const std::vector<Numbers>& all_numbers() {
  static const std::vector<Numbers> all = {
      {"MPI_INT8_T", MPI_INT8_T, kSigned, 1, 0, 1},
      {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR, kSigned, 1, 0, 1},
      {"MPI_SHORT", MPI_SHORT, kSigned, 2, 0, 2},
      {"MPI_INT", MPI_INT, kSigned, 4, 0, 4},
      {"MPI_LONG", MPI_LONG, kSigned, 8, 0, 8},
      {"MPI_INT64_T", MPI_INT64_T, kSigned, 8, 0, 8},
      {"MPI_UINT8_T", MPI_UINT8_T, kUnsigned, 1, 0, 1},
      {"MPI_UINT16_T", MPI_UINT16_T, kUnsigned, 2, 0, 2},
      {"MPI_UNSIGNED", MPI_UNSIGNED, kUnsigned, 4, 0, 4},
      {"MPI_UINT64_T", MPI_UINT64_T, kUnsigned, 8, 0, 8},
      {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, kUnsigned, 1, 0, 1},
      {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, kUnsigned, 8, 0, 8},
      {"MPI_INTEGER", MPI_INTEGER, kAddress, 4, 0, 4},
      {"MPI_AINT", MPI_AINT, kAddress, 8, 0, 8},
      {"MPI_COUNT", MPI_COUNT, kAddress, 8, 0, 8},
      {"MPI_FLOAT", MPI_FLOAT, kFloating, 4, 0, 4},
      {"MPI_DOUBLE", MPI_DOUBLE, kFloating, 8, 0, 8},
      {"MPI_REAL", MPI_REAL, kFloating, 4, 0, 4},
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
  arithmetic::Operation exact = arithmetic::Operation::kNone;
};

inline const std::vector<Predefined>& all_predefined() {
  constexpr unsigned kIntegers = kSigned | kUnsigned;
  static const std::vector<Predefined> all = {
      {"MPI_MAX", MPI_MAX, kIntegers | kAddress | kFloating, arithmetic::Operation::kMax},
      {"MPI_MIN", MPI_MIN, kIntegers | kAddress | kFloating, arithmetic::Operation::kMin},
      {"MPI_SUM", MPI_SUM, kIntegers | kAddress | kFloating | kComplex,
       arithmetic::Operation::kSum},
      {"MPI_PROD", MPI_PROD, kIntegers | kAddress | kFloating | kComplex,
       arithmetic::Operation::kProduct},
      {"MPI_LAND", MPI_LAND, kIntegers | kLogical, arithmetic::Operation::kAnd},
      {"MPI_LOR", MPI_LOR, kIntegers | kLogical, arithmetic::Operation::kOr},
      {"MPI_LXOR", MPI_LXOR, kIntegers | kLogical, arithmetic::Operation::kXor},
      {"MPI_BAND", MPI_BAND, kIntegers | kAddress | kBits, arithmetic::Operation::kBitAnd},
      {"MPI_BOR", MPI_BOR, kIntegers | kAddress | kBits, arithmetic::Operation::kBitOr},
      {"MPI_BXOR", MPI_BXOR, kIntegers | kAddress | kBits, arithmetic::Operation::kBitXor},
      {"MPI_MAXLOC", MPI_MAXLOC, kPair},
      {"MPI_MINLOC", MPI_MINLOC, kPair},
  };
  return all;
}

// Values of a type for an operation. `any_bits`: results may depend on the order of reduction, and on
// the MPI library. Else none does: sums and products are exact, no integer overflows, and no order of
// unsigned integers depends on the highest bit (mpich#6083, ompi#10648).
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
    if (any_bits_) return random_.next();
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
    const bool is_order = op_ == MPI_MAX || op_ == MPI_MIN;
    return is_order && !is_signed ? random_.next() >> shift : random_.next();
  }

  void put_floating(unsigned char* at, int size) {
    // With NaNs of all kinds. MPI's own functions get values with one NaN.
    if (any_bits_ && numbers_.exact_type() && random_.one_in(16))
      return store<std::uint64_t>(at, special_bits(size), size);
    const long double value = any_bits_ ? any() : exact();
    if (size == 4) return store(at, static_cast<float>(value));
    if (size == 8) return store(at, static_cast<double>(value));
    store(at, value, kLongDouble);
  }
  std::uint64_t special_bits(int size) {
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    const std::uint64_t infinity = size == 4 ? 0x7F80'0000 : 0x7FF0'0000'0000'0000;
    const std::uint64_t magnitudes[] = {
        0, 1, infinity - 1, infinity, infinity + 77, random_.next()};
    return (magnitudes[random_.below(6)] & (sign - 1)) | (random_.one_in(2) ? sign : 0);
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
// lower rank's is the left operand, and `combine` leaves the result in the right one. The first block
// becomes the result.
template <typename Pair>
void reduce_pairwise(std::vector<Buffer>& blocks, Pair combine) {
  for (std::size_t step = 1; step < blocks.size(); step *= 2) {
    for (std::size_t i = 0; i + step < blocks.size(); i += 2 * step) {
      combine(blocks[i].origin(), blocks[i + step].origin());
      std::swap(blocks[i], blocks[i + step]);
    }
  }
}

inline void reduce_by_mpi(std::vector<Buffer>& blocks, int count, MPI_Datatype type, MPI_Op op) {
  computes_reference = true;
  reduce_pairwise(blocks, [&](unsigned char* left, unsigned char* right) {
    if (count > 0) MPI_Reduce_local(left, right, count, type, op);
  });
  computes_reference = false;
}

template <typename T>
void reduce_values(std::vector<Buffer>& blocks, int count, arithmetic::Operation operation) {
  reduce_pairwise(blocks, [&](unsigned char* left, unsigned char* right) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(count) * sizeof(T); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, left + at, sizeof a);
      std::memcpy(&b, right + at, sizeof b);
      const T result = arithmetic::reference(operation, a, b);
      std::memcpy(right + at, &result, sizeof result);
    }
  });
}

inline void reduce_exactly(std::vector<Buffer>& blocks, int count, arithmetic::Type type,
                           arithmetic::Operation operation) {
  using arithmetic::Type;
  switch (type) {
    case Type::kUint8:
      return reduce_values<std::uint8_t>(blocks, count, operation);
    case Type::kInt8:
      return reduce_values<std::int8_t>(blocks, count, operation);
    case Type::kUint16:
      return reduce_values<std::uint16_t>(blocks, count, operation);
    case Type::kInt16:
      return reduce_values<std::int16_t>(blocks, count, operation);
    case Type::kUint32:
      return reduce_values<std::uint32_t>(blocks, count, operation);
    case Type::kInt32:
      return reduce_values<std::int32_t>(blocks, count, operation);
    case Type::kUint64:
      return reduce_values<std::uint64_t>(blocks, count, operation);
    case Type::kInt64:
      return reduce_values<std::int64_t>(blocks, count, operation);
    case Type::kFloat:
      return reduce_values<float>(blocks, count, operation);
    case Type::kDouble:
      return reduce_values<double>(blocks, count, operation);
  }
}

}  // namespace reductions
