// MPI_Barrier, MPI_Allreduce, MPI_Reduce, MPI_Allgather and their non-blocking forms, of programs that
// preload this library.
#include "collectives/reductions.h"

#include <limits>
#include <optional>

#include "pmpi/entry.h"
#include "pmpi/int_count.h"
#include "pmpi/reduction.h"

namespace cepheus::pmpi {

using namespace coll;

namespace {

Communicator* find_for(const ReductionArguments& of, Comm comm, bool blocking) {
  const bool has_data = of.collective == Collective::kBarrier || of.receive_count > 0;
  return find_served(comm, of.collective, blocking, has_data);
}

template <typename Next>
int reduce_now(const ReductionArguments& arguments, Comm comm, Next next_one) {
  Communicator* const communicator = find_for(arguments, comm, true);
  const auto call = communicator != nullptr ? call_of(arguments, *communicator) : std::nullopt;
  std::optional<ReductionMemory> memory;
  return call_now(call ? communicator : nullptr, comm, next_one, [&](auto prepare, auto saved) {
    const Code code = reduction(
        *communicator->state, call->shape, prepare, [&] { return memory.emplace(*call).data(); },
        saved);
    return code == Code::kDone && memory ? call->error : code;
  });
}

template <typename Next>
int start_to_reduce(const ReductionArguments& arguments, Comm comm, void* request, Next next_one) {
  Communicator* const communicator = find_for(arguments, comm, false);
  const auto call = communicator != nullptr ? call_of(arguments, *communicator) : std::nullopt;
  if (!call) return pass_on(comm, next_one);
  CommunicatorState& state = *communicator->state;
  return start_call(
      communicator, *call, comm, static_cast<Request*>(request), next_one,
      [&] { return ireduction_is_served(state, call->shape); },
      [&](const std::string& why) {
        state.count_saved(call->shape, false, CallReport::begin_call(), why);
      });
}

ReductionArguments reduce_arguments(Collective collective, const void* send, void* receive,
                                    Count count, Handle type, Handle op, int root) {
  return {collective, send, count, Datatype(type), receive, count, Datatype(type), Op(op), root};
}

ReductionArguments allgather_arguments(const void* send, Count send_count, Handle send_type,
                                       void* receive, Count receive_count, Handle receive_type) {
  return {Collective::kAllgather, send, send_count, Datatype(send_type), receive, receive_count,
          Datatype(receive_type)};
}

// For functions without large counts: MPI reports a negative one.
[[maybe_unused]] int int_of(Count count) {
  return count <= std::numeric_limits<int>::max() ? static_cast<int>(count) : -1;
}

}  // namespace

// Each function's parameters, the same as arguments, and what they mean.
#define ALLREDUCE_PARAMETERS(Number) \
  const void *send, void *receive, Number count, Handle type, Handle op, Handle comm
#define ALLREDUCE_CALL reduce_arguments(Collective::kAllreduce, send, receive, count, type, op, 0)
#define REDUCE_PARAMETERS(Number) \
  const void *send, void *receive, Number count, Handle type, Handle op, int root, Handle comm
#define REDUCE_CALL reduce_arguments(Collective::kReduce, send, receive, count, type, op, root)
#define ALLGATHER_PARAMETERS(Number)                                                          \
  const void *send, Number send_count, Handle send_type, void *receive, Number receive_count, \
      Handle receive_type, Handle comm
#define ALLGATHER_CALL \
  allgather_arguments(send, send_count, send_type, receive, receive_count, receive_type)
#define ALLREDUCE(count) send, receive, count, type, op, comm
#define REDUCE(count) send, receive, count, type, op, root, comm
#define ALLGATHER send, send_count, send_type, receive, receive_count, receive_type, comm

#define DEFINE(name, parameters, arguments, call)                            \
  CEPHEUS_EXPORT int name parameters {                                       \
    static const auto next_one = next<int parameters>(#name);                \
    return reduce_now(call, Comm(comm), [&] { return next_one arguments; }); \
  }
#define DEFINE_I(name, parameters, arguments, call)                                        \
  CEPHEUS_EXPORT int name parameters {                                                     \
    static const auto next_one = next<int parameters>(#name);                              \
    return start_to_reduce(call, Comm(comm), request, [&] { return next_one arguments; }); \
  }

// Fortran of both libraries calls barriers by both names, and Open MPI's all of them.
#define DEFINE_BARRIERS(prefix)                                                            \
  DEFINE(prefix##Barrier, (Handle comm), (comm), ReductionArguments{Collective::kBarrier}) \
  DEFINE_I(prefix##Ibarrier, (Handle comm, void* request), (comm, request),                \
           ReductionArguments{Collective::kBarrier})
#define DEFINE_OTHERS(prefix)                                                                    \
  DEFINE(prefix##Allreduce, (ALLREDUCE_PARAMETERS(int)), (ALLREDUCE(count)), ALLREDUCE_CALL)     \
  DEFINE_I(prefix##Iallreduce, (ALLREDUCE_PARAMETERS(int), void* request),                       \
           (ALLREDUCE(count), request), ALLREDUCE_CALL)                                          \
  DEFINE(prefix##Reduce, (REDUCE_PARAMETERS(int)), (REDUCE(count)), REDUCE_CALL)                 \
  DEFINE_I(prefix##Ireduce, (REDUCE_PARAMETERS(int), void* request), (REDUCE(count), request),   \
           REDUCE_CALL)                                                                          \
  DEFINE(prefix##Allgather, (ALLGATHER_PARAMETERS(int)), (ALLGATHER), ALLGATHER_CALL)            \
  DEFINE_I(prefix##Iallgather, (ALLGATHER_PARAMETERS(int), void* request), (ALLGATHER, request), \
           ALLGATHER_CALL)

DEFINE_BARRIERS(MPI_)
DEFINE_BARRIERS(PMPI_)
DEFINE_OTHERS(MPI_)
#ifdef CEPHEUS_OPENMPI
DEFINE_OTHERS(PMPI_)
#else
// See MPI_Bcast_c. `in_ints` are the arguments of MPI's function with int counts.
#define DEFINE_LARGE(name, parameters, arguments, int_parameters, in_ints, call) \
  CEPHEUS_EXPORT int name##_c parameters {                                       \
    static const auto next_one = next<int parameters>(#name "_c");               \
    static const auto next_int = next<int int_parameters>(#name);                \
    return reduce_now(call, Comm(comm), [&] {                                    \
      return next_one != nullptr ? next_one arguments : next_int in_ints;        \
    });                                                                          \
  }
#define DEFINE_LARGE_I(name, parameters, arguments, int_parameters, in_ints, call) \
  CEPHEUS_EXPORT int name##_c parameters {                                         \
    static const auto next_one = next<int parameters>(#name "_c");                 \
    static const auto next_int = next<int int_parameters>(#name);                  \
    return start_to_reduce(call, Comm(comm), request, [&] {                        \
      return next_one != nullptr ? next_one arguments : next_int in_ints;          \
    });                                                                            \
  }
#define ALLGATHER_IN_INTS                                                \
  send, IntCount(send_count, Datatype(send_type)).count(),               \
      Handle(IntCount(send_count, Datatype(send_type)).type()), receive, \
      IntCount(receive_count, Datatype(receive_type)).count(),           \
      Handle(IntCount(receive_count, Datatype(receive_type)).type()), comm

DEFINE_LARGE(MPI_Allreduce, (ALLREDUCE_PARAMETERS(Count)), (ALLREDUCE(count)),
             (ALLREDUCE_PARAMETERS(int)), (ALLREDUCE(int_of(count))), ALLREDUCE_CALL)
DEFINE_LARGE_I(MPI_Iallreduce, (ALLREDUCE_PARAMETERS(Count), void* request),
               (ALLREDUCE(count), request), (ALLREDUCE_PARAMETERS(int), void* request),
               (ALLREDUCE(int_of(count)), request), ALLREDUCE_CALL)
DEFINE_LARGE(MPI_Reduce, (REDUCE_PARAMETERS(Count)), (REDUCE(count)), (REDUCE_PARAMETERS(int)),
             (REDUCE(int_of(count))), REDUCE_CALL)
DEFINE_LARGE_I(MPI_Ireduce, (REDUCE_PARAMETERS(Count), void* request), (REDUCE(count), request),
               (REDUCE_PARAMETERS(int), void* request), (REDUCE(int_of(count)), request),
               REDUCE_CALL)
DEFINE_LARGE(MPI_Allgather, (ALLGATHER_PARAMETERS(Count)), (ALLGATHER), (ALLGATHER_PARAMETERS(int)),
             (ALLGATHER_IN_INTS), ALLGATHER_CALL)
DEFINE_LARGE_I(MPI_Iallgather, (ALLGATHER_PARAMETERS(Count), void* request), (ALLGATHER, request),
               (ALLGATHER_PARAMETERS(int), void* request), (ALLGATHER_IN_INTS, request),
               ALLGATHER_CALL)
#endif

}  // namespace cepheus::pmpi
