// Does this MPI library's MPI_Reduce_local compute the same bits as arithmetic/combine.h? Plain MPI, one
// process.
//
//   operations_check [--seed S]
//
// Each operation and type, by each of MPI's names for it, gets all pairs of special values, and random ones, alone and many at once:
// MPI libraries have other functions for long vectors. A difference that is_known() does not list is
// an error. arithmetic/README.md has the same list. Exit 0 and a line "ok: ..."; else 1 and the first
// unknown difference of each operation and type.
#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "arithmetic/combine.h"

namespace {

using namespace cepheus::arithmetic;

struct Named {
  Operation operation;
  MPI_Op op;
};
const std::vector<Named>& all_operations() {
  static const std::vector<Named> all = {
      {Operation::kMin, MPI_MIN},      {Operation::kMax, MPI_MAX},   {Operation::kSum, MPI_SUM},
      {Operation::kProduct, MPI_PROD}, {Operation::kBitOr, MPI_BOR}, {Operation::kBitAnd, MPI_BAND},
      {Operation::kBitXor, MPI_BXOR},  {Operation::kOr, MPI_LOR},    {Operation::kAnd, MPI_LAND},
      {Operation::kXor, MPI_LXOR},
  };
  return all;
}

template <typename T>
using Word = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// What is special about two operands.
enum class Kind { kPlain, kNan, kNanResult, kZeros, kOverflow, kTopBits };
const char* name(Kind kind) {
  constexpr const char* kNames[] = {"other values",        "a NaN",       "a NaN result",
                                    "zeros of both signs", "an overflow", "one top bit set"};
  return kNames[static_cast<int>(kind)];
}

bool is_order(Operation operation) {
  return operation == Operation::kMin || operation == Operation::kMax;
}

template <typename T>
Kind kind_of(Operation operation, T a, T b, T expected) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return Kind::kNan;
    if (std::isnan(expected)) return Kind::kNanResult;
    return a == 0 && b == 0 ? Kind::kZeros : Kind::kPlain;
  } else {
    T result = 0;
    const bool overflows =
        (operation == Operation::kSum && __builtin_add_overflow(a, b, &result)) ||
        (operation == Operation::kProduct && __builtin_mul_overflow(a, b, &result));
    if (overflows) return Kind::kOverflow;
    const bool has_one =
        ((std::bit_cast<Word<T>>(a) ^ std::bit_cast<Word<T>>(b)) >> (8 * sizeof(T) - 1)) != 0;
    return is_order(operation) && has_one ? Kind::kTopBits : Kind::kPlain;
  }
}

bool is_known(Operation operation, Type type, MPI_Datatype mpi_type, Kind kind) {
  if (is_floating(type)) {
    // Not on x86: the NaN of an invalid operation is x86's own.
#if !defined(__x86_64__) && !defined(__i386__)
    if (kind == Kind::kNanResult) return true;
#endif
    return kind == Kind::kNan || (is_order(operation) && kind == Kind::kZeros);
  }
#ifdef OPEN_MPI
  // Numbers of 8 and 16 bits saturate in its vector functions (ompi#8045).
  if (operation == Operation::kSum && size_of(type) <= 2) return kind == Kind::kOverflow;
  // It compares MPI_UNSIGNED_LONG as a signed type (ompi#10648), and MPI_OFFSET as an unsigned one.
  return kind == Kind::kTopBits && (mpi_type == MPI_UNSIGNED_LONG || mpi_type == MPI_OFFSET);
#else
  // It compares all unsigned types as signed ones (mpich#6083).
  (void)mpi_type;
  const bool is_signed = static_cast<int>(type) % 2 == 1;
  return kind == Kind::kTopBits && !is_signed;
#endif
}
#ifdef OPEN_MPI
constexpr const char* kLibrary = "Open MPI";
#else
constexpr const char* kLibrary = "MPICH";
#endif

// Operations that MPI defines on a type.
enum class Family { kAll, kNoLogical, kBitwise, kLogical };
bool is_defined(Operation operation, Family family) {
  const bool is_logical =
      operation == Operation::kOr || operation == Operation::kAnd || operation == Operation::kXor;
  const bool is_bitwise = operation == Operation::kBitOr || operation == Operation::kBitAnd ||
                          operation == Operation::kBitXor;
  if (family == Family::kAll) return true;
  if (family == Family::kNoLogical) return !is_logical;
  return family == Family::kBitwise ? is_bitwise : is_logical;
}

std::string name_of(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Type_get_name(type, name, &length);
  return name;
}

template <typename T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all = {T(0), T(1), T(2), Limits::min(), Limits::max(), Limits::lowest(), T(100)};
  all.push_back(static_cast<T>(T(0) - T(1)));
  all.push_back(static_cast<T>(Limits::max() - T(1)));
  if constexpr (std::is_floating_point_v<T>) {
    for (const T each : {T(0), Limits::infinity(), Limits::denorm_min(), Limits::quiet_NaN(),
                         std::bit_cast<T>(static_cast<Word<T>>(
                             std::bit_cast<Word<T>>(Limits::quiet_NaN()) + 77))}) {
      all.push_back(each);
      all.push_back(-each);
    }
  }
  return all;
}

class Check {
 public:
  explicit Check(std::uint64_t seed) : random_(seed) {}

