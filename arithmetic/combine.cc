#include "arithmetic/combine.h"

#include <array>
#include <bit>

#include "arithmetic/loops.h"

namespace cepheus::arithmetic {
namespace {

using Loop = void (*)(std::uint8_t* result, const std::uint8_t* operand, std::size_t bytes);
using Row = std::array<Loop, kTypes>;

constexpr bool kIsSwapped = std::endian::native == std::endian::big;

template <typename Op>
constexpr Row on_integers() {
  return {combine<Op, std::uint8_t, kIsSwapped>,  combine<Op, std::int8_t, kIsSwapped>,
          combine<Op, std::uint16_t, kIsSwapped>, combine<Op, std::int16_t, kIsSwapped>,
          combine<Op, std::uint32_t, kIsSwapped>, combine<Op, std::int32_t, kIsSwapped>,
          combine<Op, std::uint64_t, kIsSwapped>, combine<Op, std::int64_t, kIsSwapped>};
}

template <typename Op>
constexpr Row on_all() {
  Row row = on_integers<Op>();
  row[static_cast<std::size_t>(Type::kFloat)] = combine<Op, float, kIsSwapped>;
  row[static_cast<std::size_t>(Type::kDouble)] = combine<Op, double, kIsSwapped>;
  return row;
}

// By the codes of operation and type.
constexpr std::array<Row, kOperations> kLoops{
    Row{},
    on_integers<BitOr>(),
    on_integers<BitAnd>(),
    on_integers<BitXor>(),
    on_integers<Or>(),
    on_integers<And>(),
    on_integers<Xor>(),
    on_all<Min>(),
    on_all<Max>(),
    on_all<Sum>(),
    on_all<Product>(),
};

}  // namespace

Combiner::Combiner(Loop loop, Operation operation, Type type)
    : loop_(loop),
      operation_(operation),
      type_(type),
      size_(static_cast<std::uint8_t>(size_of(type))),
      is_floating_(arithmetic::is_floating(type)),
      depends_on_pairs_(is_floating_ &&
                        (operation == Operation::kSum || operation == Operation::kProduct)) {}

std::optional<Combiner> Combiner::find(std::uint8_t operation, std::uint8_t type) {
  if (operation >= kOperations || type >= kTypes) return std::nullopt;
  const Loop loop = kLoops[operation][type];
  if (loop == nullptr) return std::nullopt;
  return Combiner(loop, static_cast<Operation>(operation), static_cast<Type>(type));
}

}  // namespace cepheus::arithmetic
