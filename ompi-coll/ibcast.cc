// The non-blocking broadcasts of a communicator: see ibcast.h.
#include "ompi-coll/ibcast.h"

#include <algorithm>

#include "ompi-coll/counters.h"
#include "ompi-coll/module.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/request.h"
#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

// Why Open MPI's own algorithm shall serve this one, or null. Only what all ranks know alike when
// they call counts: what a blocking broadcast has found out.
const char* CommunicatorState::declines(const Ibcast& ibcast) const {
  if (!requests_fit()) return "another version of open mpi than this was built for";
  switch (shape_) {
    case Shape::kHierarchy:
      return "several ranks share a host";
    case Shape::kOneHost:
      return "all ranks are on one host";
    case Shape::kUnknown:
      if (parameters().ranks_per_host > 1) return "several ranks share a host";
      break;
    case Shape::kFlat:
      break;
  }
  const std::string& without = without_[ibcast.small];
  return without.empty() ? nullptr : without.c_str();
}

int CommunicatorState::start(std::unique_ptr<Ibcast> ibcast, ompi_request_t** request) {
  ibcast->small = is_small(ibcast->payload);
  if (const char* const why = declines(*ibcast)) {
    count("ibcast: open mpi", why);
    return OMPI_ERR_NOT_AVAILABLE;
  }
  ibcast->request = make_request(comm_);
  if (ibcast->request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  ibcast->first = ibcast->unit = take_units(ibcast->payload);
  *request = ibcast->request;
  {
    const std::lock_guard<std::mutex> guard(incoming_mutex_);
    incoming_.push_back(std::move(ibcast));
    if (!in_flight_.exchange(true)) add_in_flight(1);
  }
  std::vector<Finished> finished;
  advance(finished);
  for (const Finished& each : finished) complete_request(each.request, each.rc);
  return OMPI_SUCCESS;
}

void CommunicatorState::finish_started() {
  while (is_in_flight()) {
    std::vector<Finished> finished;
    advance(finished);
    for (const Finished& each : finished) complete_request(each.request, each.rc);
    if (is_in_flight()) opal_progress();
  }
}

void CommunicatorState::advance(std::vector<Finished>& out) {
  const Guard guard(busy_);
  if (!guard) return;
  for (;;) {
    {
      const std::lock_guard<std::mutex> incoming(incoming_mutex_);
      std::move(incoming_.begin(), incoming_.end(), std::back_inserter(started_));
      incoming_.clear();
      if (started_.empty()) {
        if (in_flight_.exchange(false)) add_in_flight(-1);
        return;
      }
    }
    Ibcast& ibcast = *started_.front();
    const int rc = step(ibcast);
    look_after();
    if (rc == OMPI_ERR_WOULD_BLOCK) return;
    if (rc == OMPI_SUCCESS) note_end(ibcast);
    out.push_back({ibcast.request, rc});
    started_.pop_front();
  }
}

// When its turn has come: every rank chooses the same, because all units before it have been
// settled here.
int CommunicatorState::choose_path(Ibcast& ibcast) {
  const auto cut_known = [&] {
    const auto cut = session_->agreement().cut();
    return cut.has_value() && *cut < ibcast.first;
  };
  if (cut_known() && !ibcast.tried_again && ibcast.first >= session_->agreement().retry_at()) {
    const int rc = try_again(ibcast.first);
    if (rc != OMPI_SUCCESS) return rc;
    ibcast.tried_again = true;
  }
  if (cut_known()) {
    ibcast.path = Ibcast::Path::kTree;
    ibcast.reason = session_->agreement().reason();
    return OMPI_SUCCESS;
  }
  Lane& lane = ibcast.small ? session_->eager() : session_->bulk();
  if (lane.state() != Lane::State::kReady && lane.state() != Lane::State::kClosed) {
    const bool known = lane.state() == Lane::State::kFailed;
    const int rc = known ? OMPI_ERR_NOT_AVAILABLE : set_up(lane);
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
      // Rank 0 ends the job.
      if (parameters().chosen_mode() == Mode::kRequire && !lane.finds_shared_hosts())
        return OMPI_ERR_WOULD_BLOCK;
      ibcast.path = Ibcast::Path::kTree;
      ibcast.reason = lane.reason();
      return OMPI_SUCCESS;
    }
    if (rc != OMPI_SUCCESS) return rc;
  }
  ibcast.path = Ibcast::Path::kFabric;
  ibcast.reason = "multicast";
  return OMPI_SUCCESS;
}

int CommunicatorState::step(Ibcast& ibcast) {
  if (ibcast.path == Ibcast::Path::kUndecided) {
    const int rc = choose_path(ibcast);
    if (rc != OMPI_SUCCESS) return rc;
  }
  while (ibcast.done < ibcast.payload.bytes()) {
    const bool tree = ibcast.path == Ibcast::Path::kTree;
    const size_t length = std::min(tree ? BulkOperation::kUnit : unit_of(ibcast.small),
                                   ibcast.payload.bytes() - ibcast.done);
    if (ibcast.operation == nullptr) {
      const Call call{comm_,           ibcast.root, ibcast.unit, retry_after(),
                      &ibcast.payload, ibcast.done, length,      true};
      if (tree) {
        ibcast.operation = std::make_unique<TreeOperation>(call);
      } else {
        ibcast.operation = make_operation(call, ibcast.small);
      }
    }
    current_ = ibcast.operation.get();
    const int rc = current_->progress(actions_);
    if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
    current_ = nullptr;
    ibcast.operation.reset();
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
      ibcast.path = Ibcast::Path::kTree;
      ibcast.reason = session_->agreement().reason();
      continue;
    }
    if (rc != OMPI_SUCCESS) return rc;
    ibcast.done += length;
    ++ibcast.unit;
  }
  return OMPI_SUCCESS;
}

void CommunicatorState::note_end(const Ibcast& ibcast) {
  if (ibcast.path == Ibcast::Path::kTree) {
    counters().add(Counters::Which::kIbcastTree);
    count("ibcast: point to point", ibcast.reason);
  } else {
    counters().add(ibcast.small ? Counters::Which::kIbcastEager : Counters::Which::kIbcastBulk);
    count(ibcast.small ? "ibcast: eager lane" : "ibcast: bulk lane", ibcast.reason);
  }
}

}  // namespace cepheus::coll
