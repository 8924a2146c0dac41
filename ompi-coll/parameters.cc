#include "ompi-coll/parameters.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace cepheus::ompi {

using namespace coll;

int& output_stream() {
  static int stream = -1;
  return stream;
}

namespace {

std::vector<std::string>& known_names() {
  static std::vector<std::string> names;
  return names;
}

void register_int(const mca_base_component_t* component, const char* name, const char* help,
                  mca_base_var_info_lvl_t level, int* storage,
                  mca_base_var_enum_t* values = nullptr) {
  known_names().push_back(name);
  (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_INT, values, 0,
                                        static_cast<mca_base_var_flag_t>(0), level,
                                        MCA_BASE_VAR_SCOPE_READONLY, storage);
}

// One of named values.
void register_choice(const mca_base_component_t* component, const char* name, const char* help,
                     mca_base_var_info_lvl_t level, int* storage,
                     std::vector<mca_base_var_enum_value_t> values) {
  values.push_back({0, nullptr});
  mca_base_var_enum_t* choices = nullptr;
  (void)mca_base_var_enum_create((std::string("coll_cepheus_") + name).c_str(), values.data(),
                                 &choices);
  register_int(component, name, help, level, storage, choices);
  if (choices != nullptr) OBJ_RELEASE(choices);
}

void register_bytes(const mca_base_component_t* component, const char* name, const char* help,
                    mca_base_var_info_lvl_t level, unsigned long long* storage) {
  known_names().push_back(name);
  (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
                                        nullptr, 0, static_cast<mca_base_var_flag_t>(0), level,
                                        MCA_BASE_VAR_SCOPE_READONLY, storage);
}

void register_string(const mca_base_component_t* component, const char* name, const char* help,
                     mca_base_var_info_lvl_t level, const char** storage) {
  known_names().push_back(name);
  (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_STRING, nullptr, 0,
                                        static_cast<mca_base_var_flag_t>(0), level,
                                        MCA_BASE_VAR_SCOPE_READONLY, storage);
}

}  // namespace

