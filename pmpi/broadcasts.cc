// MPI_Bcast and MPI_Ibcast of programs that preload this library.
#include <limits>
#include <optional>

#include "collectives/bcast.h"
#include "pmpi/arguments.h"
#include "pmpi/buffer.h"
#include "pmpi/entry.h"
#include "pmpi/int_count.h"

namespace cepheus::pmpi {

using namespace coll;

Communicator* find_served(Comm comm, Collective collective, bool blocking, bool has_data) {
  if (!serves || is_passed_on(comm) || comm == kCommNull || comm == ending ||
      !parameters().serves(collective))
    return nullptr;
  Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr || !communicator->state) return nullptr;
  const bool is_mpis = has_data && communicator->state->count_if_unserved(collective, blocking);
  return is_mpis ? nullptr : communicator;
}

namespace {

struct Broadcasting {
  void* memory;
  Count count;
  Datatype type;
  int root;
};

// Whether these are arguments that broadcasts may have. MPI reports those that are not.
bool is_usual(const Broadcasting& of, int size) {
  return of.type != kDatatypeNull && of.count > 0 && of.count <= std::numeric_limits<int>::max() &&
         of.root >= 0 && of.root < size && is_ready(of.type) && has_memory(of.memory, of.type);
}

// Null: MPI serves the call. Else it has `call.bytes`, one at least.
Communicator* find_for(const Broadcasting& of, Comm comm, bool blocking, BroadcastCall& call) {
  Communicator* const communicator = find_served(comm, Collective::kBcast, blocking, of.count > 0);
  Count size = 0;
  if (communicator == nullptr || !is_usual(of, communicator->size) ||
      calls().Type_size_x(of.type, &size) != kSuccess || size <= 0)
    return nullptr;
  call = {{of.memory, static_cast<std::size_t>(of.count), of.type}, of.root};
  call.bytes = static_cast<std::size_t>(size) * call.elements.count;
  return call.bytes <= std::numeric_limits<int>::max() ? communicator : nullptr;
}

template <typename Next>
int broadcast(const Broadcasting& of, Comm comm, Next next_one) {
  BroadcastCall call{};
  Communicator* const communicator = find_for(of, comm, true, call);
  std::optional<Buffer> buffer;
  return call_now(communicator, comm, next_one, [&](auto prepare, auto saved) {
    return bcast(
        *communicator->state, call.bytes, call.root, prepare,
        [&] { return buffer.emplace(call.elements).payload(); }, saved);
  });
}

template <typename Next>
int start_broadcast(const Broadcasting& of, Comm comm, void* request, Next next_one) {
  BroadcastCall call{};
  Communicator* const communicator = find_for(of, comm, false, call);
  return start_call(
      communicator, call, comm, static_cast<Request*>(request), next_one,
      [&] { return ibcast_is_served(*communicator->state, call.bytes, call.root); },
      [&](const std::string& why) {
        communicator->state->count_saved(false, {CallReport::begin_call(), call.bytes, call.root},
                                         why);
      });
}

}  // namespace

#define DEFINE_BCAST(name)                                                               \
  CEPHEUS_EXPORT int name(void* memory, int count, Handle type, int root, Handle comm) { \
    static const auto next_one = next<int(void*, int, Handle, int, Handle)>(#name);      \
    return broadcast({memory, count, Datatype(type), root}, Comm(comm),                  \
                     [&] { return next_one(memory, count, type, root, comm); });         \
  }
#define DEFINE_IBCAST(name)                                                                     \
  CEPHEUS_EXPORT int name(void* memory, int count, Handle type, int root, Handle comm,          \
                          void* request) {                                                      \
    static const auto next_one = next<int(void*, int, Handle, int, Handle, void*)>(#name);      \
    return start_broadcast({memory, count, Datatype(type), root}, Comm(comm), request,          \
                           [&] { return next_one(memory, count, type, root, comm, request); }); \
  }
DEFINE_BCAST(MPI_Bcast)
DEFINE_IBCAST(MPI_Ibcast)
#ifdef CEPHEUS_OPENMPI
// Open MPI's Fortran converts its arguments, then calls these.
DEFINE_BCAST(PMPI_Bcast)
DEFINE_IBCAST(PMPI_Ibcast)
#else
// Open MPI 4 and 5 have no large counts, and a program that looks for these functions finds none.
// Libraries of MPICH's ABI have them from MPI 4 on.
CEPHEUS_EXPORT int MPI_Bcast_c(void* memory, Count count, Handle type, int root, Handle comm) {
  static const auto next_one = next<int(void*, Count, Handle, int, Handle)>("MPI_Bcast_c");
  static const auto next_int = next<int(void*, int, Handle, int, Handle)>("MPI_Bcast");
  return broadcast({memory, count, Datatype(type), root}, Comm(comm), [&] {
    if (next_one != nullptr) return next_one(memory, count, type, root, comm);
    const IntCount in_int(count, Datatype(type));
    return next_int(memory, in_int.count(), Handle(in_int.type()), root, comm);
  });
}
CEPHEUS_EXPORT int MPI_Ibcast_c(void* memory, Count count, Handle type, int root, Handle comm,
                                void* request) {
  static const auto next_one = next<int(void*, Count, Handle, int, Handle, void*)>("MPI_Ibcast_c");
  static const auto next_int = next<int(void*, int, Handle, int, Handle, void*)>("MPI_Ibcast");
  return start_broadcast({memory, count, Datatype(type), root}, Comm(comm), request, [&] {
    if (next_one != nullptr) return next_one(memory, count, type, root, comm, request);
    const IntCount in_int(count, Datatype(type));
    return next_int(memory, in_int.count(), Handle(in_int.type()), root, comm, request);
  });
}
#endif

}  // namespace cepheus::pmpi
