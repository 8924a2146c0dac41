// Records of this job's ranks are looked up once and kept; those of other jobs are looked up each
// time. Equal texts are stored once. If a record differs, reporting_rank() chooses one rank, which
// prints the first difference in the process at level 0 and later ones at level 1. In mode
// "require" that rank ends the job.
#include "ompi-coll/records.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "collectives/core/records.h"
#include "collectives/host_mpi.h"
#include "ompi-coll/codes.h"
#include "ompi-coll/parameters.h"

namespace cepheus::ompi {

using namespace coll;

namespace {

std::string own_record() { return record_of(CEPHEUS_VERSION, parameters()); }

bool is_of_this_job(const opal_process_name_t& process) {
  return process.jobid == ompi_proc_local()->super.proc_name.jobid;
}

// What processes have published. Those of this job are looked up once. Any thread: Open MPI may make
// communicators in several.
class Records {
 public:
  const std::string* of(const opal_process_name_t& process) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!is_of_this_job(process)) return look_up(process, false);
    if (process.vpid >= of_rank_.size()) of_rank_.resize(process.vpid + 1);
    const std::string*& record = of_rank_[process.vpid];
    if (record == nullptr) record = look_up(process, true);
    return record;
  }
  // Open MPI 5 may start again, with other settings.
  void forget() {
    const std::lock_guard<std::mutex> guard(mutex_);
    of_rank_.clear();
  }

 private:
  const std::string* look_up(const opal_process_name_t& process, bool is_of_this_job) {
    char* const text = published(process, is_of_this_job);
    const std::string* const record = &*texts_.emplace(text != nullptr ? text : "").first;
    std::free(text);
    return record;
  }

  std::mutex mutex_;
  std::set<std::string> texts_;
  std::vector<const std::string*> of_rank_;
};

Records& records() {
  static Records all;
  return all;
}

opal_process_name_t process(ompi_communicator_t* comm, int rank) {
  return ompi_group_get_proc_name(comm->c_local_group, rank);
}

std::string host_of(ompi_communicator_t* comm, int rank) {
  const char* const name = opal_get_proc_hostname(&ompi_comm_peer_lookup(comm, rank)->super);
  return name != nullptr ? name : "?";
}

void report(ompi_communicator_t* comm, const std::string& difference) {
  if (parameters().chosen_mode() == Mode::kRequire)
    host::abort_job(*reinterpret_cast<host::Communicator*>(comm), difference);
  static std::atomic<bool> is_reported{false};
  host::log(is_reported.exchange(true) ? 1 : 0, "cepheus: %s (%d ranks): %s's own algorithms: %s",
            comm->c_name, ompi_comm_size(comm), host::implementation(), difference.c_str());
}

}  // namespace

void publish_settings() {
  records().forget();
  publish(own_record().c_str());
}

bool ranks_match(ompi_communicator_t* comm) {
  const std::string own = own_record();
  const int size = ompi_comm_size(comm);
  int rank = 0;
  while (rank < size && *records().of(process(comm, rank)) == own) ++rank;
  if (rank == size) return true;
  std::vector<RankRecord> ranks;
  for (rank = 0; rank < size; ++rank) ranks.push_back({*records().of(process(comm, rank)), ""});
  const Mode mode = parameters().chosen_mode();
  // The others make no objects of Open MPI for all ranks.
  if (reporting_rank(ranks, mode) != static_cast<std::size_t>(ompi_comm_rank(comm))) return false;
  for (rank = 0; rank < size; ++rank) ranks[rank].host = host_of(comm, rank);
  report(comm, difference_between(ranks, mode, host::parameter));
  return false;
}

}  // namespace cepheus::ompi