void register_parameters(const mca_base_component_t* component) {
  Parameters& p = parameters();
  p.component_directory = component_directory();
  register_int(component, "priority", "Priority of the component; the highest one serves MPI_Bcast",
               OPAL_INFO_LVL_6, &p.priority);
  register_int(component, "verbose",
               "0: silent; 1: one line per communicator saying which path its broadcasts take and "
               "why; 2: every lane",
               OPAL_INFO_LVL_3, &p.verbose);
  register_choice(
      component, "mode",
      "off: never multicast; try: multicast where the fabric can serve, else Open MPI's "
      "own algorithms; "
      "require: end the job with an error where the fabric can't serve",
      OPAL_INFO_LVL_2, &p.mode,
      {{static_cast<int>(Mode::kOff), "off"},
       {static_cast<int>(Mode::kTry), "try"},
       {static_cast<int>(Mode::kRequire), "require"}});
  register_int(component, "min_members",
               "Smallest communicator that gets a multicast group; smaller ones use Open MPI's own "
               "algorithms in every mode",
               OPAL_INFO_LVL_4, &p.min_members);
  register_int(component, "eager_limit",
               "Largest broadcast in bytes that is copied through posted buffers, without waiting "
               "for its receivers; larger ones go straight to the user's",
               OPAL_INFO_LVL_5, &p.eager_limit);
  register_int(component, "eager_message",
               "Bytes of one such buffer: longer eager broadcasts take several", OPAL_INFO_LVL_6,
               &p.eager_message);
  register_int(
      component, "attach_timeout_ms",
      "How long a process waits for the fabric's switch to answer when it attaches, if the "
      "switch runs and the machine is only busy; 0: 30000, or CEPHEUS_ATTACH_TIMEOUT_MS",
      OPAL_INFO_LVL_5, &p.attach_timeout_ms);
  register_int(
      component, "register_timeout_ms",
      "How long the switches and members have to confirm a group; 0: 20000, in mode try also 1000 "
      "after their last answer",
      OPAL_INFO_LVL_5, &p.register_timeout_ms);
  register_int(
      component, "watchdog_ms",
      "A group is given up when no send completes for so long and nobody who is waited for "
      "answers; 0: 2000, in mode require, which has no other way, 8000; never shorter than the "
      "device's own time-out and retries take (8600 on the kernel's Soft-RoCE)",
      OPAL_INFO_LVL_5, &p.watchdog_ms);
  register_int(component, "safeguard_threshold",
               "Mode try: give multicast up for a size class of broadcasts if they take longer by "
               "more than this percentage than by Open MPI's own algorithms",
               OPAL_INFO_LVL_5, &p.safeguard_threshold);
  register_int(
      component, "safeguard_samples",
      "Mode try: of 1000 broadcasts this number at most go the other way, to be compared; 0: "
      "compare never, and multicast whatever it takes",
      OPAL_INFO_LVL_5, &p.safeguard_samples);
  register_int(component, "ranks_per_host",
               "Ranks of a job that share a host, in a row, where the first alone has the NIC "
               "(cepheus-run sets it); 0: ranks share a host that share a machine, or in mode "
               "require a NIC's address; -1: always a NIC's address",
               OPAL_INFO_LVL_5, &p.ranks_per_host);
  register_choice(
      component, "carrier",
      "auto: UCX's rc_mcast where its plug-in interface is known, else libmcast directly; "
      "ucx; direct",
      OPAL_INFO_LVL_6, &p.carrier,
      {{static_cast<int>(Carrier::kAuto), "auto"},
       {static_cast<int>(Carrier::kUcx), "ucx"},
       {static_cast<int>(Carrier::kDirect), "direct"}});
  register_int(
      component, "set_up_after",
      "Number of broadcasts after which a communicator gets a group, because setting it up costs "
      "more than a few broadcasts gain; 0, and in mode require: at the first (cepheus-run sets 0)",
      OPAL_INFO_LVL_5, &p.set_up_after);
  register_bytes(component, "set_up_bytes",
                 "Number of broadcast bytes after which it gets one, too", OPAL_INFO_LVL_5,
                 &p.set_up_bytes);
  register_int(
      component, "ordered_starts",
      "1: the program starts its persistent broadcasts in the same order on all ranks, also "
      "relative to the communicator's other broadcasts, so multicast may serve them; 0: "
      "Open MPI's own algorithm serves them, because MPI allows any order",
      OPAL_INFO_LVL_5, &p.ordered_starts);
  register_int(component, "mrp_port", "UDP port of the registration protocol; 0: 18516",
               OPAL_INFO_LVL_6, &p.mrp_port);
  register_bytes(component, "max_eager_memory",
                 "Most memory in bytes that the posted buffers of all communicators of a process "
                 "may take; 0: 64 MiB, enough for about 1000 communicators of few ranks",
                 OPAL_INFO_LVL_5, &p.max_eager_memory);
  register_string(component, "device",
                  "Verbs device; empty: of the active ones with a RoCE v2 IPv4 address the nearest",
                  OPAL_INFO_LVL_4, &p.device);
  register_string(component, "mcst_pool",
                  "CIDR that group identifiers are taken from; empty: 198.18.0.0/15",
                  OPAL_INFO_LVL_6, &p.mcst_pool);
  register_string(component, "uct_library",
                  "Path of libuct_rc_mcast.so; empty: the one installed with this component",
                  OPAL_INFO_LVL_9, &p.uct_library);
  // The NIC reads it when it is first needed, whatever opens it.
  if (p.attach_timeout_ms > 0)
    setenv("CEPHEUS_ATTACH_TIMEOUT_MS", std::to_string(p.attach_timeout_ms).c_str(), 1);
}

void warn_of_unknown_parameters() {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string_view(rank) != "0") return;
  constexpr std::string_view kPrefix = "OMPI_MCA_coll_cepheus_";
  const std::vector<std::string>& known = known_names();
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!variable.starts_with(kPrefix)) continue;
    const std::string name(variable.substr(kPrefix.size(), variable.find('=') - kPrefix.size()));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
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
    // Where the file is, not a link to it: packages put one into Open MPI's own directory.
    char* const resolved = realpath(info.dli_fname, nullptr);
    const std::string path = resolved != nullptr ? resolved : info.dli_fname;
    free(resolved);
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  }();
  return directory.c_str();
}

}  // namespace cepheus::ompi
