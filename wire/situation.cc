#include "wire/situation.h"

// The linker's names of the section's ends. Weak: a program may have no situation.
extern "C" {
[[gnu::weak]] extern cepheus::wire::Situation* __start_cepheus_situations[];
[[gnu::weak]] extern cepheus::wire::Situation* __stop_cepheus_situations[];
}

namespace cepheus::wire {

std::vector<const Situation*> situations() {
  return {__start_cepheus_situations, __stop_cepheus_situations};
}

}  // namespace cepheus::wire
