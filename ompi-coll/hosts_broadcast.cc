#include "ompi-coll/hosts_broadcast.h"

#include <algorithm>

#include "ompi-coll/tree_operation.h"

namespace cepheus::coll {

HostsBroadcast::HostsBroadcast(const Hosts& hosts, Multicast* multicast, Payload& payload, int root,
                               bool attended)
    : hosts_(hosts),
      multicast_(multicast),
      payload_(payload),
      source_host_(hosts.host_of[static_cast<std::size_t>(root)]),
      source_inside_(hosts.inside.member_of(root)),
      is_root_(ompi_comm_rank(hosts.inside.comm()) == root),
      attended_(attended),
      reason_("multicast among one rank of each host") {}

int HostsBroadcast::open() {
  length_ = std::min(BulkOperation::kUnit, payload_.bytes() - done_);
  void* const memory = payload_.window(done_, length_);
  if (memory == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  window_.emplace(memory, length_, &ompi_mpi_byte.dt);
  return is_root_ && !payload_.contiguous() ? payload_.pack(done_, memory, length_) : OMPI_SUCCESS;
}

int HostsBroadcast::inside(int root) {
  if (hosts_.inside.size() == 1) return OMPI_SUCCESS;
  if (operation_ == nullptr) {
    operation_ = std::make_unique<TreeOperation>(
        Call{&hosts_.inside, root, 0, 0, &*window_, 0, length_, !attended_});
  }
  Actions none;
  const int rc = operation_->progress(none);
  if (rc != OMPI_ERR_WOULD_BLOCK) operation_.reset();
  return rc;
}

int HostsBroadcast::across() {
  if (multicast_ == nullptr) return OMPI_SUCCESS;
  if (!across_) {
    across_.emplace(hosts_.leaders, multicast_, "", *window_, source_host_, attended_,
                    TeamBroadcast::Otherwise::kTree);
  }
  const int rc = across_->progress();
  if (rc == OMPI_ERR_WOULD_BLOCK) return rc;
  if (across_->route() == Route::kTree)
    reason_ = "point to point among one rank of each host: " + across_->reason();
  across_.reset();
  return rc;
}

int HostsBroadcast::close() {
  const int rc =
      is_root_ ? OMPI_SUCCESS : payload_.unpack(done_, window_->window(0, length_), length_);
  window_.reset();
  done_ += length_;
  return rc;
}

int HostsBroadcast::progress() {
  // A root that leads its host needs nobody's help to give the data to the other hosts.
  const bool collects = source_inside_ > 0;
  while (done_ < payload_.bytes()) {
    int rc = OMPI_SUCCESS;
    Step next = Step::kOpen;
    switch (step_) {
      case Step::kOpen:
        rc = open();
        next = collects ? Step::kCollect : Step::kAcross;
        break;
      case Step::kCollect:
        rc = inside(source_inside_);
        next = Step::kAcross;
        break;
      case Step::kAcross:
        rc = across();
        next = collects ? Step::kClose : Step::kSpread;
        break;
      case Step::kSpread:
        rc = inside(0);
        next = Step::kClose;
        break;
      case Step::kClose:
        rc = close();
        next = Step::kOpen;
        break;
    }
    if (rc != OMPI_SUCCESS) return rc;
    step_ = next;
  }
  return OMPI_SUCCESS;
}

}  // namespace cepheus::coll
