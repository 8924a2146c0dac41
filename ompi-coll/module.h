// coll/cepheus on one communicator: which path its broadcasts take, and the module that serves them
// otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ompi-coll/broadcast.h"
#include "ompi-coll/call_report.h"

namespace cepheus::coll {

// C++ state of a module. Open MPI allocates modules with malloc, so it hangs off a pointer.
class CommunicatorState {
 public:
  explicit CommunicatorState(ompi_communicator_t* comm);
  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  // Serves one broadcast of `bytes` > 0, or returns OMPI_ERR_NOT_AVAILABLE: the saved module shall
  // serve it.
  int broadcast(Payload& payload, int root);

  // Tear-down in two rounds, so that nobody leaves while another still waits for its
  // acknowledgement: all have drained -> rank 0 says so -> groups are destroyed. Never blocks; true
  // when done.
  bool tear_down();
  bool has_groups() const;
  void destroy_groups();  // local only
  ompi_communicator_t* comm() const { return comm_; }

 private:
  enum class TearDown : std::uint8_t { kDraining, kGathering, kReleasing, kDone };

  int wait_for(Lane& lane);
  void report(const Lane& lane, const char* name, const char* saved);
  [[noreturn]] void abort_job(const std::string& reason);

  ompi_communicator_t* comm_;
  Inbox inbox_;
  std::unique_ptr<Lane> eager_, bulk_;
  bool reported_ = false;
  CallReport calls_;
  std::uint32_t eager_sequence_ = 0, bulk_sequence_ = 0;
  TearDown tear_down_ = TearDown::kDraining;
  Messages messages_;
  std::unique_ptr<char[]> flags_;
};

// Sets up what is needed to tear groups down while messages still flow: attributes on
// communicators, and on MPI_COMM_SELF for those that are never freed.
int watch_communicator(ompi_communicator_t* comm, CommunicatorState* state);

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority);

}  // namespace cepheus::coll
