// The port: all functions of the MPI implementation, their host, that collectives need.
//
// The host defines these functions when the program is linked, so a poll costs a plain call. They
// know nothing of multicast. Unless noted otherwise, any thread that may call MPI may call them,
// and they do not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/core/code.h"

namespace cepheus::coll {

// The program's data where it has gaps, or where the CPU can't reach it: the host copies it as the
// bytes of MPI's packed form. Offsets may divide a basic element.
class Packing {
 public:
  // Copies bytes [offset, offset + length) of the packed form. Fastest from low offsets to high.
  // Unpacking begins at 0 and leaves no gaps, but may repeat parts.
  virtual Code pack(std::size_t offset, void* memory, std::size_t length) = 0;
  virtual Code unpack(std::size_t offset, const void* memory, std::size_t length) = 0;

 protected:
  ~Packing() = default;
};

// The operation of an MPI_Allreduce or MPI_Reduce, with the call's type and number of elements, if the
// library arithmetic/ does not have it (operators.h).
class Operator {
 public:
  // right = left op right, as of MPI_Reduce_local(left, right), on this number of elements. Each is a
  // part of a rank's block, or a result of such parts, in MPI's packed form, aligned as the call's own
  // memory or for every basic type; `left` has the lower ranks. Where the type has gaps, the host unpacks
  // both, reduces them, and packs the result.
  virtual Code apply(const void* left, void* right, std::size_t elements) = 0;

 protected:
  ~Operator() = default;
};

namespace host {

// --- Communicators: the host's own objects.
struct Communicator;

int rank(const Communicator& comm);
int size(const Communicator& comm);
// The program's present name for it.
std::string name(const Communicator& comm);
// MPI_Finalize, in which the host waits for all ranks, does not end it: an MPI session's.
bool outlives_finalize(const Communicator& comm);
// Its ranks belong to several jobs, which may not know of each other.
bool is_dynamic(const Communicator& comm);
// The host's shared memory connects the caller and `rank`.
bool shares_machine(const Communicator& comm, int rank);
struct PlaceInJob {
  std::uint32_t job;
  std::uint32_t rank;  // of the job
};
PlaceInJob place_in_job(const Communicator& comm, int rank);
// Reserves `count` tags of the communicator, from the returned one downwards. Every rank calls it
// at the same point of the communicator's life.
int reserve_tags(Communicator& comm, int count);
// Messages of the communicator may stay under way for ever. So this process gives its tags
// to no other communicator.
void retire_tags(Communicator& comm);
// The object lives on after the program has freed the communicator, until release().
void retain(Communicator& comm);
void release(Communicator& comm);
// Ends the job, because the user requires multicast.
[[noreturn]] void abort_job(const Communicator& comm, const std::string& reason);

// --- Messages of bytes between two ranks, in order by tag.
struct Request;  // a send or a receive that was started
inline constexpr int kAnyRank = -1;

// The memory is the host's until the request is complete. Errors leave `out` as it is.
Code send(Communicator& comm, const void* data, std::size_t size, int to, int tag, Request*& out);
Code receive(Communicator& comm, void* data, std::size_t size, int from, int tag, Request*& out);
bool is_complete(const Request& request);
// For a complete receive. For a send only `error` is valid.
struct Received {
  Code error;
  int from;
  std::size_t bytes;
};
Received received(const Request& request);
// Runs `notice` once when a receive completes, perhaps at once, inside progress(): it must not call
// the host.
struct Notice {
  void (*run)(Notice* self);
};
void on_complete(Request& request, Notice& notice);
// Cancels a receive without a message. A send continues. No notice follows.
void cancel(Request& request);
// Gives the request back. An incomplete request continues without its owner.
void free(Request* request);

// --- The process.
// Its name in log lines: "open mpi".
const char* implementation();
// The user's name of the parameter `name`: "coll_cepheus_min_members".
std::string parameter(const char* name);
// It tells the memory of devices from the CPU's, not only that of CUDA's.
bool knows_device_memory();
// Runs the host's progress, and background progress: see start_background_progress().
void progress();
// From now on the host's progress calls progress_in_background() (communicators.h).
void start_background_progress();
void stop_background_progress();
// One line for the user, if the verbosity is at least `level`; 0: always.
void log(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace host
}  // namespace cepheus::coll
