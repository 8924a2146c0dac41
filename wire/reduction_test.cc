#include "wire/reduction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cepheus::wire {
namespace {

TEST(ReductionImm, HasTheLayoutOfItsDiagram) {
  constexpr ReductionImm imm{1, 2, 0x34, 0x5678};
  EXPECT_EQ(imm.value(), 0x12345678u);
  EXPECT_EQ(imm.what(), 0x12);
}

RC_GTEST_PROP(ReductionImm, IsReadAsItIsWritten, (std::uint32_t any)) {
  RC_ASSERT(ReductionImm::from(any).value() == any);
}

}  // namespace
}  // namespace cepheus::wire
