// What `cepheusctl explain` shows of one communicator: calls by path and reason.
#pragma once

#include <mcast/mcast.h>

#include <atomic>

#include "ompi-coll/ompi_headers.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

class CallReport {
 public:
  CallReport() = default;
  ~CallReport() { mcast_report_close(report_); }
  CallReport(const CallReport&) = delete;
  CallReport& operator=(const CallReport&) = delete;

  // One call on `comm`. Opened at the first one: by then programs have named their communicators.
  // Without room for reports nothing is counted, and nothing else changes.
  // `began`: mcast_report_begin()'s.
  void count(ompi_communicator_t* comm, const char* path, const char* reason, uint64_t began,
             size_t bytes, int root) {
    if (!tried_) {
      tried_ = true;
      const int rank = ompi_comm_rank(comm);
      if (mcast_report_open(comm->c_name, static_cast<unsigned>(rank),
                            static_cast<unsigned>(ompi_comm_size(comm)), &report_) != MCAST_OK &&
          rank == 0) {
        say_why_not();
      }
    }
    mcast_report_timed_call(report_, path, reason, began, bytes, static_cast<unsigned>(root));
  }

 private:
  // Once a process.
  static void say_why_not() {
    static std::atomic<bool> said{false};
    if (said.exchange(true)) return;
    opal_output_verbose(1, output_stream(),
                        "cepheus: cepheusctl explain won't show this process: %s",
                        mcast_last_error());
  }

  bool tried_ = false;
  mcast_report_h report_ = nullptr;
};

}  // namespace cepheus::coll
