// The program's communicators that broadcasts come to, each with the state of the collectives and
// tags for its messages.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator_state.h"
#include "pmpi/mpi_abi.h"
#include "pmpi/tags.h"

namespace cepheus::pmpi {
using SharedComm = std::shared_ptr<std::atomic<Comm>>;
}

// The object that the port of the collectives names.
struct cepheus::coll::host::Communicator {
  int rank = 0, size = 0;
  mutable std::mutex naming;  // of the next two
  mutable std::string name;   // the last one that was asked for
  // Null: the program has freed it. Shared with requests, which may be the last to go.
  const cepheus::pmpi::SharedComm programs =
      std::make_shared<std::atomic<cepheus::pmpi::Comm>>(cepheus::pmpi::kCommNull);
  std::vector<int> world_ranks;        // of its ranks
  cepheus::pmpi::Addresses addresses;  // see exchange_tags()
  const char* why_no_addresses = "";   // they were exchanged in vain
  std::atomic<bool> has_retired_tags{false};
  std::atomic<int> owners{1};
  std::optional<cepheus::coll::CommunicatorState> state;  // empty: MPI serves all its broadcasts
};

namespace cepheus::pmpi {

using Communicator = coll::host::Communicator;

// The communicator that this thread's call of MPI_Comm_free ends; one that ends otherwise does so inside
// MPI's progress. Functions that delete its attributes may broadcast. MPI serves those broadcasts,
// because MPICH finds no attribute once it has deleted one, and ranks may have different ones.
extern thread_local Comm ending;

// Inside MPI_Init. Each returns false if MPI failed on this rank. The second one waits for all ranks,
// and makes what others can't make later: MPI may then have no communicator left, and its agreement
// on a new one may be under way in another thread.
bool open_communicators();
bool open_world();
// Inside MPI_Finalize, on all ranks, while messages still flow.
void close_communicators();

// Of a program's communicator, from its first broadcast on. Null: MPI failed.
Communicator* communicator_of(Comm comm);
// The program's present name for it, or its last one.
std::string name_of(const Communicator& communicator);
// All ranks call it at the same point of the communicator's life, and it waits for them. Returns "",
// or why MPI serves this communicator from now on.
const char* exchange_tags(Communicator& communicator, Comm comm);
// The communicator of all messages: of the ranks of MPI_COMM_WORLD, and private.
Comm message_communicator();
// Destroys it with its last owner.
void give_back(Communicator& communicator);

bool is_on_this_machine(int world_rank);
// A communicator of this process alone, which returns errors: for calls that need some.
Comm own_communicator();

}  // namespace cepheus::pmpi
