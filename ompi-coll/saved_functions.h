// The functions of a communicator that Open MPI had chosen before the component: they serve the calls
// that multicast does not.
#pragma once

#include <utility>

#include "ompi-coll/ompi_headers.h"

// The functions of Open MPI that the component takes the place of.
#define CEPHEUS_FUNCTIONS(DO) \
  DO(bcast)                   \
  DO(ibcast)                  \
  DO(bcast_init)              \
  DO(barrier)                 \
  DO(ibarrier)                \
  DO(allreduce)               \
  DO(iallreduce)              \
  DO(reduce)                  \
  DO(ireduce)                 \
  DO(allgather)               \
  DO(iallgather)

namespace cepheus::ompi {

// This thread is in one. Some of Open MPI's functions call others, such as MPI_Reduce inside
// MPI_Allreduce: saved functions serve those, too.
inline thread_local bool is_in_saved = false;

template <typename Function>
struct Saved {
  Function function = nullptr;
  mca_coll_base_module_t* module = nullptr;

  void save(Function before, mca_coll_base_module_t* its_module) {
    function = before;
    module = its_module;
    if (module != nullptr) OBJ_RETAIN(module);
  }
  void release() {
    if (module != nullptr) OBJ_RELEASE(module);
  }
  template <typename... Arguments>
  int operator()(Arguments... arguments) const {
    const bool outer = std::exchange(is_in_saved, true);
    const int rc = function(arguments..., module);
    is_in_saved = outer;
    return rc;
  }
};

struct SavedFunctions {
#define CEPHEUS_SAVED(name) Saved<mca_coll_base_module_##name##_fn_t> name;
  CEPHEUS_FUNCTIONS(CEPHEUS_SAVED)
#undef CEPHEUS_SAVED
};

}  // namespace cepheus::ompi
