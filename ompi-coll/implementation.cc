// The functions that component.cc finds in this library. Opening: check that Open MPI's structures
// have the layout of the build, set up the log, warn of unknown parameters, publish this rank's
// settings. If the layout differs, the component does not open, and Open MPI goes on without it.
//
// MPI_T performance variables (coll_cepheus_<name>) are the counters themselves; reading them takes
// no lock. Closing ends background progress and the device.
#include "ompi-coll/implementation.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "collectives/communicators.h"
#include "collectives/core/counters.h"
#include "collectives/group/transport.h"
#include "ompi-coll/module.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/records.h"

namespace {

using namespace cepheus::ompi;
using namespace cepheus::coll;

// MPI_T performance variables (coll_cepheus_<name>; `ompi_info --all` lists them).
struct Variable {
  const char* name;
  const char* help;
};
constexpr Variable kVariables[] = {
    {"bcasts_eager", "Broadcasts by multicast that were copied through posted buffers"},
    {"bcasts_bulk", "Broadcasts by multicast straight between the callers' buffers"},
    {"bcasts_hosts", "Broadcasts by multicast among one rank of each host, then inside hosts"},
    {"bcasts_saved",
     "Broadcasts that Open MPI's own algorithms served, or that ended point to point"},
    {"ibcasts_eager", "Non-blocking broadcasts by multicast that were copied through buffers"},
    {"ibcasts_bulk", "Non-blocking broadcasts by multicast straight between the callers' buffers"},
    {"ibcasts_hosts",
     "Non-blocking broadcasts by multicast among one rank of each host, then inside hosts"},
    {"ibcasts_tree", "Non-blocking broadcasts, or the rest of one, point to point down a tree"},
    {"ibcasts_saved",
     "Non-blocking broadcasts and persistent requests that Open MPI's own algorithms served"},
    {"repairs_received",
     "Pieces of broadcasts, and results of reductions, received point to point after a group "
     "failed"},
    {"repairs_sent",
     "Pieces of broadcasts, and results of reductions, sent point to point after a group failed"},
    {"groups", "Multicast groups set up"},
    {"device_buffers", "Buffers in a GPU's memory, which Open MPI copied from and to host memory"},
};
static_assert(std::size(kVariables) == Counters::kKinds);

// ... (coll_cepheus_<collective>s_<way>).
constexpr Variable kWays[] = {
    {"network", "that the switches served"},
    {"hosts", "that the switches served among one rank of each host, and ranks inside hosts"},
    {"messages", "by messages between ranks, because the network could not serve"},
    {"saved", "that Open MPI's own algorithms served"},
};
static_assert(std::size(kWays) == Counters::kWays);

int read_registered_bytes(const mca_base_pvar_t*, void* value, void*) {
  *static_cast<unsigned long long*>(value) = Transport::instance().registered_bytes();
  return OPAL_SUCCESS;
}

void register_one(const mca_base_component_t* component, const std::string& name,
                  const std::string& help, int kind, mca_base_get_value_fn_t read, void* value) {
  (void)mca_base_component_pvar_register(
      component, name.c_str(), help.c_str(), OPAL_INFO_LVL_4, kind,
      MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, MCA_BASE_VAR_BIND_NO_OBJECT,
      static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                        MCA_BASE_PVAR_FLAG_CONTINUOUS),
      read, nullptr, nullptr, value);
}

void register_variables(const mca_base_component_t* component) {
  const auto count = [&](const std::string& name, const std::string& help, auto& value) {
    register_one(component, name, help, MCA_BASE_PVAR_CLASS_COUNTER, nullptr, &value);
  };
  for (std::size_t i = 0; i < Counters::kKinds; ++i) {
    count(kVariables[i].name, kVariables[i].help, counters().values()[i]);
  }
  for (std::size_t i = 1; i < kCollectives; ++i) {  // broadcasts are above
    const std::string collective = name(static_cast<Collective>(i));
    std::string capital = collective;
    capital[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(capital[0])));
    for (std::size_t way = 0; way < Counters::kWays; ++way) {
      count(collective + "s_" + kWays[way].name,
            "Calls of MPI_" + capital + " and MPI_I" + collective + " " + kWays[way].help,
            counters().reductions()[i][way]);
    }
  }
  for (std::size_t i = 0; i < Counters::kCauses; ++i) {
    const std::string cause = name(static_cast<Cause>(i));
    count("fallbacks_" + cause,
          "Times that the multicast groups of a communicator were given up, by cause: " + cause,
          counters().fallbacks()[i]);
  }
  register_one(component, "registered_bytes", "Bytes of memory that are registered with the device",
               MCA_BASE_PVAR_CLASS_LEVEL, read_registered_bytes, nullptr);
}

void register_all(const mca_base_component_t* component, int mode) {
  register_parameters(component, mode);
  register_variables(component);
}

bool is_open = false;

// Open MPI continues without a component that does not open.
int open_all() {
  if (!layout_matches()) {
    opal_output(0,
                "cepheus: this is not the Open MPI %d.%d that coll/cepheus was built for; rebuild "
                "Cepheus, or unset OMPI_MCA_mca_base_component_path",
                OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    return OMPI_ERROR;
  }
  output_stream() = opal_output_open(nullptr);
  // Errors are at level 0, so they always appear.
  opal_output_set_verbosity(output_stream(), std::max(0, parameters().verbose));
  opal_show_help_add_dir(component_directory());
  warn_of_unknown_parameters();
  publish_settings();
  is_open = true;
  return OMPI_SUCCESS;
}

int close_all() {
  end_background_progress();
  forget_keyvals();
  Transport::instance().close();
  opal_output_close(output_stream());
  is_open = false;
  return OMPI_SUCCESS;
}

// A component that did not open may not read Open MPI's structures.
int serves() { return is_open && serves_world() ? 1 : 0; }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const Implementation cepheus_coll_implementation;
const Implementation cepheus_coll_implementation{register_all, open_all, close_all,
                                                 cepheus_comm_query, serves};
}
