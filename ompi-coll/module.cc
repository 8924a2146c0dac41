// cepheus_comm_query() offers a module if the communicator is eligible and all its ranks have
// published equal records. Enabling keeps the functions chosen before, and fails if one of them is
// missing. They serve what multicast does not.
//
// A communicator ends by the deletion of an attribute, while messages still flow; each call checks
// that the attribute is still there. An attribute of MPI_COMM_SELF ends all of them in
// MPI_Finalize. Non-blocking and persistent calls are left to Open MPI if its requests have another
// layout.
#include "ompi-coll/module.h"

#include <new>
#include <optional>

#include "collectives/bcast.h"
#include "collectives/communicators.h"
#include "collectives/core/eligibility.h"
#include "collectives/core/parameters.h"
#include "collectives/reductions.h"
#include "ompi-coll/buffer.h"
#include "ompi-coll/codes.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/records.h"
#include "ompi-coll/reduction.h"
#include "ompi-coll/request.h"
#include "ompi-coll/saved_functions.h"

using namespace cepheus::ompi;
using cepheus::coll::CommunicatorState;

// Open MPI 4.1 has none.
extern "C" __attribute__((weak)) bool ompi_ftmpi_enabled;

struct cepheus_module_t {
  mca_coll_base_module_t super;  // first: Open MPI casts
  SavedFunctions saved;
  CommunicatorState* state;
  const opal_hash_table_t* attributes;  // the communicator's, with ours
};

static void construct_module(cepheus_module_t* module) {
  new (&module->saved) SavedFunctions;
  module->state = nullptr;
  module->attributes = nullptr;
}

static void destruct_module(cepheus_module_t* module) {
  // Open MPI 5 may end a session with communicators that the program has not freed.
  if (module->state != nullptr) cepheus::coll::forget_communicator(*module->state);
  delete module->state;
#define CEPHEUS_RELEASE(name) module->saved.name.release();
  CEPHEUS_FUNCTIONS(CEPHEUS_RELEASE)
#undef CEPHEUS_RELEASE
}

OBJ_CLASS_DECLARATION(cepheus_module_t);
OBJ_CLASS_INSTANCE(cepheus_module_t, mca_coll_base_module_t, construct_module, destruct_module);

