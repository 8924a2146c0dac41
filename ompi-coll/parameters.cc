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
       "Set the component's priority; the highest serves MPI_Bcast"},
      {"verbose", OPAL_INFO_LVL_3, &p.verbose,
       "Log; 0: nothing; 1: one line per communicator with path and reason; 2: also each lane"},
      {"mode",
       OPAL_INFO_LVL_2,
       &p.mode,
       "Choose when to multicast; off: never; try: if the network can, else Open MPI's own "
       "algorithms run; require: end the job with an error if the network can't",
       {{static_cast<int>(Mode::kOff), "off"},
        {static_cast<int>(Mode::kTry), "try"},
        {static_cast<int>(Mode::kRequire), "require"},
        {0, nullptr}}},
      {"min_members", OPAL_INFO_LVL_4, &p.min_members,
       "Give a group to communicators of at least this many ranks; smaller ones use Open MPI's own "
       "algorithms in every mode"},
      {"eager_limit", OPAL_INFO_LVL_5, &p.eager_limit,
       "Copy broadcasts up to this size in bytes through posted buffers, without waiting for "
       "receivers; larger ones use the user's buffers"},
      {"eager_message", OPAL_INFO_LVL_6, &p.eager_message,
       "Set the size of one posted buffer in bytes; longer eager broadcasts take several"},
      {"attach_timeout_ms", OPAL_INFO_LVL_5, &p.attach_timeout_ms,
       "Wait this time in milliseconds for a busy switch to answer an attaching process; 0: "
       "CEPHEUS_ATTACH_TIMEOUT_MS, else 30000"},
      {"register_timeout_ms", OPAL_INFO_LVL_5, &p.register_timeout_ms,
       "Wait this time in milliseconds until switches and members confirm a group; 0: 20000, in "
       "mode "
       "try also at most 1000 after their last answer"},
      {"watchdog_ms", OPAL_INFO_LVL_5, &p.watchdog_ms,
       "Give a group up if no send completes for this time in milliseconds and no awaited member "
       "answers; 0: 2000 in mode try, 8000 in mode require; never less than the device's own "
       "time-out and retries (8600 on the kernel's Soft-RoCE)"},
      {"safeguard_threshold", OPAL_INFO_LVL_5, &p.safeguard_threshold,
       "Mode try: stop multicast for a size class if its broadcasts take this percentage longer "
       "than Open MPI's own algorithms"},
      {"safeguard_samples", OPAL_INFO_LVL_5, &p.safeguard_samples,
       "Mode try: send at most this many of 1000 broadcasts the other way, to compare; 0: never "
       "compare, always multicast"},
      {"ranks_per_host", OPAL_INFO_LVL_5, &p.ranks_per_host,
       "Let this many consecutive ranks share a host; its first rank has the NIC (cepheus-run "
       "sets it); 0: ranks on one machine share a host, in mode require ranks with one NIC "
       "address; -1: always ranks with one NIC address"},
      {"carrier",
       OPAL_INFO_LVL_6,
       &p.carrier,
       "Choose the transport; auto: UCX's rc_mcast if its plug-in interface is known, else "
       "libmcast; ucx: rc_mcast; direct: libmcast",
       {{static_cast<int>(Carrier::kAuto), "auto"},
        {static_cast<int>(Carrier::kUcx), "ucx"},
        {static_cast<int>(Carrier::kDirect), "direct"},
        {0, nullptr}}},
      {"set_up_after", OPAL_INFO_LVL_5, &p.set_up_after,
       "Set a communicator's group up after this many broadcasts, because set-up costs more than a "
       "few broadcasts gain; 0, and in mode require: at the first (cepheus-run sets 0)"},
      {"set_up_bytes", OPAL_INFO_LVL_5, &p.set_up_bytes,
       "Set a communicator's group up after this many broadcast bytes, too"},
      {"ordered_starts", OPAL_INFO_LVL_5, &p.ordered_starts,
       "1: multicast persistent broadcasts; the program must start them in one order on all ranks, "
       "also relative to the communicator's other broadcasts; 0: use Open MPI's own algorithm, "
       "because MPI allows any order"},
      {"mrp_port", OPAL_INFO_LVL_6, &p.mrp_port, "Use this UDP port for registration; 0: 18516"},
      {"max_eager_memory", OPAL_INFO_LVL_5, &p.max_eager_memory,
       "Limit the posted buffers of all communicators of a process to this size in bytes; 0: 64 "
       "MiB, enough for about 1000 communicators of few ranks"},
      {"device", OPAL_INFO_LVL_4, &p.device,
       "Use this verbs device; empty: the nearest active one with a RoCE v2 IPv4 address"},
      {"mcst_pool", OPAL_INFO_LVL_6, &p.mcst_pool,
       "Take group addresses from this CIDR range; empty: 198.18.0.0/15"},
      {"uct_library", OPAL_INFO_LVL_9, &p.uct_library,
       "Load libuct_rc_mcast.so from this path; empty: the one installed with this component"},
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
    opal_output(
        0,
        "cepheus: coll_cepheus_%s is set, but there is no such parameter; correct its name; the "
        "parameters are: %s",
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
