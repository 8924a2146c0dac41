#include "switch-emulator/tools/placed_threads.h"

namespace cepheus::tools {
namespace {

constexpr unsigned kThreads = 2;

}  // namespace

PlacedThreads::PlacedThreads(std::span<const std::string> interfaces) {
  auto machine = locality::Machine::load();
  if (!machine) {
    text_ = "left to the kernel: " + machine.error().text;
    return;
  }
  machine_ = std::move(*machine);
  placement_ =
      locality::place_threads(machine_->topology(), machine_->cores_of_process().get(), kThreads,
                              interfaces, [this](unsigned cpu) { return claims_.take(cpu); });
  text_ = placement_.why;
  if (placement_.is_placed()) bind(placement_.others.get());
}

void PlacedThreads::take_core() {
  if (placement_.is_placed()) bind(placement_.first.get());
}

// Who can't be bound serves all the same.
void PlacedThreads::bind(hwloc_const_cpuset_t cores) {
  if (const auto bound = machine_->bind_thread(cores); !bound) {
    text_ = "left to the kernel: " + bound.error().text;
  }
}

}  // namespace cepheus::tools
