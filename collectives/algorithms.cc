// place() chooses once for the communicator's life: multicast among all ranks, or among the hosts'
// leaders, or none. Only ranks that may be members have a Multicast. begin() reuses the same
// objects for each broadcast.
//
// If multicast does not serve, a blocking broadcast takes the saved function, and a non-blocking
// one goes down a tree.
#include "collectives/algorithms.h"

#include <utility>

#include "collectives/hosts_broadcast.h"
#include "collectives/multicast.h"

namespace cepheus::coll {

using Shape = Placement::Shape;

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
  if (team.self() >= 0) multicast_ = std::make_unique<Multicast>(team, std::move(called));
  if (hosts_) hosts_algorithm_ = std::make_unique<HostsBroadcast>(*hosts_, multicast_.get());
}

Algorithm& Algorithms::begin(Payload& payload, int root, bool blocking, std::string_view why) {
  if (!hosts_algorithm_) return begin_team(multicast_.get(), why, payload, root, blocking);
  hosts_algorithm_->begin(payload, root, blocking);
  return *hosts_algorithm_;
}

Algorithm& Algorithms::begin_other(Payload& payload, int root, bool blocking,
                                   std::string_view why) {
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
  if (multicast_ == nullptr) return false;
  multicast_->look_after();
  return multicast_->is_draining();
}

bool Algorithms::has_groups() const { return multicast_ != nullptr && multicast_->has_groups(); }

bool Algorithms::tear_down() { return multicast_ == nullptr || multicast_->tear_down(); }

void Algorithms::detach() {
  if (multicast_ != nullptr) multicast_->detach();
}

}  // namespace cepheus::coll
