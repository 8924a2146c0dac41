// Rank 0 gathers identities, compares settings and GPU runtimes, places the ranks, and sends the
// places down the tree. If ranks differ in settings, or one has a GPU runtime that can't be
// queried, no rank multicasts and the reason names a rank.
//
// All ranks get the same placement, or the point-to-point layer failed: then this rank has none. A
// reason is cut at kReason bytes. The memory for messages is freed at the end.
#include "collectives/group/host_discovery.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/core/parameters.h"
#include "collectives/group/gpu_runtime.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {

namespace {

// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 14695981039346656037u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return value;
}

// Identifies this machine since its start. Containers with other host names are other machines.
std::uint64_t machine() {
  static const std::uint64_t value = [] {
    char name[256] = "";
    (void)gethostname(name, sizeof name - 1);
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return hash(std::string(name) + '\n' + boot);
  }();
  return value;
}

bool is_on_this_machine(const Team& team) {
  if (host::is_dynamic(team.comm())) return false;
  for (int member = 0; member < team.size(); ++member) {
    if (!host::shares_machine(team.comm(), team.rank_of(member))) return false;
  }
  return true;
}

// By cepheus-run's setting: the ranks of a job share hosts in a row, and the first of each has the
// NIC.
Identity given_identity(host::PlaceInJob place, int ranks_per_host) {
  const auto per_host = static_cast<std::uint32_t>(ranks_per_host);
  Identity identity{std::uint64_t{place.job} << 32 | place.rank / per_host,
                    place.rank % per_host == 0, 0, ""};
  snprintf(identity.reason, sizeof identity.reason,
           "rank %u of its job, which has this host's NIC, is not in the communicator",
           place.rank - place.rank % per_host);
  return identity;
}

// A host is a NIC's address, even where ranks share a machine.
bool is_by_nic() {
  return parameters().ranks_per_host < 0 || parameters().chosen_mode() == Mode::kRequire;
}

Identity own_identity(bool again) {
  std::string why;
  Transport& transport = Transport::instance();
  transport.add_group();  // none; it keeps the port open meanwhile
  const mcast_status_t status = transport.open(why, again);
  const uint32_t address = transport.host_address();
  transport.remove_group();
  Identity identity{machine(), status == MCAST_OK, 0, ""};
  if (is_by_nic())
    identity.host = address != 0 ? address : machine() ^ static_cast<std::uint64_t>(getpid());
  snprintf(identity.reason, sizeof identity.reason, "%s", why.c_str());
  return identity;
}

}  // namespace

bool HostDiscovery::is_known_to_all() {
  const int ranks_per_host = parameters().ranks_per_host;
  std::vector<Identity> identities;
  if (ranks_per_host > 0) {
    for (int member = 0; member < team_.size(); ++member) {
      identities.push_back(
          given_identity(host::place_in_job(team_.comm(), team_.rank_of(member)), ranks_per_host));
    }
  } else if (!is_by_nic() && is_on_this_machine(team_)) {
    identities.assign(static_cast<std::size_t>(team_.size()), Identity{machine(), 0, 0, ""});
  } else {
    return false;
  }
  const Placement placement = Placement::of(identities);
  if (placement.may_multicast() && !host::knows_device_memory()) return false;
  keep(placement);
  if (ranks_per_host == 0) {
    placement_.reason = "all ranks are on one machine, where shared memory is faster; " +
                        host::parameter("ranks_per_host") + " = 1 makes each a host of its own";
  }
  state_ = State::kDone;
  return true;
}

// Ranks are read only where some share a host.
void HostDiscovery::keep(Placement placement) {
  placement_ = std::move(placement);
  if (placement_.shape != Placement::Shape::kHosts) placement_.forget_ranks();
}

void HostDiscovery::again() {
  state_ = State::kNew;
  again_ = true;
  placement_ = {};
}

