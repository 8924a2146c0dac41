// One broadcast among the members of a team: by multicast, unit by unit. The rest of one whose group
// breaks on the way goes down a binomial tree. One that multicast can't serve at all goes there,
// too, or, where all ranks wait for it together, to the saved module.
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

  // Before progress(), perhaps: OMPI_SUCCESS if it goes by multicast, OMPI_ERR_NOT_AVAILABLE if not.
  int ready();
  int progress() override;
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
  int end();

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
  int error_ = OMPI_SUCCESS;
  std::unique_ptr<Operation> operation_;
  std::string reason_;
};

}  // namespace cepheus::coll
