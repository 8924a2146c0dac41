#include "fabric-sim/checked/situations.h"

#include <algorithm>
#include <fstream>
#include <iostream>

#include "wire/situation.h"

namespace cepheus::sim {

namespace {

std::vector<const wire::Situation*> common_ones(const std::vector<std::string_view>& folders) {
  std::vector<const wire::Situation*> all = wire::situations();
  std::erase_if(all, [&](const wire::Situation* each) {
    return each->is_rare || std::ranges::none_of(folders, [&](std::string_view folder) {
             return std::string_view(each->file).starts_with(folder);
           });
  });
  return all;
}

}  // namespace

std::vector<std::string> unmet_situations(const std::vector<std::string_view>& folders) {
  std::vector<std::string> unmet;
  for (const wire::Situation* each : common_ones(folders)) {
    if (each->met == 0) unmet.push_back(std::string(each->file) + ": " + each->name);
  }
  return unmet;
}

void print_seldom_situations(const std::vector<std::string_view>& folders) {
  constexpr std::uint32_t kOften = 60;
  const auto all = common_ones(folders);
  const auto met = std::ranges::count_if(all, [](const auto* each) { return each->met > 0; });
  std::cout << met << " of " << all.size() << " common situations were met\n";
  for (const wire::Situation* each : all) {
    if (each->met < kOften) std::cout << each->met << " times: " << each->name << '\n';
  }
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
