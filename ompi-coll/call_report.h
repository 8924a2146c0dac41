// What `cepheusctl explain` shows of one communicator: calls by path and reason.
#pragma once

#include <mcast/mcast.h>

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

class CallReport {
 public:
  CallReport() = default;
  ~CallReport() { mcast_report_close(report_); }
  CallReport(const CallReport&) = delete;
  CallReport& operator=(const CallReport&) = delete;

  // One call on `comm`. Opened at the first one: by then programs have named their communicators.
  // Without a place for reports nothing is counted, and nothing else changes.
  void count(ompi_communicator_t* comm, const char* path, const char* reason) {
    if (!tried_) {
      tried_ = true;
      (void)mcast_report_open(comm->c_name, static_cast<unsigned>(ompi_comm_rank(comm)),
                              static_cast<unsigned>(ompi_comm_size(comm)), &report_);
    }
    mcast_report_call(report_, path, reason);
  }

 private:
  bool tried_ = false;
  mcast_report_h report_ = nullptr;
};

}  // namespace cepheus::coll
