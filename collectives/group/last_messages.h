// The end of a team's messages, once TearDown is done: receives all control messages and reports of
// readiness that no call has received. MPI would keep them when the communicator is freed, and give
// them to a later communicator with the same context.
//
// No member is in a broadcast any more, so none needs an answer. Each member sends a last message on
// either tag to all others. Messages between two members stay in order by tag: behind a member's
// last one none is under way. Never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/group/control_link.h"
#include "collectives/group/messages.h"
#include "collectives/group/team.h"

namespace cepheus::coll {

class LastMessages {
 public:
  LastMessages(const Team& team, ControlLink& link) : team_(team), link_(link) {}

  // False if it is no last message. Another member may send its own before TearDown is done here.
  bool take(const ControlMessage& message) {
    const bool is_last = message.kind == ControlMessage::Kind::kLast;
    if (is_last) ++controls_;
    return is_last;
  }
  // True once this member has the last messages of all. All members call it, or none does.
  bool progress();

 private:
  struct Report {  // a unit, or the last one
    int member;
    std::uint64_t unit;
  };
  void start();
  void receive_reports();
  bool has_all_control();
  bool has_all_reports();

  const Team& team_;
  ControlLink& link_;
  bool is_started_ = false;
  int controls_ = 0;  // last control messages that have come
  std::vector<Report> reports_;
  Messages messages_;
};

}  // namespace cepheus::coll
