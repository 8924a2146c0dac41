// The floating-point environment of reductions: IEEE 754's default one. Results are rounded to the
// nearest, subnormal numbers stay as they are, and no exception traps.
//
// A program that calls us may have another one: a compiler's -ffast-math makes it flush subnormal
// numbers to zero. Then ranks with and without that flag would have different results.
#pragma once

#include <cfenv>
#include <cfloat>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cepheus::arithmetic {

static_assert(FLT_EVAL_METHOD == 0, "floats and doubles are computed in their own precision");
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0)
#error "the compiler would remove NaNs and signs of zeros: compile without -ffast-math"
#endif

// Both classes set the environment of their thread. At its end an object restores the thread's own
// one, with the exceptions that were raised before. No code of a program may run meanwhile.
//
// Compilers know of no link between the environment and an addition. But they keep loads and stores
// of packets on their side of these calls, and so the additions between a load and a store.
class StandardEnvironment {
 public:
  StandardEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~StandardEnvironment() { std::fesetenv(&saved_); }
  StandardEnvironment(const StandardEnvironment&) = delete;
  StandardEnvironment& operator=(const StandardEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

#if defined(__SSE2__)
// The same in a tenth of the time. x86-64 has the environment of floats and doubles in MXCSR alone.
class SseEnvironment {
 public:
  SseEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~SseEnvironment() { _mm_setcsr(saved_); }
  SseEnvironment(const SseEnvironment&) = delete;
  SseEnvironment& operator=(const SseEnvironment&) = delete;

 private:
  // All exceptions are masked, and no other bit is set.
  static constexpr unsigned kDefault = 0x1F80;
  const unsigned saved_;
};
using Environment = SseEnvironment;
#else
using Environment = StandardEnvironment;
#endif

}  // namespace cepheus::arithmetic
