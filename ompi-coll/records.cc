#include "ompi-coll/records.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectives/core/records.h"
#include "collectives/host_mpi.h"
#include "ompi-coll/host_objects.h"
#include "ompi-coll/parameters.h"

namespace cepheus::ompi {

using namespace coll;

namespace {

std::string own_record() { return record_of(CEPHEUS_VERSION, parameters()); }

bool is_of_this_job(const opal_process_name_t& process) {
  return process.jobid == ompi_proc_local()->super.proc_name.jobid;
}

std::string record_of_process(const opal_process_name_t& process) {
  char* const text = published(process, is_of_this_job(process));
  std::string record = text != nullptr ? text : "";
  std::free(text);
  return record;
}

opal_process_name_t process(ompi_communicator_t* comm, int rank) {
  return ompi_group_get_proc_name(comm->c_local_group, rank);
}

// Each process of this job is looked up once. Open MPI makes communicators in one thread at a time.
bool is_alike(const opal_process_name_t& process, const std::string& own) {
  static std::vector<bool> alike;
  if (!is_of_this_job(process)) return record_of_process(process) == own;
  if (process.vpid >= alike.size()) alike.resize(process.vpid + 1);
  if (!alike[process.vpid]) alike[process.vpid] = record_of_process(process) == own;
  return alike[process.vpid];
}

void report(ompi_communicator_t* comm, const Difference& difference) {
  if (ompi_comm_rank(comm) != static_cast<int>(difference.reporting_rank)) return;
  if (parameters().chosen_mode() == Mode::kRequire)
    host::abort_job(*reinterpret_cast<host::Communicator*>(comm), difference.text);
  static std::atomic<bool> is_reported{false};
  host::log(is_reported.exchange(true) ? 1 : 0, "cepheus: %s (%d ranks): %s's own algorithms: %s",
            comm->c_name, ompi_comm_size(comm), host::implementation(), difference.text.c_str());
}

}  // namespace

void publish_settings() { publish(own_record().c_str()); }

bool ranks_match(ompi_communicator_t* comm) {
  const std::string own = own_record();
  const int size = ompi_comm_size(comm);
  int rank = 0;
  while (rank < size && is_alike(process(comm, rank), own)) ++rank;
  if (rank == size) return true;
  std::vector<RankRecord> ranks;
  for (rank = 0; rank < size; ++rank) {
    const char* const name = opal_get_proc_hostname(&ompi_comm_peer_lookup(comm, rank)->super);
    ranks.push_back({record_of_process(process(comm, rank)), name != nullptr ? name : "?"});
  }
  report(comm, difference_between(ranks, parameters().chosen_mode(), host::parameter));
  return false;
}

}  // namespace cepheus::ompi