Code HostDiscovery::start() {
  requested_ = true;
  const int ranks_per_host = parameters().ranks_per_host;
  own_ = ranks_per_host > 0
             ? given_identity(host::place_in_job(team_.comm(), team_.rank_of(team_.self())),
                              ranks_per_host)
             : own_identity(again_);
  own_.settings = parameters().fingerprint();
  if (!host::knows_device_memory())
    snprintf(own_.gpu_runtime, sizeof own_.gpu_runtime, "%s", loaded_gpu_runtime().c_str());
  message_.assign(message_bytes(), 0);
  state_ = State::kGathering;
  if (!team_.is_leader()) {
    const Code rc = messages_.send(&own_, sizeof own_, Team::kLeader, Tag::kArrange, team_);
    if (rc != Code::kDone) return rc;
    return messages_.receive(message_.data(), message_.size(), tree().parent(), Tag::kPlaces,
                             team_);
  }
  identities_.assign(static_cast<std::size_t>(team_.size()), own_);
  Code rc = Code::kDone;
  for (int member = 1; member < team_.size() && rc == Code::kDone; ++member) {
    rc = messages_.receive(&identities_[static_cast<std::size_t>(member)], sizeof(Identity), member,
                           Tag::kArrange, team_);
  }
  return rc;
}

// Ranks of other settings would choose other ways for the same broadcast.
void HostDiscovery::compare_settings() {
  const auto other = std::ranges::find_if(
      identities_, [&](const Identity& each) { return each.settings != own_.settings; });
  if (other == identities_.end()) return;
  refuse("rank " + std::to_string(other - identities_.begin()) + " has other parameters (" +
         host::parameter("*") + ")");
}

// The NIC, and copies by the CPU, would read that GPU's memory.
void HostDiscovery::look_for_gpu_runtimes() {
  const auto with = std::ranges::find_if(
      identities_, [](const Identity& each) { return each.gpu_runtime[0] != '\0'; });
  if (with == identities_.end()) return;
  refuse("rank " + std::to_string(with - identities_.begin()) + " has loaded " + with->gpu_runtime +
         ": Cepheus can't ask it for the type of a buffer's memory");
}

// No rank multicasts.
void HostDiscovery::refuse(const std::string& why) {
  for (Identity& each : identities_) {
    each.can_lead = 0;
    snprintf(each.reason, sizeof each.reason, "%s", why.c_str());
  }
}

// Rank 0: all identities are here.
void HostDiscovery::place() {
  compare_settings();
  look_for_gpu_runtimes();
  const Placement placement = Placement::of(identities_);
  snprintf(message_.data(), kReason, "%s", placement.reason.c_str());
  for (std::size_t rank = 0; rank < identities_.size(); ++rank) {
    const Place place{placement.host_of[rank] * 2 + (identities_[rank].can_lead != 0 ? 1 : 0)};
    std::memcpy(message_.data() + kReason + rank * sizeof place, &place, sizeof place);
  }
  identities_ = std::vector<Identity>();  // "= {}" would keep its memory
}

// Passes the places on, and takes them in.
Code HostDiscovery::send_places() {
  state_ = State::kSending;
  std::vector<Identity> ranks(static_cast<std::size_t>(team_.size()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Place place{};
    std::memcpy(&place, message_.data() + kReason + rank * sizeof place, sizeof place);
    ranks[rank].host = static_cast<std::uint64_t>(place.host_and_lead / 2);
    ranks[rank].can_lead = place.host_and_lead % 2;
  }
  keep(Placement::of(ranks));
  placement_.reason = message_.data();
  Code rc = Code::kDone;
  tree().children([&](int member) {
    if (rc == Code::kDone)
      rc = messages_.send(message_.data(), message_.size(), member, Tag::kPlaces, team_);
  });
  return rc;
}

bool HostDiscovery::progress() {
  Code error = state_ == State::kNew ? start() : Code::kDone;
  while (error == Code::kDone && state_ != State::kDone && messages_.test(error)) {
    if (error != Code::kDone) break;
    if (state_ == State::kSending) {
      state_ = State::kDone;
    } else {
      if (team_.is_leader()) place();
      error = send_places();
    }
  }
  if (error != Code::kDone) {
    placement_ = {};
    placement_.reason =
        std::string(host::implementation()) + "'s point-to-point layer failed during set-up";
    state_ = State::kDone;
  }
  if (state_ == State::kDone && error == Code::kDone) {
    message_ = std::vector<char>();
    messages_.shrink();
  }
  return state_ == State::kDone;
}

}  // namespace cepheus::coll
