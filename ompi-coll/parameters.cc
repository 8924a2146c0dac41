#include "ompi-coll/parameters.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cepheus::ompi {

using namespace coll;

int& output_stream() {
  static int stream = -1;
  return stream;
}

namespace {

struct Parameter {
  const char* name;
  mca_base_var_info_lvl_t level;
  std::variant<int*, unsigned long long*, const char**> storage;
  const char* help;
  std::vector<mca_base_var_enum_value_t> choices = {};  // an int's named values, and an empty one
};

std::vector<Parameter> all_parameters() {
  Parameters& p = parameters();
  return {
      {"priority", OPAL_INFO_LVL_6, &p.priority,
       "Priority of the component; the highest one serves MPI_Bcast"},
      {"verbose", OPAL_INFO_LVL_3, &p.verbose,
       "0: silent; 1: one line per communicator saying which path its broadcasts take and why; 2: "
       "every lane"},
      {"mode",
       OPAL_INFO_LVL_2,
       &p.mode,
       "off: never multicast; try: multicast where the fabric can serve, else Open MPI's own "
       "algorithms; require: end the job with an error where the fabric can't serve",
       {{static_cast<int>(Mode::kOff), "off"},
        {static_cast<int>(Mode::kTry), "try"},
        {static_cast<int>(Mode::kRequire), "require"},
        {0, nullptr}}},
      {"min_members", OPAL_INFO_LVL_4, &p.min_members,
       "Smallest communicator that gets a multicast group; smaller ones use Open MPI's own "
       "algorithms in every mode"},
      {"eager_limit", OPAL_INFO_LVL_5, &p.eager_limit,
       "Largest broadcast in bytes that is copied through posted buffers, without waiting for its "
       "receivers; larger ones go straight to the user's"},
      {"eager_message", OPAL_INFO_LVL_6, &p.eager_message,
       "Bytes of one such buffer: longer eager broadcasts take several"},
      {"attach_timeout_ms", OPAL_INFO_LVL_5, &p.attach_timeout_ms,
       "How long a process waits for the fabric's switch to answer when it attaches, if the "
       "switch runs and the machine is only busy; 0: 30000, or CEPHEUS_ATTACH_TIMEOUT_MS"},
      {"register_timeout_ms", OPAL_INFO_LVL_5, &p.register_timeout_ms,
       "How long the switches and members have to confirm a group; 0: 20000, in mode try also "
       "1000 after their last answer"},
      {"watchdog_ms", OPAL_INFO_LVL_5, &p.watchdog_ms,
       "A group is given up when no send completes for so long and no awaited member answers; "
       "0: 2000, in mode require, which has no other way, 8000; never shorter than the "
       "device's own time-out and retries take (8600 on the kernel's Soft-RoCE)"},
      {"safeguard_threshold", OPAL_INFO_LVL_5, &p.safeguard_threshold,
       "Mode try: give multicast up for a size class of broadcasts if they take longer by more "
       "than this percentage than by Open MPI's own algorithms"},
      {"safeguard_samples", OPAL_INFO_LVL_5, &p.safeguard_samples,
       "Mode try: of 1000 broadcasts this number at most go the other way, to be compared; 0: "
       "compare never, and multicast whatever it takes"},
      {"ranks_per_host", OPAL_INFO_LVL_5, &p.ranks_per_host,
       "Ranks of a job that share a host, in a row, where the first alone has the NIC "
       "(cepheus-run sets it); 0: ranks share a host that share a machine, or in mode require a "
       "NIC's address; -1: always a NIC's address"},
      {"carrier",
       OPAL_INFO_LVL_6,
       &p.carrier,
       "auto: UCX's rc_mcast where its plug-in interface is known, else libmcast directly; ucx; "
       "direct",
       {{static_cast<int>(Carrier::kAuto), "auto"},
        {static_cast<int>(Carrier::kUcx), "ucx"},
        {static_cast<int>(Carrier::kDirect), "direct"},
        {0, nullptr}}},
      {"set_up_after", OPAL_INFO_LVL_5, &p.set_up_after,
       "Number of broadcasts after which a communicator gets a group, because setting it up costs "
       "more than a few broadcasts gain; 0, and in mode require: at the first (cepheus-run sets "
       "0)"},
      {"set_up_bytes", OPAL_INFO_LVL_5, &p.set_up_bytes,
       "Number of broadcast bytes after which it gets one, too"},
      {"ordered_starts", OPAL_INFO_LVL_5, &p.ordered_starts,
       "1: the program starts its persistent broadcasts in the same order on all ranks, also "
       "relative to the communicator's other broadcasts, so multicast may serve them; 0: Open "
       "MPI's own algorithm serves them, because MPI allows any order"},
      {"mrp_port", OPAL_INFO_LVL_6, &p.mrp_port, "UDP port of the registration protocol; 0: 18516"},
      {"max_eager_memory", OPAL_INFO_LVL_5, &p.max_eager_memory,
       "Most memory in bytes that the posted buffers of all communicators of a process may take; "
       "0: 64 MiB, enough for about 1000 communicators of few ranks"},
      {"device", OPAL_INFO_LVL_4, &p.device,
       "Verbs device; empty: of the active ones with a RoCE v2 IPv4 address the nearest"},
      {"mcst_pool", OPAL_INFO_LVL_6, &p.mcst_pool,
       "CIDR that group identifiers are taken from; empty: 198.18.0.0/15"},
      {"uct_library", OPAL_INFO_LVL_9, &p.uct_library,
       "Path of libuct_rc_mcast.so; empty: the one installed with this component"},
  };
}

void register_one(const mca_base_component_t* component, const Parameter& parameter) {
  constexpr mca_base_var_type_t kTypes[] = {
      MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, MCA_BASE_VAR_TYPE_STRING};
  mca_base_var_enum_t* choices = nullptr;
  if (!parameter.choices.empty()) {
    (void)mca_base_var_enum_create((std::string("coll_cepheus_") + parameter.name).c_str(),
                                   parameter.choices.data(), &choices);
  }
  (void)mca_base_component_var_register(
      component, parameter.name, parameter.help, kTypes[parameter.storage.index()], choices, 0,
      static_cast<mca_base_var_flag_t>(0), parameter.level, MCA_BASE_VAR_SCOPE_READONLY,
      std::visit([](auto* storage) -> void* { return storage; }, parameter.storage));
  if (choices != nullptr) OBJ_RELEASE(choices);
}

}  // namespace

