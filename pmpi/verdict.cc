// One MPI_Allreduce of minima finds the first ranks with mode off and on, and whether all are able.
// The settings' fingerprint is sent beside its complement, so that the maximum is a minimum, too.
// The same call names the job by rank 0's process and time. If the call fails on a rank, that rank
// is not served.
#include "pmpi/verdict.h"

#include <unistd.h>

#include <climits>
#include <ctime>

#include "collectives/core/parameters.h"
#include "collectives/host_mpi.h"
#include "collectives/reports/report_file.h"
#include "pmpi/calls.h"

namespace cepheus::pmpi {

using namespace coll;

Verdict agree(bool is_off, bool is_able) {
  constexpr const char* kFailed = "a function of it failed";
  enum { kOff, kNotOff, kAble, kSettings, kInverseSettings, kProcess, kTime, kFacts };
  int rank = 0, all[kFacts] = {};
  if (calls().Comm_rank(kCommWorld, &rank) != kSuccess) return {false, kFailed};
  const int settings = static_cast<int>(parameters().fingerprint());
  const int mine[kFacts] = {is_off ? rank : INT_MAX,
                            is_off ? INT_MAX : rank,
                            is_able ? 1 : 0,
                            settings,
                            ~settings,
                            rank == 0 ? getpid() : INT_MAX,
                            rank == 0 ? static_cast<int>(time(nullptr) % INT_MAX) : INT_MAX};
  if (calls().Allreduce(mine, all, kFacts, kInt, kMin, kCommWorld) != kSuccess)
    return {false, kFailed};
  // Hydra gives jobs no name.
  ReportFile::set_job(std::string(host::implementation()) + "-" + std::to_string(all[kProcess]) +
                      "-" + std::to_string(all[kTime]));
  const bool is_first = rank == 0;
  if (all[kOff] != INT_MAX) {
    if (is_first && all[kNotOff] != INT_MAX) {
      host::log(0, "cepheus: %s is off on rank %d, and not on rank %d: it is off on all ranks",
                host::parameter("mode").c_str(), all[kOff], all[kNotOff]);
    }
    return {true};
  }
  if (all[kAble] == 0) return {false, "another rank is not able to multicast", is_first};
  // The least and the greatest.
  if (all[kSettings] != ~all[kInverseSettings])
    return {false, host::parameter("*") + " differ among the ranks: give all ranks the same",
            is_first};
  return {};
}

}  // namespace cepheus::pmpi