namespace cepheus::ompi {

using namespace coll;

namespace {

// The user can enable user-level fault mitigation in Open MPI 5: survivors continue when a rank has
// died. Here they would wait for it.
bool is_fault_tolerant() { return &ompi_ftmpi_enabled != nullptr && ompi_ftmpi_enabled; }

// The ends of communicators (collectives/README.md): attributes, deleted while messages still
// arrive. When Open MPI disables a module, its communicator can't communicate any more.
int comm_keyval = MPI_KEYVAL_INVALID;
int self_keyval = MPI_KEYVAL_INVALID;

extern "C" int cepheus_on_comm_free(MPI_Comm, int, void* value, void*) {
  free_communicator(*static_cast<CommunicatorState*>(value));
  return MPI_SUCCESS;
}

extern "C" int cepheus_on_finalize(MPI_Comm, int, void*, void*) {
  finalize_communicators();
  return MPI_SUCCESS;
}

int make_keyval(int* keyval, MPI_Comm_delete_attr_function* on_delete) {
  if (*keyval != MPI_KEYVAL_INVALID) return OMPI_SUCCESS;
  ompi_attribute_fn_ptr_union_t copy, remove;
  // A duplicate has a module, and so a state, of its own.
  copy.attr_communicator_copy_fn = [](MPI_Comm, int, void*, void*, void*, int* flag, auto...) {
    *flag = 0;
    return MPI_SUCCESS;
  };
  remove.attr_communicator_delete_fn = on_delete;
  return ompi_attr_create_keyval(COMM_ATTR, copy, remove, keyval, nullptr, 0, nullptr);
}

// From now on `comm` is served until it, or the program, ends. OMPI_SUCCESS or Open MPI's error.
int attach(ompi_communicator_t* comm, cepheus_module_t& module) {
  int rc = make_keyval(&comm_keyval, cepheus_on_comm_free);
  if (rc == OMPI_SUCCESS)
    rc = ompi_attr_set_c(COMM_ATTR, comm, &comm->c_keyhash, comm_keyval, module.state, false);
  if (rc == OMPI_SUCCESS) module.attributes = comm->c_keyhash;
  return rc;
}

// Before each call: Open MPI 5's MPI_Comm_create_from_group gives the communicator a new table
// of attributes, without ours, after it has enabled the modules.
int stay_attached(ompi_communicator_t* comm, cepheus_module_t& module) {
  return comm->c_keyhash == module.attributes ? OMPI_SUCCESS : attach(comm, module);
}

extern "C" int cepheus_module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm);

// Open MPI 5's coll/han may call a communicator's function with the module of another one, of
// another component. `own` is the communicator's module of the function.
cepheus_module_t& module_of(mca_coll_base_module_t* base, mca_coll_base_module_t* own) {
  if (base->coll_module_enable != cepheus_module_enable) base = own;
  return *reinterpret_cast<cepheus_module_t*>(base);
}

extern "C" int cepheus_bcast(void* memory, int count, ompi_datatype_t* type, int root,
                             ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  cepheus_module_t& module = module_of(base, comm->c_coll->coll_bcast_module);
  const auto saved = [&] { return module.saved.bcast(memory, count, type, root, comm); };
  if (is_in_saved) return saved();
  if (const int rc = stay_attached(comm, module); rc != OMPI_SUCCESS) return rc;
  const Elements elements{memory, static_cast<size_t>(count), type};
  std::optional<Buffer> buffer;
  const Code code = bcast(
      *module.state, bytes_of(elements.count, type), root, [] { return ""; },
      [&] { return buffer.emplace(elements).payload(); }, [&] { return to_code(saved()); });
  return from_code(code);
}

// `served`: whether the call is ours.
template <typename Call, typename Served, typename SavedFunction>
int start_call(cepheus_module_t& module, const Call& call, ompi_communicator_t* comm,
               ompi_request_t** request, Served served, SavedFunction saved) {
  if (const int rc = stay_attached(comm, module); rc != OMPI_SUCCESS) return rc;
  if (!served()) return saved();
  *request = start_request(*module.state, call);
  return *request == nullptr ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

extern "C" int cepheus_ibcast(void* memory, int count, ompi_datatype_t* type, int root,
                              ompi_communicator_t* comm, ompi_request_t** request,
                              mca_coll_base_module_t* base) {
  cepheus_module_t& module = module_of(base, comm->c_coll->coll_ibcast_module);
  const BroadcastCall call{{memory, static_cast<size_t>(count), type}, root};
  const size_t bytes = bytes_of(call.elements.count, type);
  if (bytes == 0) {
    *request = &ompi_request_empty;
    return OMPI_SUCCESS;
  }
  return start_call(
      module, call, comm, request, [&] { return ibcast_is_served(*module.state, bytes, root); },
      [&] { return module.saved.ibcast(memory, count, type, root, comm, request); });
}

extern "C" int cepheus_bcast_init(void* memory, int count, ompi_datatype_t* type, int root,
                                  ompi_communicator_t* comm, ompi_info_t* info,
                                  ompi_request_t** request, mca_coll_base_module_t* base) {
  cepheus_module_t& module = module_of(base, comm->c_coll->coll_bcast_init_module);
  if (const int rc = stay_attached(comm, module); rc != OMPI_SUCCESS) return rc;
  if (!bcast_init_is_served(*module.state, root))
    return module.saved.bcast_init(memory, count, type, root, comm, info, request);
  *request =
      make_persistent_request(*module.state, {{memory, static_cast<size_t>(count), type}, root});
  return *request == nullptr ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

// --- Reductions.

template <typename SavedFunction>
int reduce_now(cepheus_module_t& module, const ReductionCall& call, ompi_communicator_t* comm,
               SavedFunction saved_function) {
  const auto saved = [&] { return saved_function(module.saved); };
  if (is_in_saved) return saved();
  if (const int rc = stay_attached(comm, module); rc != OMPI_SUCCESS) return rc;
  std::optional<ReductionMemory> memory;
  const Code code = reduction(
      *module.state, call.shape, [] { return ""; }, [&] { return memory.emplace(call).data(); },
      [&] { return to_code(saved()); });
  return from_code(code == Code::kDone && memory ? call.error : code);
}

template <typename SavedFunction>
int start_to_reduce(cepheus_module_t& module, const ReductionCall& call, ompi_communicator_t* comm,
                    ompi_request_t** request, SavedFunction saved_function) {
  const auto saved = [&] { return saved_function(module.saved); };
  if (call.shape.is_empty() || may_be_open_mpis_own(call)) return saved();
  return start_call(
      module, call, comm, request, [&] { return ireduction_is_served(*module.state, call.shape); },
      saved);
}

extern "C" int cepheus_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  return reduce_now(module_of(base, comm->c_coll->coll_barrier_module), barrier_call(), comm,
                    [&](auto& saved) { return saved.barrier(comm); });
}

extern "C" int cepheus_ibarrier(ompi_communicator_t* comm, ompi_request_t** request,
                                mca_coll_base_module_t* base) {
  return start_to_reduce(module_of(base, comm->c_coll->coll_ibarrier_module), barrier_call(), comm,
                         request, [&](auto& saved) { return saved.ibarrier(comm, request); });
}

extern "C" int cepheus_allreduce(const void* send, void* receive, int count, ompi_datatype_t* type,
                                 ompi_op_t* op, ompi_communicator_t* comm,
                                 mca_coll_base_module_t* base) {
  return reduce_now(module_of(base, comm->c_coll->coll_allreduce_module),
                    allreduce_call(send, receive, count, type, op, comm), comm, [&](auto& saved) {
                      return saved.allreduce(send, receive, count, type, op, comm);
                    });
}

extern "C" int cepheus_iallreduce(const void* send, void* receive, int count, ompi_datatype_t* type,
                                  ompi_op_t* op, ompi_communicator_t* comm,
                                  ompi_request_t** request, mca_coll_base_module_t* base) {
  return start_to_reduce(
      module_of(base, comm->c_coll->coll_iallreduce_module),
      allreduce_call(send, receive, count, type, op, comm), comm, request,
      [&](auto& saved) { return saved.iallreduce(send, receive, count, type, op, comm, request); });
}

extern "C" int cepheus_reduce(const void* send, void* receive, int count, ompi_datatype_t* type,
                              ompi_op_t* op, int root, ompi_communicator_t* comm,
                              mca_coll_base_module_t* base) {
  return reduce_now(
      module_of(base, comm->c_coll->coll_reduce_module),
      reduce_call(send, receive, count, type, op, root, comm), comm,
      [&](auto& saved) { return saved.reduce(send, receive, count, type, op, root, comm); });
}

extern "C" int cepheus_ireduce(const void* send, void* receive, int count, ompi_datatype_t* type,
                               ompi_op_t* op, int root, ompi_communicator_t* comm,
                               ompi_request_t** request, mca_coll_base_module_t* base) {
  return start_to_reduce(
      module_of(base, comm->c_coll->coll_ireduce_module),
      reduce_call(send, receive, count, type, op, root, comm), comm, request, [&](auto& saved) {
        return saved.ireduce(send, receive, count, type, op, root, comm, request);
      });
}

extern "C" int cepheus_allgather(const void* send, int send_count, ompi_datatype_t* send_type,
                                 void* receive, int receive_count, ompi_datatype_t* receive_type,
                                 ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  return reduce_now(
      module_of(base, comm->c_coll->coll_allgather_module),
      allgather_call(send, send_count, send_type, receive, receive_count, receive_type, comm), comm,
      [&](auto& saved) {
        return saved.allgather(send, send_count, send_type, receive, receive_count, receive_type,
                               comm);
      });
}

extern "C" int cepheus_iallgather(const void* send, int send_count, ompi_datatype_t* send_type,
                                  void* receive, int receive_count, ompi_datatype_t* receive_type,
                                  ompi_communicator_t* comm, ompi_request_t** request,
                                  mca_coll_base_module_t* base) {
  return start_to_reduce(
      module_of(base, comm->c_coll->coll_iallgather_module),
      allgather_call(send, send_count, send_type, receive, receive_count, receive_type, comm), comm,
      request, [&](auto& saved) {
        return saved.iallgather(send, send_count, send_type, receive, receive_count, receive_type,
                                comm, request);
      });
}

// In MPI_Init, also if `comm` is not served: MPI_Finalize deletes the attributes of MPI_COMM_SELF in
// the reverse of their order. So the program's functions, which may broadcast, run before ours.
int watch_finalize() {
  // A program that has MPI sessions alone (MPI-4, Open MPI 5) has no MPI_COMM_SELF.
  const auto state = ompi_mpi_state;
  const bool is_in_world =
      state >= OMPI_MPI_STATE_INIT_STARTED && state < OMPI_MPI_STATE_FINALIZE_STARTED;
  if (self_keyval != MPI_KEYVAL_INVALID || !is_in_world) return OMPI_SUCCESS;
  ompi_communicator_t* const self = &ompi_mpi_comm_self.comm;
  const int rc = make_keyval(&self_keyval, cepheus_on_finalize);
  if (rc != OMPI_SUCCESS) return rc;
  return ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, self_keyval, nullptr, false);
}

// Sets the functions of `functions` that serve the user's choice of collectives.
template <typename Functions>
void set_functions(Functions& functions) {
  const Parameters& p = parameters();
  const bool nonblocking = requests_fit();
  const auto set = [&](Collective collective, auto& now, auto& later, auto blocking_function,
                       auto nonblocking_function) {
    if (!p.serves(collective)) return;
    now = blocking_function;
    if (nonblocking) later = nonblocking_function;
  };
  set(Collective::kBcast, functions.coll_bcast, functions.coll_ibcast, cepheus_bcast,
      cepheus_ibcast);
  set(Collective::kBarrier, functions.coll_barrier, functions.coll_ibarrier, cepheus_barrier,
      cepheus_ibarrier);
  set(Collective::kAllreduce, functions.coll_allreduce, functions.coll_iallreduce,
      cepheus_allreduce, cepheus_iallreduce);
  set(Collective::kReduce, functions.coll_reduce, functions.coll_ireduce, cepheus_reduce,
      cepheus_ireduce);
  set(Collective::kAllgather, functions.coll_allgather, functions.coll_iallgather,
      cepheus_allgather, cepheus_iallgather);
  if (p.serves(Collective::kBcast) && nonblocking) functions.coll_bcast_init = cepheus_bcast_init;
}

extern "C" int cepheus_module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  const mca_coll_base_comm_coll_t& coll = *comm->c_coll;
#define CEPHEUS_SAVE(name)                                                                    \
  if (base->coll_##name != nullptr && coll.coll_##name == nullptr) return OMPI_ERR_NOT_FOUND; \
  module->saved.name.save(coll.coll_##name, coll.coll_##name##_module);
  CEPHEUS_FUNCTIONS(CEPHEUS_SAVE)
#undef CEPHEUS_SAVE
  module->state = new (std::nothrow) CommunicatorState(port_of(comm));
  if (module->state == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  const int rc = attach(comm, *module);
  if (rc == OMPI_SUCCESS) watch_communicator(*module->state);
  return rc;
}

extern "C" int cepheus_module_disable(mca_coll_base_module_t*, ompi_communicator_t*) {
  return OMPI_SUCCESS;
}

}  // namespace

bool serves_world() {
  const mca_coll_base_comm_coll_t* const coll = ompi_mpi_comm_world.comm.c_coll;
  return coll != nullptr &&
         (coll->coll_bcast == cepheus_bcast || coll->coll_barrier == cepheus_barrier ||
          coll->coll_allreduce == cepheus_allreduce || coll->coll_reduce == cepheus_reduce ||
          coll->coll_allgather == cepheus_allgather);
}

void forget_keyvals() { comm_keyval = self_keyval = MPI_KEYVAL_INVALID; }

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority) {
  const Parameters& p = parameters();
  const CommunicatorFacts facts{ompi_comm_size(comm), OMPI_COMM_IS_INTER(comm) != 0,
                                is_fault_tolerant()};
  const Eligibility eligibility = eligibility_of(facts, p);
  if (p.chosen_mode() != Mode::kOff && watch_finalize() != OMPI_SUCCESS) return nullptr;
  if (eligibility == Eligibility::kTooFewMembers && ompi_comm_rank(comm) == 0) {
    opal_output_verbose(1, output_stream(),
                        "cepheus: %s (%d ranks): open mpi's own algorithms: fewer than "
                        "coll_cepheus_min_members = %d",
                        comm->c_name, facts.size, p.min_members);
  }
  if (eligibility != Eligibility::kEligible || !ranks_match(comm)) return nullptr;
  auto* module = OBJ_NEW(cepheus_module_t);
  if (module == nullptr) return nullptr;
  *priority = p.priority;
  module->super.coll_module_enable = cepheus_module_enable;
  module->super.coll_module_disable = cepheus_module_disable;
  set_functions(module->super);
  return &module->super;
}

}  // namespace cepheus::ompi
