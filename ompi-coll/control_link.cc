#include "ompi-coll/control_link.h"

namespace cepheus::coll {

int ControlLink::post() {
  const int rc = MCA_PML_CALL(irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE,
                                    team_.tag(Tag::kControl), team_.comm(), &receive_));
  if (rc != OMPI_SUCCESS) return rc;
  const auto on_complete = [](ompi_request_t* request) {
    static_cast<ControlLink*>(request->req_complete_cb_data)->arrived_();
    return 0;
  };
  return ompi_request_set_callback(receive_, on_complete, this);
}

int ControlLink::open() { return is_open() ? OMPI_SUCCESS : post(); }

void ControlLink::close() {
  if (!is_open()) return;
  receive_->req_complete_cb = nullptr;
  if (!REQUEST_COMPLETE(receive_)) ompi_request_cancel(receive_);
  ompi_request_free(&receive_);
  receive_ = nullptr;
}

int ControlLink::send(int to, const ControlMessage& message) {
  int rc = OMPI_SUCCESS;
  for (int member = 0; member < team_.size() && rc == OMPI_SUCCESS; ++member) {
    if (to == member || (to == Action::kEveryone && member != team_.self()))
      rc = Messages::post(&message, sizeof message, member, Tag::kControl, team_);
  }
  return rc;
}

bool ControlLink::receive(int& from, ControlMessage& out) {
  if (!is_open() || !REQUEST_COMPLETE(receive_)) return false;
  from = team_.member_of(receive_->req_status.MPI_SOURCE);
  const bool usable = receive_->req_status.MPI_ERROR == MPI_SUCCESS &&
                      receive_->req_status._ucount == sizeof incoming_ && from >= 0;
  out = incoming_;
  ompi_request_free(&receive_);
  receive_ = nullptr;
  // Also after a message that was not usable: it must not end all others.
  (void)post();
  return usable;
}

}  // namespace cepheus::coll
