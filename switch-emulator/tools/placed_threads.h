// The cores of cepheus-switch's two threads: the one that moves packets, and the one that receives
// whoever comes (docs/architecture.md, "Threads and locks").
#pragma once

#include <optional>
#include <span>
#include <string>

#include "support/locality/machine.h"
#include "support/locality/thread_placement.h"

namespace cepheus::tools {

// Made on the thread that will move packets, before the other one is.
class PlacedThreads {
 public:
  // Threads that this one makes from here on run beside the core that it will have itself, and
  // memory is taken at that NUMA node.
  explicit PlacedThreads(std::span<const std::string> interfaces);
  // This thread has its core from here on.
  void take_core();
  // Where they run and why: for people.
  const std::string& text() const { return text_; }

 private:
  void bind(hwloc_const_cpuset_t cores);

  locality::CoreClaims claims_;
  std::optional<locality::Machine> machine_;
  locality::ThreadPlacement placement_;
  std::string text_;
};

}  // namespace cepheus::tools
