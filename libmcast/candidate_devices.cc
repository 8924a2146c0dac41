#include "libmcast/candidate_devices.h"

#include "support/locality/machine.h"

namespace cepheus::mcast {

CandidateDevices::CandidateDevices(const std::string& wanted) : is_asked_for_(!wanted.empty()) {
  int count = 0;
  list_.reset(ibv_get_device_list(&count));
  if (!list_) return;
  for (int i = 0; i < count; ++i) {
    names_.emplace_back(ibv_get_device_name(list_.get()[i]));
    if (!is_asked_for_ || names_.back() == wanted) order_.push_back(names_.size() - 1);
  }
  if (order_.size() > 1) sort_by_nearness();
}

void CandidateDevices::sort_by_nearness() {
  const auto machine = locality::Machine::load();
  if (!machine) return;
  choice_.emplace(machine->topology(), machine->cores_of_process().get(), names_);
  order_ = choice_->order();
}

std::string CandidateDevices::why(std::size_t i) const {
  if (is_asked_for_) return "asked for by name";
  if (names_.size() == 1) return "the only one";
  return choice_ ? choice_->why(order_[i]) : "the first that serves; hwloc can't tell what is near";
}

}  // namespace cepheus::mcast
