// One broadcast or reduction from its beginning to its end: call progress() until it is done.
// Under the communicator's guard; never blocks. A communicator keeps its objects for the
// calls to come: begin() of each class forgets the last one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "collectives/core/code.h"

namespace cepheus::coll {

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  // Code::kDone, an error, Code::kPending: call again; Code::kNotServed, of a blocking call, on all
  // ranks alike: the saved function shall serve it.
  virtual Code progress() = 0;
  // The time for which the caller may sleep without much delay.
  virtual std::chrono::nanoseconds spare_time() const = 0;
  virtual Route route() const = 0;
  virtual const std::string& reason() const = 0;  // for the route
  // Its time is the route's. False: it has taken another one meanwhile, as this rank knows.
  virtual bool is_comparable() const { return true; }
  // After an error: all ranks have begun the call, as this rank knows, so none waits for this one.
  virtual bool has_met_all() const { return false; }
  // After an error of a call behind an agreement (Choice::confirms): a rank has taken no part, so no
  // rank completes the call. False: other ranks may have completed it.
  virtual bool is_refused() const { return false; }
};

// Leaves calls to the saved function.
class SavedAlgorithm final : public Algorithm {
 public:
  void begin(std::string_view why) { reason_ = why; }
  Code progress() override { return Code::kNotServed; }
  std::chrono::nanoseconds spare_time() const override { return std::chrono::nanoseconds(0); }
  Route route() const override { return Route::kSaved; }
  const std::string& reason() const override { return reason_; }

 private:
  std::string reason_;
};

}  // namespace cepheus::coll
