#include "fabric-sim/checked/situations.h"

#include <algorithm>
#include <fstream>

#include "wire/situation.h"

namespace cepheus::sim {

std::vector<std::string> unmet_situations(const std::vector<std::string_view>& folders) {
  std::vector<std::string> unmet;
  for (const wire::Situation* each : wire::situations()) {
    const bool counts = std::ranges::any_of(folders, [&](std::string_view folder) {
      return std::string_view(each->file).starts_with(folder);
    });
    if (counts && !each->is_rare && each->met == 0) {
      unmet.push_back(std::string(each->file) + ": " + each->name);
    }
  }
  return unmet;
}

bool add_situations_to(const std::string& file) {
  std::ofstream out(file, std::ios::app);
  for (const wire::Situation* each : wire::situations()) {
    out << each->met << '\t' << (each->is_rare ? "rare" : "common") << '\t' << each->file << '\t'
        << each->name << '\n';
  }
  return static_cast<bool>(out.flush());
}

}  // namespace cepheus::sim
