#include "net/rules.h"

namespace cepheus::net {
namespace {

bool set(bool& flag, bool on) {
  flag = on;
  return true;
}
[[maybe_unused]] bool set(const bool& fixed, bool on) { return fixed == on; }

}  // namespace

const char* to_string(WriteMode mode) {
  switch (mode) {
    case WriteMode::kRegions:
      return "regions";
    case WriteMode::kPerRequest:
      return "per-request";
    case WriteMode::kSameKey:
      return "same-key";
    case WriteMode::kNone:
      return "none";
  }
  return "unknown";
}

bool set_rule(Rules& rules, std::string_view name, bool on) {
#define CEPHEUS_RULE(rule, kind, says) \
  if (name == #rule) return set(rules.rule, on);
#include "net/rules.def"
  return false;
}

}  // namespace cepheus::net