void register_parameters(const mca_base_component_t* component) {
  Parameters& p = parameters();
  p.component_directory = component_directory();
  for (const Parameter& each : all_parameters()) register_one(component, each);
  // The NIC reads it at its first use.
  if (p.attach_timeout_ms > 0)
    setenv("CEPHEUS_ATTACH_TIMEOUT_MS", std::to_string(p.attach_timeout_ms).c_str(), 1);
}

void warn_of_unknown_parameters() {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string_view(rank) != "0") return;
  constexpr std::string_view kPrefix = "OMPI_MCA_coll_cepheus_";
  const std::vector<Parameter> known = all_parameters();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!variable.starts_with(kPrefix)) continue;
    const std::string name(variable.substr(kPrefix.size(), variable.find('=') - kPrefix.size()));
    if (std::ranges::any_of(known, [&](const Parameter& each) { return name == each.name; })) {
      continue;
    }
    std::string all;
    for (const Parameter& each : known) all += (all.empty() ? "" : ", ") + std::string(each.name);
    opal_output(0,
                "cepheus: coll_cepheus_%s is set, but there is no such parameter and it does "
                "nothing; there are: %s",
                name.c_str(), all.c_str());
  }
}

const char* component_directory() {
  static const std::string directory = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&component_directory), &info) == 0 ||
        info.dli_fname == nullptr)
      return std::string(".");
    // The file's own place, not a link's: packages put a link into Open MPI's own directory.
    char* const resolved = realpath(info.dli_fname, nullptr);
    const std::string path = resolved != nullptr ? resolved : info.dli_fname;
    free(resolved);
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  }();
  return directory.c_str();
}

}  // namespace cepheus::ompi
