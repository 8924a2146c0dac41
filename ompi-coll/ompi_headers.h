// Open MPI 4.1's own headers for an out-of-tree component in C++. Include this before any other
// header of Open MPI.
#pragma once

#include "ompi_config.h"
// After the configuration, before request.h: the macro hands a void* to a void** parameter, which
// C++ refuses.
#include "opal/threads/thread_usage.h"
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(address, old_value, new_value)           \
  opal_thread_compare_exchange_strong_ptr(reinterpret_cast<volatile intptr_t*>(address), \
                                          reinterpret_cast<void**>(old_value),           \
                                          reinterpret_cast<void*>(new_value))

// These declare their functions without C linkage.
extern "C" {
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var_enum.h"
}

#include "mpi.h"
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_object.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/mca.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"
