// One broadcast among the members of a team: by multicast, unit by unit. If the group fails on the
// way, the rest goes down a binomial tree. If multicast can't serve the broadcast at all, the tree
// serves a non-blocking one, and the saved function a blocking one.
#pragma once

#include <string>
#include <string_view>

#include "collectives/algorithm.h"
#include "collectives/units/payload.h"
#include "collectives/units/tree_operation.h"

namespace cepheus::coll {

class Multicast;
class Operation;

class TeamBroadcast final : public Algorithm {
 public:
  enum class Otherwise : std::uint8_t { kSavedFunction, kTree };
  struct Arguments {
    Multicast* multicast;  // null if the team has none...
    std::string_view why;  // ... for this reason
    Payload& payload;
    int root;       // member
    bool blocking;  // the program waits inside MPI until it is done
    Otherwise otherwise;
  };

  explicit TeamBroadcast(const Team& team) : team_(team) {}
  ~TeamBroadcast() override { finish_unit(); }
  TeamBroadcast(const TeamBroadcast&) = delete;
  TeamBroadcast& operator=(const TeamBroadcast&) = delete;

  void begin(const Arguments& arguments);
  // Before progress(), perhaps: Code::kDone if it goes by multicast, Code::kNotServed if not.
  Code ready();
  Code progress() override;
  std::chrono::nanoseconds spare_time() const override;
  Route route() const override;
  const std::string& reason() const override { return reason_; }

 private:
  enum class Path : std::uint8_t { kUndecided, kMulticast, kOther };

  Code decide();
  Call next_call() const;
  Code run();
  void finish_unit();

  const Team& team_;
  TreeOperation tree_;

  Multicast* multicast_ = nullptr;
  Payload* payload_ = nullptr;
  int root_ = 0;
  bool blocking_ = false;
  Otherwise otherwise_ = Otherwise::kTree;
  bool small_ = false;

  Path path_ = Path::kUndecided;
  bool has_units_ = false;
  uint64_t unit_ = 0;               // the current one
  std::size_t done_ = 0;            // bytes of the units before it
  Operation* operation_ = nullptr;  // of the unit, by multicast
  bool has_begun_ = false;          // the unit
  std::string reason_;
};

}  // namespace cepheus::coll
