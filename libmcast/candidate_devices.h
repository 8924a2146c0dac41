// The verbs devices of this host in the order to try them, and why one of them is taken.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/locality/device_choice.h"

namespace cepheus::mcast {

class CandidateDevices {
 public:
  // The device `wanted` alone; if it is empty all, those nearest to this process's cores first.
  explicit CandidateDevices(const std::string& wanted);

  bool host_has_none() const { return names_.empty(); }
  // Candidates, the first to be tried first.
  std::size_t size() const { return order_.size(); }
  ibv_device* device(std::size_t i) const { return list_.get()[order_[i]]; }
  const std::string& name(std::size_t i) const { return names_[order_[i]]; }
  // Why candidate `i` is taken, if those before it can't serve: for people.
  std::string why(std::size_t i) const;

 private:
  struct ListDeleter {
    void operator()(ibv_device** list) const { ibv_free_device_list(list); }
  };

  void sort_by_nearness();

  std::unique_ptr<ibv_device*, ListDeleter> list_;
  std::vector<std::string> names_;  // as listed
  std::vector<std::size_t> order_;  // indices into both
  bool is_asked_for_ = false;
  std::optional<locality::DeviceChoice> choice_;  // null: it was none, or can't be made
};

}  // namespace cepheus::mcast