  template <typename T>
  void run(Type type, MPI_Datatype mpi_type, Family family = Family::kAll) {
    std::vector<T> a, b;
    for (const T x : special_values<T>()) {
      for (const T y : special_values<T>()) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    for (int i = 0; i < 2000; ++i) {
      for (std::vector<T>* each : {&a, &b}) {
        const auto bits = static_cast<Word<T>>(random_());
        each->push_back(std::bit_cast<T>(bits));
      }
    }
    if (family == Family::kLogical)  // C's bool is 0 or 1
      for (std::vector<T>* each : {&a, &b})
        for (T& value : *each) value = value != 0 ? T(1) : T(0);
    for (const Named& each : all_operations()) {
      if (!is_defined(each.operation, family) || !Combiner::find(each.operation, type)) continue;
      compare(each, type, mpi_type, a, b);
      for (std::size_t i = 0; i < a.size(); ++i) {
        compare<T>(each, type, mpi_type, {a[i]}, {b[i]});
      }
    }
  }

  int conclude() const {
    for (const auto& [what, count] : differences_)
      printf("differs: %s: %ld times\n", what.c_str(), count);
    if (unknown_ == 0) printf("ok: %ld results of %s are known\n", compared_, kLibrary);
    return unknown_ == 0 ? 0 : 1;
  }

 private:
  template <typename T>
  void compare(const Named& each, Type type, MPI_Datatype mpi_type, const std::vector<T>& a,
               const std::vector<T>& b) {
    std::vector<T> theirs = b, ours = b;
    MPI_Reduce_local(a.data(), theirs.data(), static_cast<int>(a.size()), mpi_type, each.op);
    Batch(*Combiner::find(each.operation, type))
        .combine(reinterpret_cast<std::uint8_t*>(ours.data()),
                 reinterpret_cast<const std::uint8_t*>(a.data()), a.size() * sizeof(T));
    for (std::size_t i = 0; i < a.size(); ++i) {
      ++compared_;
      if (std::bit_cast<Word<T>>(ours[i]) == std::bit_cast<Word<T>>(theirs[i])) continue;
      const Kind kind = kind_of(each.operation, a[i], b[i], ours[i]);
      const std::string what = std::string(cepheus::arithmetic::name(each.operation)) + ' ' +
                               name_of(mpi_type) + ": " + ::name(kind);
      const bool is_first = differences_[what]++ == 0;
      if (is_known(each.operation, type, mpi_type, kind)) continue;
      if (is_first)
        fprintf(stderr, "operations_check: %s: %s: 0x%llx and 0x%llx give 0x%llx, not 0x%llx\n",
                kLibrary, what.c_str(), bits(a[i]), bits(b[i]), bits(theirs[i]), bits(ours[i]));
      ++unknown_;
    }
  }

  template <typename T>
  static unsigned long long bits(T value) {
    return std::bit_cast<Word<T>>(value);
  }

  std::mt19937_64 random_;
  std::map<std::string, long> differences_;
  long compared_ = 0, unknown_ = 0;
};

void run_all(Check& check) {
  for (MPI_Datatype each : {MPI_UINT8_T, MPI_UNSIGNED_CHAR})
    check.run<std::uint8_t>(Type::kUint8, each);
  for (MPI_Datatype each : {MPI_INT8_T, MPI_SIGNED_CHAR}) check.run<std::int8_t>(Type::kInt8, each);
  for (MPI_Datatype each : {MPI_UINT16_T, MPI_UNSIGNED_SHORT})
    check.run<std::uint16_t>(Type::kUint16, each);
  for (MPI_Datatype each : {MPI_INT16_T, MPI_SHORT}) check.run<std::int16_t>(Type::kInt16, each);
  for (MPI_Datatype each : {MPI_UINT32_T, MPI_UNSIGNED})
    check.run<std::uint32_t>(Type::kUint32, each);
  for (MPI_Datatype each : {MPI_INT32_T, MPI_INT}) check.run<std::int32_t>(Type::kInt32, each);
  for (MPI_Datatype each : {MPI_UINT64_T, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG})
    check.run<std::uint64_t>(Type::kUint64, each);
  for (MPI_Datatype each : {MPI_INT64_T, MPI_LONG, MPI_LONG_LONG})
    check.run<std::int64_t>(Type::kInt64, each);
  for (MPI_Datatype each : {MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER8})
    check.run<std::int64_t>(Type::kInt64, each, Family::kNoLogical);
  for (MPI_Datatype each : {MPI_INTEGER, MPI_INTEGER4})
    check.run<std::int32_t>(Type::kInt32, each, Family::kNoLogical);
  check.run<std::int16_t>(Type::kInt16, MPI_INTEGER2, Family::kNoLogical);
  check.run<std::int8_t>(Type::kInt8, MPI_INTEGER1, Family::kNoLogical);
  for (MPI_Datatype each : {MPI_FLOAT, MPI_REAL, MPI_REAL4}) check.run<float>(Type::kFloat, each);
  for (MPI_Datatype each : {MPI_DOUBLE, MPI_DOUBLE_PRECISION, MPI_REAL8})
    check.run<double>(Type::kDouble, each);
  check.run<std::uint8_t>(Type::kUint8, MPI_BYTE, Family::kBitwise);
  check.run<std::uint8_t>(Type::kUint8, MPI_C_BOOL, Family::kLogical);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; ++i)
    if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], nullptr, 0);
  Check check(seed);
  run_all(check);
  const int code = check.conclude();
  MPI_Finalize();
  return code;
}
