// What members and switches say to a group's leader, on its way up the tree (docs/protocol.md,
// "Registration").
//
// CONFIRMs are merged: a switch speaks for all behind it, once they have confirmed, or after a
// short wait for those that have. All else goes on as it is.
#pragma once

#include <deque>
#include <optional>

#include "switch-emulator/engine/group_table.h"

namespace cepheus::fabric {

struct Call;
struct MrpRequest;

class Answers {
 public:
  explicit Answers(GroupTable& groups) : groups_(groups) {}

  // A datagram for the leader (wire::is_for_leader) has arrived, from a host or another switch.
  void on_answer(Call& call, const MrpRequest& answer);
  // The leader has asked, or members have confirmed: says what can be said now, or sets the time
  // for it.
  void tell_or_wait(Call& call, McstId id, std::uint16_t epoch);

  void on_timer(Call& call);
  Instant deadline() const { return due_.empty() ? wire::kNever : due_.front().at; }

 private:
  // A registration, whether it is a table's or buried.
  struct Party {
    Roster& roster;
    Leader leader;
    PortId towards_leader;
  };
  std::optional<Party> find(McstId id, std::uint16_t epoch);
  void merge(Call& call, const MrpRequest& confirm, Roster& roster);
  void tell(Call& call, McstId id, std::uint16_t epoch, const Party& party);

  struct Due {
    Instant at;
    McstId id;
    std::uint16_t epoch;
  };
  GroupTable& groups_;
  std::deque<Due> due_;  // all wait equally long: in order
};

}  // namespace cepheus::fabric
