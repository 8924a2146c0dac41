// What each rank publishes in MPI_Init, with the data that processes exchange there: Cepheus's version
// and the settings that ranks must share. Without the C++ library: component.cc includes it.
#pragma once

#include "ompi-coll/ompi_headers.h"
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#else
#include "opal/mca/pmix/pmix.h"
#endif

namespace cepheus::ompi {

#if OMPI_MAJOR_VERSION >= 5
inline constexpr auto kText = PMIX_STRING;
#else
inline constexpr auto kText = OPAL_STRING;
#endif
inline constexpr char kRecordKey[] = "cepheus.record";
// The version, a blank, and `mode`, with which the record of a component that is off ends.
inline constexpr char kRecordOfOff[] = CEPHEUS_VERSION " 0";

// Before MPI_Init exchanges the data. If it fails, the other ranks find no record.
inline void publish([[maybe_unused]] const char* record) {
  [[maybe_unused]] int rc = OPAL_SUCCESS;
#if OMPI_MAJOR_VERSION >= 5
  OPAL_MODEX_SEND_VALUE(rc, PMIX_GLOBAL, kRecordKey, record, kText);
#else
  char* const key = const_cast<char*>(kRecordKey);
  if (opal_pmix.put == nullptr) return;
  OPAL_MODEX_SEND_VALUE(rc, OPAL_PMIX_GLOBAL, key, const_cast<char*>(record), kText);
#endif
}

// A record that `process` has published, for free(); null: none. This node knows the records of this
// job, unless the user has told MPI_Init not to collect such data. Other records may have to come
// from the process's node, where each process publishes its own before MPI_Init ends.
inline char* published(const opal_process_name_t& process, bool is_of_this_job) {
  int rc = OPAL_SUCCESS;
  char* text = nullptr;
  if (is_of_this_job && opal_pmix_collect_all_data && !opal_pmix_base_async_modex) {
    OPAL_MODEX_RECV_VALUE_IMMEDIATE(rc, kRecordKey, &process, &text, kText);
  } else {
    OPAL_MODEX_RECV_VALUE(rc, kRecordKey, &process, &text, kText);
  }
  return rc == OPAL_SUCCESS ? text : nullptr;
}

}  // namespace cepheus::ompi
