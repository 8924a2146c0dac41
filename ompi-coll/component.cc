// coll/cepheus: MPI_Bcast by multicast. The MCA component that Open MPI loads.
//
// With mode off nothing else is loaded, so this file needs no library that Open MPI does not have,
// the C++ library included. Otherwise it loads libcepheus-coll.so, which lies beside it.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iterator>

#include "collectives/core/mode.h"
#include "ompi-coll/implementation.h"
#include "ompi-coll/record.h"

namespace {

using namespace cepheus::ompi;
using cepheus::coll::Mode;

const Implementation* implementation = nullptr;  // null: the component is off
int mode = static_cast<int>(Mode::kTry);

extern "C" int cepheus_register(void);

const Implementation* off_because(const char* what, const char* why) {
  opal_output(0, "cepheus: coll/cepheus is off: %s: %s; install what is missing", what, why);
  return nullptr;
}

// Null: the library can't be loaded, and the user has read why. It stays loaded: Open MPI's variables
// point into it, and threads may still run at the program's exit.
const Implementation* load() {
  constexpr char kName[] = "libcepheus-coll.so";
  Dl_info info;
  char path[PATH_MAX + sizeof kName];
  // The file's own place, not a link's: packages put a link into Open MPI's own directory.
  if (dladdr(reinterpret_cast<void*>(&cepheus_register), &info) == 0)
    return off_because(kName, "the component's own file is not known");
  if (realpath(info.dli_fname, path) == nullptr)
    return off_because(info.dli_fname, strerror(errno));
  strcpy(strrchr(path, '/') + 1, kName);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return off_because(kName, dlerror());
  const void* const found = dlsym(library, kImplementation);
  return found != nullptr ? static_cast<const Implementation*>(found)
                          : off_because(kName, dlerror());
}

const mca_base_component_t* component();

// Reads `mode` alone.
void register_mode() {
  mca_base_var_enum_value_t values[std::size(cepheus::coll::kModes) + 1] = {};
  for (size_t i = 0; i < std::size(cepheus::coll::kModes); ++i)
    values[i] = {static_cast<int>(i), cepheus::coll::kModes[i]};
  mca_base_var_enum_t* choices = nullptr;
  (void)mca_base_var_enum_create("coll_cepheus_mode", values, &choices);
  (void)mca_base_component_var_register(
      component(), "mode", cepheus::coll::kModeHelp, MCA_BASE_VAR_TYPE_INT, choices, 0,
      static_cast<mca_base_var_flag_t>(0), OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_READONLY, &mode);
  if (choices != nullptr) OBJ_RELEASE(choices);
}

extern "C" int cepheus_open(void) {
  if (implementation != nullptr) return implementation->open();
  if (mode == static_cast<int>(Mode::kRequire)) exit(1);  // load() has printed why
  publish(kRecordOfOff);
  return OMPI_SUCCESS;
}

extern "C" int cepheus_close(void) {
  return implementation != nullptr ? implementation->close() : OMPI_SUCCESS;
}

extern "C" int cepheus_init_query(bool, bool) { return OMPI_SUCCESS; }

extern "C" mca_coll_base_module_t* cepheus_query(ompi_communicator_t* comm, int* priority) {
  return implementation != nullptr ? implementation->query(comm, priority) : nullptr;
}

mca_coll_base_component_t describe() {
  mca_coll_base_component_t component;
  memset(&component, 0, sizeof component);
  auto& version = component.collm_version;
  version.mca_major_version = MCA_BASE_VERSION_MAJOR;
  version.mca_minor_version = MCA_BASE_VERSION_MINOR;
  version.mca_release_version = MCA_BASE_VERSION_RELEASE;
  strcpy(version.mca_project_name, "ompi");
  version.mca_project_major_version = OMPI_MAJOR_VERSION;
  version.mca_project_minor_version = OMPI_MINOR_VERSION;
  version.mca_project_release_version = OMPI_RELEASE_VERSION;
  strcpy(version.mca_type_name, "coll");
  version.mca_type_major_version = kCollInterface[0];
  version.mca_type_minor_version = kCollInterface[1];
  version.mca_type_release_version = kCollInterface[2];
  strcpy(version.mca_component_name, "cepheus");
  version.mca_component_major_version = CEPHEUS_VERSION_MAJOR;
  version.mca_component_minor_version = CEPHEUS_VERSION_MINOR;
  version.mca_component_release_version = CEPHEUS_VERSION_PATCH;
  version.mca_open_component = cepheus_open;
  version.mca_close_component = cepheus_close;
  version.mca_register_component_params = cepheus_register;
  component.collm_data.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT;
  component.collm_init_query = cepheus_init_query;
  component.collm_comm_query = cepheus_query;
  return component;
}

}  // namespace

// Open MPI looks this name up: mca_<framework>_<component>_component.
extern "C" {
__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_cepheus_component =
    describe();
}

namespace {
const mca_base_component_t* component() { return &mca_coll_cepheus_component.collm_version; }
}  // namespace

extern "C" int cepheus_register(void) {
  register_mode();
  implementation = mode == static_cast<int>(Mode::kOff) ? nullptr : load();
  if (implementation != nullptr) implementation->register_all(component(), mode);
  return OMPI_SUCCESS;
}

// libcepheus-mpi.so calls it after MPI_Init: one of both serves a process.
extern "C" __attribute__((visibility("default"))) int mca_coll_cepheus_serves(void) {
  return implementation != nullptr ? implementation->serves_world() : 0;
}
