// place() chooses once for the communicator's life: multicast among all ranks, or among the hosts'
// leaders, or none. Only ranks that may be members have a Multicast, and a ReductionSession. begin()
// reuses the same objects for each call.
//
// If multicast does not serve, a blocking broadcast takes the saved function, and a non-blocking
// one goes down a tree. Reductions go by messages, except those that may be saved (collective.h), and
// blocking ones where the ranks' places rule the network out. Long ones
// have a reducer of their own.
#include "collectives/algorithms.h"

#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/hosts_broadcast.h"
#include "collectives/long_reducer.h"
#include "collectives/multicast.h"
#include "collectives/reducer.h"

namespace cepheus::coll {

using Shape = Placement::Shape;

namespace {

Seats seats_of(const Team& all, const Hosts& hosts, const Placement& placement) {
  const auto own_host =
      static_cast<std::size_t>(placement.host_of[static_cast<std::size_t>(all.self())]);
  Seats seats{hosts.leaders, hosts.inside, own_host, {}, {0}};
  for (const std::vector<int>& ranks : placement.hosts) {
    seats.rank_of.insert(seats.rank_of.end(), ranks.begin(), ranks.end());
    seats.first.push_back(static_cast<int>(seats.rank_of.size()));
  }
  return seats;
}

}  // namespace

Algorithms::Algorithms(const Team& all)
    : all_(all), team_algorithm_(std::make_unique<TeamBroadcast>(all)) {}

Algorithms::~Algorithms() = default;

void Algorithms::place(const Placement& placement, std::function<void()> called) {
  if (!placement.may_multicast()) return;
  if (placement.shape == Shape::kHosts) {
    const int own = placement.host_of[static_cast<std::size_t>(all_.self())];
    hosts_ = std::make_unique<Hosts>(
        Hosts{all_.part(placement.leaders()),
              all_.part(placement.hosts[static_cast<std::size_t>(own)]), placement.host_of});
  }
  const Team& team = hosts_ ? hosts_->leaders : all_;
  if (team.self() >= 0) multicast_ = std::make_unique<Multicast>(team, called);
  if (hosts_) hosts_algorithm_ = std::make_unique<HostsBroadcast>(*hosts_, multicast_.get());
  if (!parameters().serves_reductions()) return;
  // Where ranks share hosts, messages serve long reductions.
  const bool adds_floats = hosts_ == nullptr && parameters().reduces_long();
  if (team.self() >= 0)
    session_ = std::make_unique<ReductionSession>(team, std::move(called), adds_floats);
  reducer_ = std::make_unique<Reducer>(
      hosts_ ? seats_of(all_, *hosts_, placement) : Seats::flat(all_), session_.get());
}

// Wherever the ranks may have parted, the reducer with the session serves: a failure at one rank ends
// the call on all ranks.
Algorithm& Algorithms::begin(const ReductionShape& shape, ReductionData& data, bool blocking,
                             const Choice& choice, std::string_view why) {
  const bool is_other = choice.way == Way::kOther;
  // Without a reducer the saved function serves the calls before and after this one, which may be alone
  // because the ranks have looked for a device in it.
  const bool is_saved = reducer_ == nullptr ? blocking
                                            : is_other && !choice.confirms &&
                                                  may_be_saved(shape.collective, blocking);
  if (is_saved) {
    saved_.begin(why);
    return saved_;
  }
  if (reducer_ == nullptr) return begin_other(shape, data, why);
  reducer_->begin(shape, data, why,
                  is_other ? Reducer::Across::kMessages : Reducer::Across::kNetwork,
                  choice.confirms || choice.failure != Code::kDone);
  if (choice.failure != Code::kDone)
    reducer_->fail(choice.failure,
                   "it can't agree with the other ranks on the way: MPI's messages fail");
  return *reducer_;
}

Algorithm& Algorithms::begin_other(const ReductionShape& shape, ReductionData& data,
                                   std::string_view why) {
  if (other_reducer_ == nullptr)
    other_reducer_ = std::make_unique<Reducer>(Seats::flat(all_), nullptr);
  other_reducer_->begin(shape, data, why);
  return *other_reducer_;
}

// The ranks' places are known, but for calls before the look.
LongReducer& Algorithms::long_reducer() {
  ReductionSession* const session = hosts_ == nullptr ? session_.get() : nullptr;
  std::unique_ptr<LongReducer>& it = session != nullptr ? long_reducer_ : other_long_reducer_;
  if (it == nullptr) it = std::make_unique<LongReducer>(all_, session);
  return *it;
}

bool Algorithms::may_network(const ReductionData& data) {
  return reducer_ != nullptr && long_reducer().may_be_networked(data);
}

std::string_view Algorithms::why_not_network(const ReductionData& data) {
  return reducer_ != nullptr ? long_reducer().why_not_networked(data) : "";
}

bool Algorithms::may_compare(const ReductionData& data) {
  return reducer_ != nullptr && long_reducer().may_be_compared(data);
}

Algorithm& Algorithms::begin_long(const ReductionShape& shape, ReductionData& data, bool is_saved,
                                  const Choice& choice, std::string_view why) {
  if (is_saved) {
    saved_.begin(why);
    return saved_;
  }
  long_reducer().begin(shape, data, choice, why);
  return long_reducer();
}

Algorithm& Algorithms::begin(Payload& payload, int root, bool blocking, std::string_view why) {
  if (!hosts_algorithm_) return begin_team(multicast_.get(), why, payload, root, blocking);
  hosts_algorithm_->begin(payload, root, blocking);
  return *hosts_algorithm_;
}

Algorithm& Algorithms::begin_other(Payload& payload, int root, bool blocking,
                                   std::string_view why) {
  if (has_ended_broadcasts()) return begin(payload, root, blocking, why);
  return begin_team(nullptr, why, payload, root, blocking);
}

Algorithm& Algorithms::begin_team(Multicast* multicast, std::string_view why, Payload& payload,
                                  int root, bool blocking) {
  using Otherwise = TeamBroadcast::Otherwise;
  team_algorithm_->begin({multicast, why, payload, root, blocking,
                          blocking ? Otherwise::kSavedFunction : Otherwise::kTree});
  return *team_algorithm_;
}

bool Algorithms::look_after() {
  if (multicast_ != nullptr) multicast_->look_after();
  if (session_ != nullptr) session_->look_after();
  return (multicast_ != nullptr && multicast_->is_draining()) ||
         (session_ != nullptr && session_->is_draining());
}

bool Algorithms::has_ended_broadcasts() const {
  return multicast_ != nullptr && multicast_->has_ended();
}

bool Algorithms::has_groups() const {
  return (multicast_ != nullptr && multicast_->has_groups()) ||
         (session_ != nullptr && session_->has_groups());
}

bool Algorithms::tear_down() {
  const bool is_reduced = session_ == nullptr || session_->tear_down();
  return (multicast_ == nullptr || multicast_->tear_down()) && is_reduced;
}

bool Algorithms::has_given_up() const { return session_ != nullptr && session_->has_given_up(); }

void Algorithms::detach() {
  if (multicast_ != nullptr) multicast_->detach();
  if (session_ != nullptr) session_->detach();
  if (reducer_ != nullptr) reducer_->detach();
  if (other_reducer_ != nullptr) other_reducer_->detach();
  if (long_reducer_ != nullptr) long_reducer_->detach();
  if (other_long_reducer_ != nullptr) other_long_reducer_->detach();
}

}  // namespace cepheus::coll
