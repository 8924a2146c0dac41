// Open MPI's own headers for an out-of-tree component in C++, and all that differs between its
// versions 4.1 and 5.0. Include this before any other header of Open MPI.
#pragma once

#include "ompi_config.h"

#if OMPI_MAJOR_VERSION >= 5
// Before the headers that take in these files, which libopenmpi-dev does not install.
#undef MCA_threads_base_include_HEADER
#define MCA_threads_base_include_HEADER "ompi-coll/ompi_threads.h"
#undef MCA_threads_mutex_base_include_HEADER
#define MCA_threads_mutex_base_include_HEADER "ompi-coll/ompi_threads.h"
#include "opal/mca/base/mca_base_alias.h"
END_C_DECLS;  // which that header forgets
#else
// After the configuration, before request.h: the macro hands a void* to a void** parameter, which
// C++ refuses.
#include "opal/threads/thread_usage.h"
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(address, old_value, new_value)           \
  opal_thread_compare_exchange_strong_ptr(reinterpret_cast<volatile intptr_t*>(address), \
                                          reinterpret_cast<void**>(old_value),           \
                                          reinterpret_cast<void*>(new_value))
#endif

// Before all that include them: they declare their functions without C linkage.
extern "C" {
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var_enum.h"
#if OMPI_MAJOR_VERSION < 5
#include "opal/util/proc.h"
#endif
}

#if OMPI_MAJOR_VERSION >= 5
#include "opal/util/event.h"
END_C_DECLS;  // which that header forgets, too
// A function in communicator.h hands a void* to its void** parameter.
#include "opal/class/opal_hash_table.h"
#define opal_hash_table_get_value_ptr(table, key, size, value) \
  (opal_hash_table_get_value_ptr)(table, key, size, reinterpret_cast<void**>(value))
#include "ompi/communicator/communicator.h"
#undef opal_hash_table_get_value_ptr
#endif

#include "mpi.h"
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_object.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/mca.h"
#include "opal/runtime/opal.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"
#if OMPI_MAJOR_VERSION >= 5
#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/accelerator/accelerator.h"
#else
#include "ompi/mca/rte/rte.h"
#endif

namespace cepheus::ompi {

// The version of coll's interface that these headers declare. Open MPI refuses any other than its
// own.
#if defined(MCA_COLL_BASE_VERSION_2_4_0)
inline constexpr int kCollInterface[] = {2, 4, 0};
#elif defined(MCA_COLL_BASE_VERSION_2_0_0)
inline constexpr int kCollInterface[] = {2, 0, 0};
#else
#error "This Open MPI's interface of coll is not known here: see kCollInterface"
#endif

// True if a convertor accepts parts of the data, also in the middle of a basic element (payload.h).
inline constexpr bool kConvertorTakesParts = OMPI_MAJOR_VERSION < 5;

// Open MPI has components for accelerators (CUDA, ROCm, Level Zero).
inline constexpr bool kKnowsAccelerators = OMPI_MAJOR_VERSION >= 5;

// True if Open MPI's component for accelerators takes this for its device's memory.
inline bool is_accelerator_memory([[maybe_unused]] const void* address) {
#if OMPI_MAJOR_VERSION >= 5
  int device = 0;
  uint64_t flags = 0;
  const auto check = opal_accelerator.check_addr;
  return check != nullptr && check(address, &device, &flags) > 0;
#else
  return false;
#endif
}

// True for a communicator of an MPI session: it was not made from MPI_COMM_WORLD or MPI_COMM_SELF.
// After MPI_Finalize all are, and a new session may have the address of MPI_COMM_WORLD's instance.
inline bool is_of_session([[maybe_unused]] const ompi_communicator_t* comm) {
#if OMPI_MAJOR_VERSION >= 5
  if (comm->instance == nullptr) return false;
  const auto state = ompi_mpi_state;
  return state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT ||
         comm->instance != ompi_mpi_comm_world.comm.instance;
#else
  return false;
#endif
}

// Does the libmpi that was loaded lay out its objects as these headers do?
inline bool layout_matches() {
  return opal_mutex_t_class.cls_sizeof == sizeof(opal_mutex_t) &&
         ompi_communicator_t_class.cls_sizeof == sizeof(ompi_communicator_t) &&
         ompi_request_t_class.cls_sizeof == sizeof(ompi_request_t) &&
         mca_coll_base_module_t_class.cls_sizeof == sizeof(mca_coll_base_module_t);
}

}  // namespace cepheus::ompi
