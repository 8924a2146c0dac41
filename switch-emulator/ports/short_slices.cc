#include "switch-emulator/ports/short_slices.h"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cepheus::fabric {

constexpr unsigned long long kSliceNs = 100'000;  // the shortest allowed
constexpr unsigned kOrdinary = 0;  // SCHED_OTHER; any other policy was chosen on purpose

void request_short_slices(bool wanted) {
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) != 0) return;
  if (attributes.sched_policy != kOrdinary) return;
  attributes.sched_runtime = wanted ? kSliceNs : 0;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0U);
}

}  // namespace cepheus::fabric
