#include "fabric-sim/checked/shrink.h"

#include <algorithm>

#include "fabric-sim/checked/run_seed.h"

namespace cepheus::sim {
namespace {

// The text of a finding, without the numbers of hosts, messages and bytes.
std::string kind_of(const Finding& finding) {
  std::string kind = std::string(to_string(finding.invariant)) + ": " + finding.text;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

class Shrinker {
 public:
  Shrinker(std::uint64_t seed, const PlanOptions& options, std::size_t most_runs)
      : whole_(make_plan(seed, options)), most_runs_(most_runs) {
    PlanOptions all_on = options;
    all_on.rules = {};
    if (has_rules_off(options.rules)) sound_ = make_plan(seed, all_on);
  }

  // The first run, which later runs must repeat.
  bool fails(const OmittedParts& omitted) {
    auto plan = without(whole_, omitted);
    if (!plan) return false;
    Outcome outcome = run(*plan);
    if (!outcome.failure) return false;
    const std::string kind = kind_of(*outcome.failure);
    if (!kind_.empty() && kind != kind_) return false;
    if (sound_ && run(*without(*sound_, omitted)).failure) return false;
    kind_ = kind;
    best_.without = omitted;
    best_.plan = std::move(*plan);
    best_.outcome = std::move(outcome);
    return true;
  }

  // True if another part could be removed.
  bool leave_out() {
    bool any = false;
    const std::vector<Part> parts = parts_of(whole_);
    for (auto at = parts.begin(); at != parts.end();) {
      const auto end =
          std::find_if(at, parts.end(), [&](const Part& p) { return p.kind != at->kind; });
      any |= leave_out_of({at, end});
      at = end;
    }
    return any;
  }

  Shrunk result() && {
    best_.runs = runs_;
    return std::move(best_);
  }

 private:
  static bool has_rules_off(const net::Rules& rules) { return net::Rules{} != rules; }
  Outcome run(const ScenarioPlan& plan) {
    ++runs_;
    return run_plan(plan);
  }
  // Tries parts of one kind, in ever smaller pieces.
  bool leave_out_of(std::vector<Part> parts) {
    bool any = false;
    for (std::size_t piece = parts.size(); piece > 0; piece /= 2) {
      for (std::size_t at = 0; at < parts.size() && runs_ < most_runs_; at += piece) {
        OmittedParts more = best_.without;
        const std::size_t end = std::min(at + piece, parts.size());
        more.insert(parts.begin() + static_cast<std::ptrdiff_t>(at),
                    parts.begin() + static_cast<std::ptrdiff_t>(end));
        more = essential(whole_, more);
        if (more != best_.without) any |= fails(more);
      }
    }
    return any;
  }

  const ScenarioPlan whole_;
  std::optional<ScenarioPlan> sound_;  // the same plan with all rules on, if some are off
  const std::size_t most_runs_;
  std::size_t runs_ = 0;
  std::string kind_;
  Shrunk best_;
};

}  // namespace

std::optional<Shrunk> shrink(std::uint64_t seed, const PlanOptions& options,
                             const OmittedParts& without_already, std::size_t most_runs) {
  Shrinker shrinker(seed, options, most_runs);
  if (!shrinker.fails(without_already)) return std::nullopt;
  while (shrinker.leave_out()) {
  }
  return std::move(shrinker).result();
}

}  // namespace cepheus::sim
