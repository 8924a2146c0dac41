#include "ompi-coll/hosts_broadcast.h"

#include <algorithm>
#include <utility>

#include "ompi-coll/parameters.h"
#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

namespace {

// The ranks' calls differ, so perhaps their windows do.
bool is_mistake(int rc) {
  return rc == MPI_ERR_COUNT || rc == MPI_ERR_TRUNCATE || rc == MPI_ERR_ROOT;
}

}  // namespace

HostsBroadcast::HostsBroadcast(Hosts& hosts, Multicast* multicast, Payload& payload, int root,
                               bool attended)
    : hosts_(hosts),
      multicast_(multicast),
      payload_(payload),
      source_host_(hosts.host_of[static_cast<std::size_t>(root)]),
      source_inside_(hosts.inside.member_of(root)),
      is_root_(ompi_comm_rank(hosts.inside.comm()) == root),
      root_leads_(hosts.leaders.rank_of(source_host_) == root),
      group_(Multicast::is_small(std::min(BulkOperation::most_bytes(), payload.bytes())),
             parameters().has_sender_groups() ? source_host_ : 0),
      attended_(attended),
      reason_("multicast among one rank of each host") {}

int HostsBroadcast::open() {
  length_ = std::min(BulkOperation::most_bytes(), payload_.bytes() - done_);
  void* const memory = payload_.window(done_, length_);
  window_.emplace(memory, length_, &ompi_mpi_byte.dt);
  if (memory == nullptr) spoil(OMPI_ERR_OUT_OF_RESOURCE);
  if (is_root_ && !payload_.contiguous()) spoil(payload_.pack(done_, memory, length_));
  return OMPI_SUCCESS;
}

// This rank has no data of the window. The ranks that wait for it get the error.
void HostsBroadcast::spoil(int rc) {
  if (rc == OMPI_SUCCESS || (error_ != OMPI_SUCCESS && rc != OMPI_ERR_NOT_AVAILABLE)) return;
  error_ = rc;
  window_->spoil(rc);
  window_->fail(rc);
}

int HostsBroadcast::inside(Payload& payload, int root) {
  if (hosts_.inside.size() == 1) return OMPI_SUCCESS;
  if (operation_ == nullptr) {
    operation_ = std::make_unique<TreeOperation>(
        Call{&hosts_.inside, root, 0, 0, &payload, 0, payload.bytes(), !attended_});
  }
  Actions none;
  const int rc = operation_->progress(none);
  if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
  operation_.reset();
  return rc == OMPI_SUCCESS ? payload.error() : rc;
}

// The ranks of a root's host that have its data already would not learn of a refusal.
void HostsBroadcast::start_across() {
  using Otherwise = TeamBroadcast::Otherwise;
  const bool may_refuse = attended_ && done_ == 0 && root_leads_;
  across_.emplace(hosts_.leaders, multicast_, "", *window_, source_host_, attended_,
                  may_refuse ? Otherwise::kSavedModule : Otherwise::kTree);
}

// Whether the leaders' group serves it, on all ranks.
int HostsBroadcast::decide() {
  if (!verdict_) {
    int rc = OMPI_SUCCESS;
    if (multicast_ != nullptr) {
      if (!across_) start_across();
      rc = across_->ready();
      if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
      if (rc != OMPI_SUCCESS) across_.reset();
    }
    verdict_.emplace(&verdict_byte_, 1, &ompi_mpi_byte.dt);
    verdict_->spoil(rc);
    if (rc != OMPI_SUCCESS && hosts_.inside.size() == 1) return rc;
  }
  const int rc = inside(*verdict_, 0);
  if (rc == OMPI_SUCCESS) hosts_.serving.insert(group_);
  return rc;
}

int HostsBroadcast::across() {
  if (multicast_ == nullptr) return OMPI_SUCCESS;
  if (!across_) start_across();
  int rc = across_->progress();
  if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
  if (rc == OMPI_SUCCESS) rc = window_->error();
  if (across_->route() == Route::kTree)
    reason_ = "point to point among one rank of each host: " + across_->reason();
  across_.reset();
  return rc;
}

int HostsBroadcast::close() {
  if (!is_root_ && error_ == OMPI_SUCCESS)
    payload_.unpack(done_, window_->window(0, length_), length_);
  window_.reset();
  done_ += length_;
  if (error_ == OMPI_ERR_NOT_AVAILABLE) {
    hosts_.serving.erase(group_);
    reason_ = "the group of the hosts' leaders does not serve it";
  }
  if (error_ == OMPI_ERR_NOT_AVAILABLE || is_mistake(error_)) return error_;
  // The other ranks may have the data: they need this one for the windows that follow.
  payload_.fail(std::exchange(error_, OMPI_SUCCESS));
  return OMPI_SUCCESS;
}

int HostsBroadcast::progress() {
  // A root that leads its host needs nobody's help to give the data to the other hosts.
  const bool collects = source_inside_ > 0;
  const Step after_decision = collects ? Step::kCollect : Step::kAcross;
  const bool decides = attended_ && done_ == 0 && hosts_.serving.count(group_) == 0;
  while (done_ < payload_.bytes()) {
    int rc = OMPI_SUCCESS;
    Step next = Step::kOpen;
    switch (step_) {
      case Step::kOpen:
        rc = open();
        next = decides ? Step::kDecide : after_decision;
        break;
      case Step::kDecide:
        rc = decide();
        next = rc == OMPI_SUCCESS ? after_decision : Step::kClose;
        break;
      case Step::kCollect:
        rc = inside(*window_, source_inside_);
        next = Step::kAcross;
        break;
      case Step::kAcross:
        rc = across();
        next = collects ? Step::kClose : Step::kSpread;
        break;
      case Step::kSpread:
        rc = inside(*window_, 0);
        next = Step::kClose;
        break;
      case Step::kClose:
        rc = close();
        next = Step::kOpen;
        break;
    }
    if (rc == OMPI_ERR_WOULD_BLOCK || (!window_ && rc != OMPI_SUCCESS)) return rc;
    if (window_) spoil(rc);
    step_ = next;
  }
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
