// The end of a team's groups and messages, so that no member leaves while another waits for its
// acknowledgement, and MPI keeps no message for a later communicator with the same context:
//
//   kDraining     some member may lack data that this one has sent
//   kLastReports  control messages and reports of readiness that no call has received are received:
//                   LAST(wants report)   to each member that this one has sent a control message,
//                                        and to each that may have reported its readiness in vain
//                   LAST_RECEIVED        the answer of a member that is drained and has no more
//                                        broadcasts; with it, if wanted, its last report: kNoUnit
//   kGathering    this member is ready; the leader waits until all are
//   kReleasing    the leader announces that
//   kDone         every member destroys its groups
//
// Messages between two members stay in order by tag. So behind LAST_RECEIVED each has the other's
// control messages, and behind the last report there is none. Members that exchanged no such
// messages exchange no LAST. Waits for the last member for any time, and never blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/group/control_link.h"
#include "collectives/group/messages.h"
#include "collectives/group/team.h"

namespace cepheus::coll {

class TearDown {
 public:
  TearDown(const Team& team, ControlLink& link) : team_(team), link_(link) {}

  // False if the message is not for this class.
  bool take(int from, const ControlMessage& message);
  // This member has no more broadcasts. `is_drained`: nothing that it has sent is missing anywhere.
  // `may_have_reported`: by member; empty: none. True once that holds for all members, and they have
  // all messages.
  bool progress(bool is_drained, const std::vector<bool>& may_have_reported);

 private:
  enum class State : std::uint8_t { kDraining, kLastReports, kGathering, kReleasing, kDone };
  struct LastRequest {
    int by;
    bool wants_report;
  };
  struct Report {  // a unit, or kNoUnit
    int member;
    std::uint64_t unit;
  };

  void answer();
  void request_reports(const std::vector<bool>& may_have_reported);
  void receive_reports();
  bool has_all_reports();
  void gather();
  void release();

  const Team& team_;
  ControlLink& link_;
  State state_ = State::kDraining;
  std::vector<LastRequest> requests_;
  int unanswered_ = 0;
  std::vector<Report> reports_;
  std::vector<char> bytes_;  // of the messages of the last two rounds, which have one each
  Messages messages_;
};

}  // namespace cepheus::coll
