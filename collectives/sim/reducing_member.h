// One rank of a simulated job: its calls in flight, its end of the group, and its agreement. It does
// all I/O for the agreement, as the collectives do for a group of broadcasts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "collectives/core/rootless_agreement.h"
#include "collectives/sim/rootless_world.h"

namespace cepheus::coll::sim {

class ReducingMember {
 public:
  enum class How : char { kGroup = 'g', kHost = 'h', kError = 'e' };
  struct Ended {
    std::size_t index;  // in the program
    How how;
    Bytes output;
  };

  ReducingMember(int rank, RootlessWorld& world);
  ~ReducingMember();
  ReducingMember(const ReducingMember&) = delete;
  ReducingMember& operator=(const ReducingMember&) = delete;

  // Starts the program's call `index`.
  void begin(std::size_t index);
  // The program's next broadcast is over.
  void note_broadcast();
  void note_failed_broadcasts();
  // A call of MPI, in which progress is made. Adds calls that have ended to `ended`.
  void progress(RootlessAgreement::Time now, bool looks_at_nic, std::vector<Ended>& ended);
  // The host reports that the dead rank can't be reached.
  void lose(int rank);

  std::size_t in_flight() const { return calls_.size(); }
  void close() { agreement_.close(); }
  const RootlessAgreement& agreement() const { return agreement_; }
  // Messages of a failover: sent ones minus received ones.
  int failover_messages() const { return failover_messages_; }
  bool keeps_results() const { return keeps_results_; }
  std::size_t copied() const { return copied_; }

 private:
  struct Call {
    std::size_t index;
    std::uint64_t number;  // the agreement's
    Bytes memory;          // the program's: its input
    Bytes contribution, gathered;
    std::size_t units;
    std::size_t contributed = 0, arrived = 0;
    std::uint64_t first = 0;  // unit
    bool is_in_host = false;
  };
  struct Sent {
    Bytes data;  // empty: the data are kept results
    bool ends_serve;
    host::Request* request;
  };

  const Collective& what(const Call& call) const { return world_.plan.program[call.index]; }
  fake::ReducingGroup& group() { return world_.groups[agreement_.generation() - 1]; }
  std::size_t slot(std::uint64_t unit) const {
    return static_cast<std::size_t>(unit % results_.size());
  }
  // The part of a call's contribution that is a unit.
  std::pair<std::size_t, std::size_t> part(const Call& call, std::size_t unit) const;

  void act();
  void send_unit(int to, std::uint64_t unit, bool is_last);
  void take_sent();
  void receive_messages();
  void look_at_group();
  void copy_lacking();
  void contribute();
  void forget_part();
  void take(const std::byte* data, std::size_t bytes);
  void advance(std::vector<Ended>& ended);
  bool set_up(std::uint64_t call);
  Bytes result(const Call& call, const std::vector<Bytes>& blocks, bool by_host) const;
  void end_by_group(Call& call, std::vector<Ended>& ended);
  void end_by_host(const Call& call, std::vector<Ended>& ended);
  std::vector<Bytes> blocks_of(const Call& call, const Bytes& gathered) const;

  const int rank_;
  RootlessWorld& world_;
  RootlessAgreement agreement_;
  RootlessOutput out_;
  std::deque<Call> calls_;
  std::uint64_t completed_ = 0;       // units, of which the agreement may not know the last ones
  std::uint64_t contributed_ = 0;     // units
  std::vector<Bytes> results_;        // by slot: a NIC writes here
  std::vector<std::size_t> lengths_;  // of completed ones
  bool keeps_results_ = false;
  bool is_copying_ = false;
  std::size_t copied_ = 0;
  int failover_messages_ = 0;

  std::list<Sent> sent_;
  RootlessMessage incoming_{};
  host::Request* control_ = nullptr;
  Bytes unit_;
  host::Request* copy_ = nullptr;
};

}  // namespace cepheus::coll::sim
