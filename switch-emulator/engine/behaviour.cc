#include "switch-emulator/engine/behaviour.h"

#include "switch-emulator/engine/one_source.h"

namespace cepheus::fabric {

std::unique_ptr<Behaviour> make_behaviour(const Group& group, const SwitchConfig& config) {
  return std::make_unique<OneSource>(group, config);
}

}  // namespace cepheus::fabric
