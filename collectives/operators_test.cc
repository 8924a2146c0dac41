#include "collectives/operators.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace cepheus::coll {
namespace {

// The operations, by their codes, that each group has for values of 1, 2, 4, 8 and 16 bytes.
std::string operations_of(TypeGroup group) {
  std::string all;
  for (const std::size_t size : {1u, 2u, 4u, 8u, 16u}) {
    all += size == 1 ? "" : "/";
    for (std::size_t code = 0; code < arithmetic::kOperations; ++code) {
      const auto found = combiner_of(static_cast<arithmetic::Operation>(code), group, size);
      if (!found) continue;
      EXPECT_EQ(found->size(), size);
      EXPECT_EQ(found->is_floating(), group == TypeGroup::kFloating);
      all += "-OAXoax<>+*"[code];
    }
  }
  return all;
}

TEST(Operators, AreThoseOfMpiOnTypesOfTheLibrary) {
  const std::string integers = "OAXoax<>+*/OAXoax<>+*/OAXoax<>+*/OAXoax<>+*/";
  EXPECT_EQ(operations_of(TypeGroup::kSigned), integers);
  EXPECT_EQ(operations_of(TypeGroup::kUnsigned), integers);
  EXPECT_EQ(operations_of(TypeGroup::kNumber), "OAX<>+*/OAX<>+*/OAX<>+*/OAX<>+*/");
  EXPECT_EQ(operations_of(TypeGroup::kFloating), "//<>+*/<>+*/");
  EXPECT_EQ(operations_of(TypeGroup::kBool), "oax/oax/oax/oax/");
  EXPECT_EQ(operations_of(TypeGroup::kByte), "OAX/OAX/OAX/OAX/");
}

std::uint64_t minimum_of(TypeGroup group, std::size_t size) {
  std::uint64_t result = 1;
  const std::uint64_t all_bits = ~std::uint64_t{0};
  arithmetic::Batch(*combiner_of(arithmetic::Operation::kMin, group, size))
      .combine(reinterpret_cast<std::uint8_t*>(&result),
               reinterpret_cast<const std::uint8_t*>(&all_bits), size);
  return result;
}

TEST(Operators, KnowSigns) {
  for (const std::size_t size : {1u, 2u, 4u, 8u}) {
    EXPECT_EQ(minimum_of(TypeGroup::kUnsigned, size), 1u);
    EXPECT_NE(minimum_of(TypeGroup::kSigned, size), 1u);
    EXPECT_NE(minimum_of(TypeGroup::kNumber, size), 1u);
  }
}

TEST(Operators, OfOtherHandlesAreTheHosts) {
  using Handles = Operators<int, int>;
  constexpr std::array<Handles::Operation, 2> kOperations{
      {{1, arithmetic::Operation::kSum}, {2, arithmetic::Operation::kAnd}}};
  constexpr std::array<Handles::BasicType, 2> kTypes{
      {{3, TypeGroup::kFloating}, {4, TypeGroup::kSigned}}};
  const Handles handles(kOperations, kTypes);
  EXPECT_TRUE(handles.find(1, 3, 8));
  EXPECT_TRUE(handles.find(1, 4, 8));
  EXPECT_TRUE(handles.find(2, 4, 1));
  EXPECT_FALSE(handles.find(2, 3, 8)) << "MPI has no such operation on floats";
  EXPECT_FALSE(handles.find(1, 3, 16)) << "a long double";
  EXPECT_FALSE(handles.find(3, 3, 8)) << "an operation of the program's";
  EXPECT_FALSE(handles.find(1, 5, 8)) << "a type of the program's";
}

}  // namespace
}  // namespace cepheus::coll
