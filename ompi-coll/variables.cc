#include "ompi-coll/variables.h"

#include <string>

#include "collectives/core/counters.h"
#include "collectives/group/transport.h"

namespace cepheus::ompi {

using namespace coll;

namespace {

struct Variable {
  const char* name;
  const char* help;
};
constexpr Variable kVariables[] = {
    {"bcasts_eager", "Broadcasts by multicast that were copied through posted buffers"},
    {"bcasts_bulk", "Broadcasts by multicast straight between the callers' buffers"},
    {"bcasts_hosts", "Broadcasts among one rank of each host, and from there inside the hosts"},
    {"bcasts_saved",
     "Broadcasts that Open MPI's own algorithms served, or that ended point to point"},
    {"ibcasts_eager", "Non-blocking broadcasts by multicast that were copied through buffers"},
    {"ibcasts_bulk", "Non-blocking broadcasts by multicast straight between the callers' buffers"},
    {"ibcasts_hosts",
     "Non-blocking broadcasts among one rank of each host, and from there inside the hosts"},
    {"ibcasts_tree", "Non-blocking broadcasts, or the rest of one, point to point down a tree"},
    {"ibcasts_saved", "Non-blocking broadcasts that Open MPI's own algorithm served"},
    {"repairs_received", "Pieces of broadcasts received point to point after the fabric broke"},
    {"repairs_sent", "Pieces of broadcasts sent point to point after the fabric broke"},
    {"groups", "Multicast groups set up"},
    {"device_buffers", "Buffers in a GPU's memory, which Open MPI copied from and to host memory"},
};
static_assert(std::size(kVariables) == Counters::kKinds);

int read_registered_bytes(const mca_base_pvar_t*, void* value, void*) {
  *static_cast<unsigned long long*>(value) = Transport::instance().registered_bytes();
  return OPAL_SUCCESS;
}

void register_one(const mca_base_component_t* component, const std::string& name,
                  const std::string& help, unsigned long long* value) {
  (void)mca_base_component_pvar_register(
      component, name.c_str(), help.c_str(), OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
      MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, MCA_BASE_VAR_BIND_NO_OBJECT,
      static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                        MCA_BASE_PVAR_FLAG_CONTINUOUS),
      nullptr, nullptr, nullptr, value);
}

}  // namespace

void register_variables(const mca_base_component_t* component) {
  for (std::size_t i = 0; i < Counters::kKinds; ++i) {
    register_one(component, kVariables[i].name, kVariables[i].help, &counters().values()[i]);
  }
  for (std::size_t i = 0; i < Counters::kCauses; ++i) {
    const std::string cause = name(static_cast<Cause>(i));
    register_one(component, "fallbacks_" + cause,
                 "Times that the multicast groups of a communicator were given up: " + cause,
                 &counters().fallbacks()[i]);
  }
  (void)mca_base_component_pvar_register(
      component, "registered_bytes", "Memory that is registered with the device", OPAL_INFO_LVL_4,
      MCA_BASE_PVAR_CLASS_LEVEL, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr,
      MCA_BASE_VAR_BIND_NO_OBJECT,
      static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                        MCA_BASE_PVAR_FLAG_CONTINUOUS),
      read_registered_bytes, nullptr, nullptr, nullptr);
}

}  // namespace cepheus::ompi
