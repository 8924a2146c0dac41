// coll/cepheus: MPI_Bcast by multicast. The MCA component that Open MPI loads.
#include <algorithm>
#include <cstring>

#include "collectives/communicators.h"
#include "collectives/group/transport.h"
#include "ompi-coll/module.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/variables.h"

namespace {

using namespace cepheus::ompi;

extern "C" int cepheus_register(void);

// Open MPI goes on without a component that does not open.
extern "C" int cepheus_open(void) {
  if (!layout_matches()) {
    opal_output(0,
                "cepheus: this is not the Open MPI %d.%d that coll/cepheus was built for; rebuild "
                "Cepheus, or unset OMPI_MCA_mca_base_component_path",
                OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    return OMPI_ERROR;
  }
  output_stream() = opal_output_open(nullptr);
  // Errors are at level 0: they are always told.
  opal_output_set_verbosity(output_stream(), std::max(0, cepheus::coll::parameters().verbose));
  opal_show_help_add_dir(component_directory());
  warn_of_unknown_parameters();
  return OMPI_SUCCESS;
}

extern "C" int cepheus_close(void) {
  cepheus::coll::end_background_progress();
  cepheus::coll::Transport::instance().close();
  opal_output_close(output_stream());
  return OMPI_SUCCESS;
}

extern "C" int cepheus_init_query(bool, bool) { return OMPI_SUCCESS; }

mca_coll_base_component_t describe() {
  mca_coll_base_component_t component;
  std::memset(&component, 0, sizeof component);
  auto& version = component.collm_version;
  version.mca_major_version = MCA_BASE_VERSION_MAJOR;
  version.mca_minor_version = MCA_BASE_VERSION_MINOR;
  version.mca_release_version = MCA_BASE_VERSION_RELEASE;
  std::strcpy(version.mca_project_name, "ompi");
  version.mca_project_major_version = OMPI_MAJOR_VERSION;
  version.mca_project_minor_version = OMPI_MINOR_VERSION;
  version.mca_project_release_version = OMPI_RELEASE_VERSION;
  std::strcpy(version.mca_type_name, "coll");
  version.mca_type_major_version = kCollInterface[0];
  version.mca_type_minor_version = kCollInterface[1];
  version.mca_type_release_version = kCollInterface[2];
  std::strcpy(version.mca_component_name, "cepheus");
  version.mca_component_major_version = CEPHEUS_VERSION_MAJOR;
  version.mca_component_minor_version = CEPHEUS_VERSION_MINOR;
  version.mca_component_release_version = CEPHEUS_VERSION_PATCH;
  version.mca_open_component = cepheus_open;
  version.mca_close_component = cepheus_close;
  version.mca_register_component_params = cepheus_register;
  component.collm_data.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT;
  component.collm_init_query = cepheus_init_query;
  component.collm_comm_query = cepheus_comm_query;
  return component;
}

}  // namespace

// Open MPI looks this name up: mca_<framework>_<component>_component.
extern "C" {
__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_cepheus_component =
    describe();
}

extern "C" int cepheus_register(void) {
  register_parameters(&mca_coll_cepheus_component.collm_version);
  register_variables(&mca_coll_cepheus_component.collm_version);
  return OMPI_SUCCESS;
}
