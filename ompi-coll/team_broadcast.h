// One broadcast among the members of a team: by multicast, unit by unit, and what that can't serve
// down a binomial tree, or, where all ranks wait for it together, by the saved module.
#pragma once

#include <memory>
#include <string>

#include "ompi-coll/course.h"
#include "ompi-coll/multicast.h"
#include "ompi-coll/payload.h"

namespace cepheus::coll {

class TeamBroadcast final : public Course {
 public:
  enum class Otherwise : std::uint8_t { kSavedModule, kTree };

  // `root`: member. `multicast`: null if the team has none, for `why`. `attended`: the program
  // waits inside MPI until it is done.
  TeamBroadcast(const Team& team, Multicast* multicast, const std::string& why, Payload& payload,
                int root, bool attended, Otherwise otherwise);

  int progress() override;
  std::size_t done() const override { return done_; }
  std::chrono::nanoseconds spare_time() const override {
    return operation_ != nullptr ? operation_->spare_time() : std::chrono::nanoseconds(0);
  }
  Route route() const override;
  const std::string& reason() const override { return reason_; }

 private:
  enum class Path : std::uint8_t { kUndecided, kMulticast, kOther };

  int decide();
  Call next_call() const;
  int run();

  const Team& team_;
  Multicast* const multicast_;
  Payload& payload_;
  const int root_;
  const bool attended_;
  const Otherwise otherwise_;
  const bool small_;

  Path path_ = Path::kUndecided;
  bool has_units_ = false;
  uint64_t unit_ = 0;     // the current one
  std::size_t done_ = 0;  // bytes of the units before it
  std::unique_ptr<Operation> operation_;
  std::string reason_;
};

}  // namespace cepheus::coll
