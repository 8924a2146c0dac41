// The algorithms of one communicator's calls. The places of its ranks decide them: multicast and
// reductions in the network among all ranks or, where some share a host, among one of each host. One
// call has its turn at a time, so all calls share these objects.
//
// All calls but has_groups(), has_ended_broadcasts() and detach() are under the communicator's guard. None blocks.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "collectives/algorithm.h"
#include "collectives/core/comparison.h"
#include "collectives/core/placement.h"
#include "collectives/group/team.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

class HostsBroadcast;
class LongReducer;
class Multicast;
class Reducer;
class ReductionSession;
class TeamBroadcast;
struct Hosts;
struct ReductionData;
struct ReductionShape;

class Algorithms {
 public:
  // `all`: the ranks of the communicator.
  explicit Algorithms(const Team& all);
  ~Algorithms();

  // The ranks' places are known. `called`: see Multicast.
  void place(const Placement& placement, std::function<void()> called);
  // This rank is a member of a group, or may become one.
  bool is_member() const { return multicast_ != nullptr; }

  // All of this rank's broadcasts end in errors, and none is the saved function's: it would give its
  // data to ranks that are in an earlier one.
  bool has_ended_broadcasts() const;

  // The algorithm of a broadcast that has its turn; begins it. `why`: the reason if the ranks' places
  // rule multicast out.
  Algorithm& begin(Payload& payload, int root, bool blocking, std::string_view why);
  // ... without multicast, for the reason `why`.
  Algorithm& begin_other(Payload& payload, int root, bool blocking, std::string_view why);

  // ... of a reduction that has its turn, as the ranks have chosen. The other way is the saved
  // function if the call may be saved, else messages. `why`: as of begin(), or for the other way.
  Algorithm& begin(const ReductionShape& shape, ReductionData& data, bool blocking,
                   const Choice& choice, std::string_view why);
  // ... without the network.
  Algorithm& begin_other(const ReductionShape& shape, ReductionData& data, std::string_view why);
  // ... of a long one, as the ranks have chosen. `is_saved`: the saved function serves it.
  Algorithm& begin_long(const ReductionShape& shape, ReductionData& data, bool is_saved,
                        const Choice& choice, std::string_view why);
  // The network may serve a long one, as all ranks find alike; the reason why not; and the safeguard may
  // choose its way.
  bool may_network(const ReductionData& data);
  std::string_view why_not_network(const ReductionData& data);
  bool may_compare(const ReductionData& data);

  // See Multicast. True: call it soon again.
  bool look_after();
  bool has_groups() const;
  // No call follows. True once no member needs the groups any more, and they are destroyed.
  bool tear_down();
  // A member's reductions have given up: messages of the communicator may stay under way for ever.
  bool has_given_up() const;
  void detach();

 private:
  Algorithm& begin_team(Multicast* multicast, std::string_view why, Payload& payload, int root,
                        bool blocking);
  LongReducer& long_reducer();
  const Team& all_;
  std::unique_ptr<Hosts> hosts_;          // where some ranks share a host
  std::unique_ptr<Multicast> multicast_;  // of all, or of the hosts' leaders
  std::unique_ptr<TeamBroadcast> team_algorithm_;
  std::unique_ptr<HostsBroadcast> hosts_algorithm_;
  // The session's group reads and writes their memory, so it is destroyed first.
  std::unique_ptr<Reducer> reducer_, other_reducer_;
  std::unique_ptr<LongReducer> long_reducer_, other_long_reducer_;  // the other: without a session
  SavedAlgorithm saved_;
  std::unique_ptr<ReductionSession> session_;  // of the same team
};

}  // namespace cepheus::coll
