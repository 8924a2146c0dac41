#include "ompi-coll/module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "ompi-coll/parameters.h"

using namespace cepheus::coll;

struct cepheus_module_t {
  mca_coll_base_module_t super;  // first: Open MPI casts
  mca_coll_base_module_bcast_fn_t saved_bcast;
  mca_coll_base_module_t* saved_module;
  CommunicatorState* state;
};

static void construct_module(cepheus_module_t* module) {
  module->saved_bcast = nullptr;
  module->saved_module = nullptr;
  module->state = nullptr;
}

static void destruct_module(cepheus_module_t* module) {
  delete module->state;
  if (module->saved_module != nullptr) OBJ_RELEASE(module->saved_module);
}

OBJ_CLASS_DECLARATION(cepheus_module_t);
OBJ_CLASS_INSTANCE(cepheus_module_t, mca_coll_base_module_t, construct_module, destruct_module);

namespace cepheus::coll {

namespace {

constexpr size_t kEagerMessage = 64;  // room for the header, rounded to a cache line

size_t eager_limit() { return static_cast<size_t>(std::max(parameters().eager_limit, 0)); }

std::string address_text(uint32_t value) {
  return std::to_string(value >> 24) + '.' + std::to_string(value >> 16 & 255) + '.' +
         std::to_string(value >> 8 & 255) + '.' + std::to_string(value & 255);
}

}  // namespace

CommunicatorState::CommunicatorState(ompi_communicator_t* comm) : comm_(comm) {
  eager_ = std::make_unique<Lane>(comm, MCAST_LANE_EAGER, eager_limit() + kEagerMessage);
  bulk_ = std::make_unique<Lane>(comm, MCAST_LANE_BULK, 0);
  eager_->set_handler(on_eager_message, &inbox_);
}

CommunicatorState::~CommunicatorState() { destroy_groups(); }

bool CommunicatorState::has_groups() const {
  return eager_->state() == Lane::State::kReady || bulk_->state() == Lane::State::kReady;
}

void CommunicatorState::destroy_groups() {
  {
    std::lock_guard<std::mutex> guard(Transport::instance().mutex());
    inbox_.clear();
  }
  eager_->destroy();
  bulk_->destroy();
}

int CommunicatorState::wait_for(Lane& lane) {
  for (;;) {
    const Lane::State state = lane.progress();
    if (state == Lane::State::kReady) return OMPI_SUCCESS;
    if (state == Lane::State::kFailed) return OMPI_ERR_NOT_AVAILABLE;
    opal_progress();
  }
}

void CommunicatorState::report(const Lane& lane, const char* name, const char* saved) {
  const bool first = !reported_;
  reported_ = true;
  if (ompi_comm_rank(comm_) != 0) return;
  const bool ready = lane.state() == Lane::State::kReady;
  if (!ready && parameters().chosen_mode() == Mode::kRequire) abort_job(lane.reason());
  const int level = first || !ready ? 1 : 2;
  if (ready) {
    opal_output_verbose(level, output_stream(),
                        "cepheus: %s (%d ranks): multicast, %s lane on group %s epoch %u",
                        comm_->c_name, ompi_comm_size(comm_), name,
                        address_text(lane.mcst_id()).c_str(), lane.epoch());
  } else {
    opal_output_verbose(level, output_stream(), "cepheus: %s (%d ranks): %s for the %s lane: %s",
                        comm_->c_name, ompi_comm_size(comm_), saved, name, lane.reason().c_str());
  }
}

void CommunicatorState::abort_job(const std::string& reason) {
  // Straight to standard error: help texts that travel through mpirun get lost when the abort
  // overtakes them.
  char* text = opal_show_help_string("help-coll-cepheus.txt", "require", 1, comm_->c_name,
                                     ompi_comm_size(comm_), reason.c_str());
  if (text != nullptr) fputs(text, stderr);
  free(text);
  fflush(stderr);
  ompi_rte_abort(1, nullptr);
  _exit(1);
}

int CommunicatorState::broadcast(Payload& payload, int root) {
  const bool small = payload.bytes() <= eager_limit();
  Lane& lane = small ? *eager_ : *bulk_;
  if (lane.state() != Lane::State::kReady) {
    const bool known = lane.state() == Lane::State::kFailed;
    const int rc = known ? OMPI_ERR_NOT_AVAILABLE : wait_for(lane);
    if (rc != OMPI_SUCCESS) calls_.count(comm_, "open mpi", lane.reason().c_str());
    if (known) return rc;
    report(lane, small ? "eager" : "bulk", "open mpi's own algorithms");
    if (rc != OMPI_SUCCESS) {
      // Rank 0 ends the job with one error; the others wait for that here, and never return to the
      // program.
      while (parameters().chosen_mode() == Mode::kRequire) opal_progress();
      return rc;
    }
  }
  Call call{comm_, root, 0, &payload};
  int rc;
  if (small) {
    call.sequence = eager_sequence_++;
    EagerBroadcast operation(call, lane, inbox_);
    while ((rc = operation.progress()) == OMPI_ERR_WOULD_BLOCK) opal_progress();
  } else {
    call.sequence = bulk_sequence_;
    bulk_sequence_ += static_cast<uint32_t>((payload.bytes() + BulkBroadcast::kChunk - 1) /
                                            BulkBroadcast::kChunk);
    BulkBroadcast operation(call, lane);
    while ((rc = operation.progress()) == OMPI_ERR_WOULD_BLOCK) opal_progress();
  }
  calls_.count(comm_, small ? "eager lane" : "bulk lane", "multicast");
  return rc;
}

bool CommunicatorState::tear_down() {
  const int size = ompi_comm_size(comm_);
  const bool leader = ompi_comm_rank(comm_) == 0;
  int error = MPI_SUCCESS;
  switch (tear_down_) {
    case TearDown::kDraining:
      if (!eager_->drained() || !bulk_->drained()) return false;
      flags_ = std::make_unique<char[]>(static_cast<size_t>(size));
      if (leader) {
        for (int rank = 1; rank < size; ++rank)
          (void)messages_.receive(&flags_[rank], 1, rank, Tag::kDone, comm_);
      } else {
        (void)messages_.send(&flags_[0], 1, 0, Tag::kDone, comm_);
      }
      tear_down_ = TearDown::kGathering;
      return false;
    case TearDown::kGathering:
      if (!messages_.test(error)) return false;
      if (leader) {
        for (int rank = 1; rank < size; ++rank)
          (void)messages_.send(&flags_[0], 1, rank, Tag::kRelease, comm_);
      } else {
        (void)messages_.receive(&flags_[0], 1, 0, Tag::kRelease, comm_);
      }
      tear_down_ = TearDown::kReleasing;
      return false;
    case TearDown::kReleasing:
      if (!messages_.test(error)) return false;
      tear_down_ = TearDown::kDone;
      return true;
    case TearDown::kDone:
      return true;
  }
  return true;
}

namespace {

extern "C" int cepheus_bcast(void* buffer, int count, ompi_datatype_t* type, int root,
                             ompi_communicator_t* comm, mca_coll_base_module_t* base) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  Payload payload(buffer, static_cast<size_t>(count), type);
  if (payload.bytes() == 0) return OMPI_SUCCESS;
  const int rc = module->state->broadcast(payload, root);
  if (rc != OMPI_ERR_NOT_AVAILABLE) return rc;
  return module->saved_bcast(buffer, count, type, root, comm, module->saved_module);
}

extern "C" int cepheus_module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
  auto* module = reinterpret_cast<cepheus_module_t*>(base);
  mca_coll_base_comm_coll_t* coll = comm->c_coll;
  if (coll->coll_bcast == nullptr || coll->coll_bcast_module == nullptr) return OMPI_ERR_NOT_FOUND;
  module->saved_bcast = coll->coll_bcast;
  module->saved_module = coll->coll_bcast_module;
  OBJ_RETAIN(module->saved_module);
  module->state = new (std::nothrow) CommunicatorState(comm);
  if (module->state == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  return watch_communicator(comm, module->state);
}

extern "C" int cepheus_module_disable(mca_coll_base_module_t*, ompi_communicator_t*) {
  return OMPI_SUCCESS;
}

}  // namespace

extern "C" mca_coll_base_module_t* cepheus_comm_query(ompi_communicator_t* comm, int* priority) {
  const Parameters& p = parameters();
  if (p.chosen_mode() == Mode::kOff || OMPI_COMM_IS_INTER(comm)) return nullptr;
  const int size = ompi_comm_size(comm);
  if (size < 2) return nullptr;
  if (size < p.min_members) {
    if (ompi_comm_rank(comm) == 0) {
      opal_output_verbose(1, output_stream(),
                          "cepheus: %s (%d ranks): open mpi's own algorithms: fewer than "
                          "coll_cepheus_min_members = %d",
                          comm->c_name, size, p.min_members);
    }
    return nullptr;
  }
  auto* module = OBJ_NEW(cepheus_module_t);
  if (module == nullptr) return nullptr;
  *priority = p.priority;
  module->super.coll_module_enable = cepheus_module_enable;
  module->super.coll_module_disable = cepheus_module_disable;
  module->super.coll_bcast = cepheus_bcast;
  return &module->super;
}

}  // namespace cepheus::coll
