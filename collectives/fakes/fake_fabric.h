// libmcast and a fabric under the control of a test: the test delivers data of groups, fails
// groups, refuses them or loses their data. Each member's NIC acknowledges a message as it arrives.
// A send is complete when all have acknowledged it. Members learn that, and arrivals, in
// progress().
#pragma once

#include <mcast/mcast.h>
#include <mcast/query.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/fakes/reducing_group.h"

struct mcast_group {
  int member = 0;  // of the world, the rank
  mcast_group_params_t params = {};
  std::uint32_t number = 0;  // of this end
  std::uint32_t wire = 0;    // of the group, from its leader's registration on
  mcast_status_t status = MCAST_INPROGRESS;
  mcast_cause_t cause = MCAST_CAUSE_NONE;
  std::string reason;
  std::vector<std::uint32_t> members;  // numbers of all ends; the leader's from the beginning
  bool is_watched = true;
  bool is_deaf = false, is_mute = false;

  struct Receive {
    void* memory;
    std::size_t size;
    mcast_op_t* op;
  };
  std::deque<Receive> receives;
  struct Arrived {
    std::vector<std::byte> data;
    mcast_op_t* op;  // null: a small one
    std::uint32_t imm;
  };
  std::deque<Arrived> arrived;  // and not handed over yet
  std::deque<std::unique_ptr<std::vector<std::byte>>> lent;
  struct Send {
    std::uint64_t serial;
    std::vector<std::byte> copy;  // of a small one
    const void* memory;
    std::size_t size;
    std::uint32_t imm;
    mcast_op_t* op;
    std::set<std::uint32_t> lacking;  // ends
  };
  std::deque<Send> sends;

  // Of the lane of reductions. All ends of a group share `reduction`, from its registration on.
  std::shared_ptr<cepheus::coll::fake::ReducingGroup> reduction;
  std::deque<mcast_op_t*> gathers;
  bool is_flushed = false;
  int place() const;  // among its members
};

namespace cepheus::coll::fake {

class Fabric {
 public:
  Fabric();
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  int caller = 0;  // the rank that calls libmcast
  // Outcome of the registrations to come, the last one for all further ones.
  std::deque<mcast_status_t> outcomes{MCAST_OK};
  bool answers_in_part = false;  // a member confirms registrations that time out
  // The outcome of opening the device. Called by the thread that opens.
  std::function<mcast_status_t()> on_open = [] { return MCAST_OK; };
  bool is_port_up = true;
  // Runs inside each registration.
  std::function<void()> on_lead = [] {};
  std::size_t portion = 0;  // mcast_group_attr_t::portion of all groups
  mcast_context_params_t context_params = MCAST_CONTEXT_PARAMS_INIT;  // of the last opening

  // Ends at which the next message of their group may arrive now.
  std::vector<std::uint32_t> deliverable() const;
  void deliver(std::uint32_t end);
  // Ends with a message for a member that has posted no receive: their NICs are answered RNR.
  std::vector<std::uint32_t> answered_rnr() const;
  // From now on arrivals there are acknowledged and lost, like old duplicates at a switch.
  void deafen(std::uint32_t end);
  // From now on it hands no completion over, as a device that died.
  void mute(std::uint32_t end);
  // Contributions to reductions and their results that may move now.
  struct Move {
    std::uint32_t end;
    bool is_result;
  };
  std::vector<Move> moves() const;
  void move(const Move& move);
  std::size_t reduction_bytes = 400;  // mcast_group_attr_t::max_message of reductions
  // Of reductions: mcast_group_attr_t::is_flat, and is_ascending. If a group has neither, its switches add
  // floating-point numbers in other pairs than by rank.
  bool is_flat = true, has_ascending_addresses = true;
  // Switches have no memory for floating-point sums.
  bool refuses_sums = false;
  std::uint32_t address_of(int rank) const {
    const auto above = static_cast<std::uint32_t>(rank);
    return 0x0A000000 + (has_ascending_addresses ? above : 0xFFFF - above);
  }
  // The unit of lost results of reductions.
  static constexpr std::uint64_t kReduced = ~std::uint64_t{0};
  // The rank and the unit of the lost data.
  const std::set<std::pair<int, std::uint64_t>>& lost() const { return lost_; }
  // Messages of a unit that every member has acknowledged.
  std::size_t acknowledged(std::uint64_t unit) const {
    const auto at = acknowledged_.find(unit);
    return at == acknowledged_.end() ? 0 : at->second;
  }
  // A registration without an outcome so far.
  std::vector<std::uint32_t> registering() const;
  void conclude(std::uint32_t end);
  // All registrations have their outcome, and all that may arrive or move now does.
  void move_all();
  // The end fails, with its side of the group.
  void fail(std::uint32_t end, mcast_cause_t cause, const std::string& why);
  std::size_t registrations() const { return registrations_; }  // concluded ones
  // From now on nothing moves from or to this rank.
  void disconnect(int rank) {
    disconnected_.insert(rank);
    had_disconnected_ = true;
  }
  bool had_disconnected() const { return had_disconnected_; }
  void reconnect() { disconnected_.clear(); }
  // Its process has died: its NIC answers nothing any more.
  void kill(int rank) { dead_.insert(rank); }
  bool is_whole() const { return disconnected_.empty() && dead_.empty(); }
  // Units that were lost at this rank and that every member has acknowledged.
  std::size_t lost_for_good(int rank) const;
  // An operation under way may read or write some of these bytes.
  bool uses(const std::vector<std::byte>& memory) const;
  // Calls for a group that is gone, and groups that went while their memory was lent.
  std::size_t misuses() const { return misuses_; }
  std::size_t groups() const { return groups_.size(); }
  // Ends with sends that wait: their watchdogs would fire.
  std::vector<std::uint32_t> stalled() const;
  std::vector<std::uint32_t> ends() const;
  // Groups in registration included.
  std::vector<std::uint32_t> all_ends() const;
  int rank_of(std::uint32_t end) const { return find(end)->member; }
  // Completions of the rank's ends.
  void progress(int rank);

 private:
  friend struct FabricCalls;
  mcast_group* find(std::uint32_t end) const;
  bool knows(mcast_group_h group);
  bool is_disconnected(int rank) const {
    return disconnected_.contains(rank) || dead_.contains(rank);
  }
  const mcast_group::Send* next_for(const mcast_group& end, mcast_group** from) const;
  void begin_reductions(mcast_group& leader);
  bool may_move(const mcast_group& end) const;
  bool is_stalled(const mcast_group& end) const;
  // Hands the end's results over; of a failed one, those that have come.
  void progress_reductions(std::uint32_t end);

  std::vector<std::unique_ptr<mcast_group>> groups_;
  std::uint32_t numbers_ = 0;
  std::uint64_t serials_ = 0;
  void note_end_of(const mcast_group& end);

  std::size_t misuses_ = 0, registrations_ = 0;
  std::set<int> disconnected_, dead_;
  bool had_disconnected_ = false;
  std::set<std::uint32_t> ended_;  // wires on which a sender left a message that some lack
  std::set<std::pair<int, std::uint64_t>> lost_;
  std::map<std::uint64_t, std::size_t> acknowledged_;
  std::mt19937_64 random_{1};  // of flushed completions
};

}  // namespace cepheus::coll::fake
