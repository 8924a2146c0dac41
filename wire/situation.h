// Situations that simulated campaigns must meet, after CODE_PROBE of FoundationDB. A line where one
// arises counts it in builds with assertions, and expands to nothing in others:
//
//   CEPHEUS_SITUATION("a NAK for a packet that all have acknowledged");
//   CEPHEUS_RARE_SITUATION("a second restart during the first one's registration");
//
// `./run test` must meet the first kind, `./run seeds` both. Use the first kind for situations that
// the short seeds meet at least 60 times: then no day's seeds miss one by chance. A name stands once
// in the tree.
// Functions in headers can't have a situation: their copies would count apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace cepheus::wire {

struct Situation {
  const char* name;
  const char* file;
  bool is_rare;
  std::uint32_t met = 0;  // several threads may lose counts, but once met it is never 0

  void meet() noexcept {
    const std::atomic_ref<std::uint32_t> count(met);  // seeds run on several threads
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

// Those of this program's objects, met or not.
std::vector<const Situation*> situations();

}  // namespace cepheus::wire

#ifdef NDEBUG
#define CEPHEUS_COUNT_SITUATION(name, is_rare) static_cast<void>(0)
#else
// The pointer lies in a section that the linker makes an array.
#define CEPHEUS_COUNT_SITUATION(name, is_rare)                                \
  do {                                                                        \
    static ::cepheus::wire::Situation met_here{name, __FILE__, is_rare};      \
    [[gnu::section("cepheus_situations"),                                     \
      gnu::used]] static ::cepheus::wire::Situation* listed_here = &met_here; \
    met_here.meet();                                                          \
  } while (false)
#endif
#define CEPHEUS_SITUATION(name) CEPHEUS_COUNT_SITUATION(name, false)
#define CEPHEUS_RARE_SITUATION(name) CEPHEUS_COUNT_SITUATION(name, true)
