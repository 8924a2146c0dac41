#include "net/rules.h"

#include <array>

namespace cepheus::net {
namespace {

bool set(bool& flag, bool on) {
  flag = on;
  return true;
}
[[maybe_unused]] bool set(const bool& fixed, bool on) { return fixed == on; }

}  // namespace

const char* to_string(WriteMode mode) {
  constexpr std::array kNames{"regions", "per-request", "same-key", "none"};
  static_assert(kNames.size() == static_cast<std::size_t>(WriteMode::kNone) + 1);
  return kNames[static_cast<std::size_t>(mode)];
}

bool set_rule(Rules& rules, std::string_view name, bool on) {
#define CEPHEUS_RULE(rule, kind, help) \
  if (name == #rule) return set(rules.rule, on);
#include "net/rules.def"
  return false;
}

}  // namespace cepheus::net
