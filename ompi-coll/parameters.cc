// Registers the settings with Open MPI in one loop; `mode` is read before (component.cc). A number
// out of range is reported by rank 0, and the default holds. Unknown parameters are looked for in
// the environment only, where mpirun puts those of its command line, too.
#include "ompi-coll/parameters.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collectives/host_mpi.h"

namespace cepheus::ompi {

using namespace coll;

int& output_stream() {
  static int stream = -1;
  return stream;
}

namespace {

// The rank of its job that prints what concerns all ranks; ompi_info, too.
bool is_first_rank() {
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr || std::string_view(rank) == "0";
}

void register_one(const mca_base_component_t* component, const Setting& parameter) {
  constexpr mca_base_var_type_t kTypes[] = {
      MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, MCA_BASE_VAR_TYPE_STRING};
  mca_base_var_enum_t* choices = nullptr;
  if (!parameter.choices.empty()) {
    std::vector<mca_base_var_enum_value_t> values;
    for (const char* each : parameter.choices)
      values.push_back({static_cast<int>(values.size()), each});
    values.push_back({0, nullptr});
    (void)mca_base_var_enum_create(host::parameter(parameter.name).c_str(), values.data(),
                                   &choices);
  }
  const std::string error = take(parameter, [&] {
    (void)mca_base_component_var_register(
        component, parameter.name, parameter.help, kTypes[parameter.storage.index()], choices, 0,
        static_cast<mca_base_var_flag_t>(0),
        static_cast<mca_base_var_info_lvl_t>(parameter.level - 1), MCA_BASE_VAR_SCOPE_READONLY,
        std::visit([](auto* storage) -> void* { return storage; }, parameter.storage));
  });
  if (!error.empty() && is_first_rank())
    opal_output(0, "cepheus: %s=%s", host::parameter(parameter.name).c_str(), error.c_str());
  if (choices != nullptr) OBJ_RELEASE(choices);
}

}  // namespace

void register_parameters(const mca_base_component_t* component, int mode) {
  parameters() = {};  // Open MPI may start again after its end
  parameters().mode = mode;
  for (const Setting& each : settings()) {
    if (std::string_view(each.name) != "mode") register_one(component, each);
  }
}

void warn_of_unknown_parameters() {
  if (!is_first_rank()) return;
  constexpr std::string_view kPrefix = "OMPI_MCA_coll_cepheus_";
  const std::vector<Setting> known = settings();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!variable.starts_with(kPrefix)) continue;
    const std::string name(variable.substr(kPrefix.size(), variable.find('=') - kPrefix.size()));
    if (std::ranges::any_of(known, [&](const Setting& each) { return name == each.name; })) {
      continue;
    }
    std::string all;
    for (const Setting& each : known) all += (all.empty() ? "" : ", ") + std::string(each.name);
    opal_output(
        0,
        "cepheus: coll_cepheus_%s is set, but there is no such parameter; correct its name; the "
        "parameters are: %s",
        name.c_str(), all.c_str());
  }
}

}  // namespace cepheus::ompi
