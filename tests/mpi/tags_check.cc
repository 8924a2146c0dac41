// Messages that another component of Open MPI exchanges on its own tags reach only that component,
// while coll/cepheus waits for messages of its own on the same communicator.
//
//   tags_check [--disturb 1]   1: an unknown message also comes on a tag of coll/cepheus's own
#include <cstdio>
#include <vector>

#include "ompi-coll/ompi_headers.h"
#include "tests/mpi/pattern.h"

namespace {

// Longer than any message of coll/cepheus, and short enough for an eager message: Open MPI 4.1
// writes beyond the receiver's buffer when it fetches a longer one from the sender's memory.
constexpr int kLength = 1000;

bool wait_for(ompi_request_t* request) {
  for (const double end = MPI_Wtime() + 60; MPI_Wtime() < end;) {
    if (REQUEST_COMPLETE(request)) return true;
    opal_progress();
  }
  return false;
}

// Rank 1 sends to rank 0, which receives the message only after its arrival.
int exchange(int tag, int rank) {
  std::vector<unsigned char> memory(kLength);
  MPI_Comm comm = MPI_COMM_WORLD;
  ompi_request_t* request = nullptr;
  if (rank == 1) {
    fill(memory.data(), kLength, static_cast<uint64_t>(-tag));
    MCA_PML_CALL(isend(memory.data(), kLength, MPI_BYTE, 0, tag, MCA_PML_BASE_SEND_STANDARD, comm,
                       &request));
  }
  MPI_Barrier(comm);
  if (rank == 0) MCA_PML_CALL(irecv(memory.data(), kLength, MPI_BYTE, 1, tag, comm, &request));
  if (rank > 1) return 0;
  if (!wait_for(request)) {
    fprintf(stderr, "rank %d: the message on tag %d went to another receiver\n", rank, tag);
    MPI_Abort(comm, 1);
  }
  ompi_request_free(&request);
  return check(memory.data(), kLength, static_cast<uint64_t>(-tag)) != kLength;
}

// Open MPI's own, on tags that it reserves.
int non_blocking_collectives(int rank, int size) {
  constexpr int kSums = 40;
  std::vector<int> in(kSums, rank), out(kSums, -1);
  std::vector<MPI_Request> requests(kSums);
  for (int i = 0; i < kSums; ++i) {
    MPI_Iallreduce(&in[static_cast<size_t>(i)], &out[static_cast<size_t>(i)], 1, MPI_INT, MPI_SUM,
                   MPI_COMM_WORLD, &requests[static_cast<size_t>(i)]);
  }
  MPI_Waitall(kSums, requests.data(), MPI_STATUSES_IGNORE);
  int wrong = 0;
  for (const int each : out) wrong |= each != size * (size - 1) / 2;
  return wrong;
}

// A message on the tag of coll/cepheus's control messages, longer than any of them.
void disturb(int rank) {
  constexpr int kControlTag = MCA_COLL_BASE_TAG_NONBLOCKING_BASE - 5;
  std::vector<unsigned char> memory(kLength);
  MPI_Comm comm = MPI_COMM_WORLD;
  ompi_request_t* request = nullptr;
  if (rank != 1) return;
  MCA_PML_CALL(isend(memory.data(), kLength, MPI_BYTE, 0, kControlTag, MCA_PML_BASE_SEND_STANDARD,
                     comm, &request));
  if (!wait_for(request)) MPI_Abort(comm, 1);
  ompi_request_free(&request);
}

}  // namespace

int main(int argc, char** argv) {
  int rank, size, wrong = 0;
  start_mpi(&argc, &argv, &rank, &size);
  unsigned char memory[500];
  wrong |= broadcast_and_check(memory, sizeof memory, 1, 0, MPI_COMM_WORLD);
  long count = 0;
  for (int below = 0; below < 100; ++below, ++count)
    wrong |= exchange(MCA_COLL_BASE_TAG_HCOLL_BASE - below, rank);
  wrong |= non_blocking_collectives(rank, size);
  if (atoi(option(argc, argv, "--disturb", "0")) != 0) disturb(rank);
  MPI_Barrier(MPI_COMM_WORLD);
  wrong |= broadcast_and_check(memory, sizeof memory, 2, 1, MPI_COMM_WORLD);
  return finish(wrong, "messages on others' tags", count);
}
