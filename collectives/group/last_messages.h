// The end of a team's messages, before TearDown: receives the control messages and reports of
// readiness that no call has received. MPI would keep them when the communicator is freed, and give
// them to a later communicator with the same context.
//
//   LAST(wants report)   to each member that this one has sent a control message, and to each that
//                        may have reported its readiness in vain
//   LAST_RECEIVED        the answer of a member that is drained and has no more broadcasts; with it,
//                        if wanted, its last report: kNoUnit
//
// Messages between two members stay in order by tag. So behind LAST_RECEIVED each has the other's
// control messages, and behind the last report there is none. Members that exchanged no such
// messages exchange none here. Never blocks.
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

  // False if the message is not for this class.
  bool take(int from, const ControlMessage& message);
  // This member is drained, and has no more broadcasts. `may_have_reported`: by member; empty: none.
  // True once nothing of this member's is under way.
  bool progress(const std::vector<bool>& may_have_reported);

 private:
  struct LastRequest {
    int by;
    bool wants_report;
  };
  struct Report {  // a unit, or kNoUnit
    int member;
    std::uint64_t unit;
  };
  void answer();
  void start(const std::vector<bool>& may_have_reported);
  void receive_reports();
  bool has_all_reports();

  const Team& team_;
  ControlLink& link_;
  bool is_started_ = false;
  std::vector<LastRequest> requests_;
  int unanswered_ = 0;
  std::vector<Report> reports_;
  Messages messages_;
};

}  // namespace cepheus::coll
