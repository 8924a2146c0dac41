// Answers of members and switches to a group's leader, on their way up the tree (docs/protocol.md,
// "Registration").
//
// CONFIRMs are merged: a switch confirms for all members behind it when they have confirmed, or
// after a short wait for those that have. All other answers go on unchanged.
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
  // The leader has sent a request, or members have confirmed. Sends the confirmations that are due
  // now, or sets the time for them.
  void confirm_due(Call& call, McstId id, std::uint16_t epoch);

  void on_timer(Call& call);
  Instant deadline() const { return due_.empty() ? wire::kNever : due_.front().at; }

 private:
  // A registration of a table, or of a tombstone.
  struct Party {
    Roster& roster;
    Leader leader;
    PortId towards_leader;
    bool by_switch = false;       // Tombstone::by_switch
    GroupEntry* entry = nullptr;  // null: of a tombstone
  };
  std::optional<Party> find(McstId id, std::uint16_t epoch);
  void merge(Call& call, const MrpRequest& confirm, const Party& party);
  // ... of this number of the ready ones.
  void send_confirms(Call& call, McstId id, std::uint16_t epoch, const Party& party,
                     std::size_t members);

  struct Due {
    Instant at;
    McstId id;
    std::uint16_t epoch;
  };
  GroupTable& groups_;
  std::deque<Due> due_;  // all wait equally long, so they are in order
};

}  // namespace cepheus::fabric
