// The common part of writer and replicas: a group of all, and connections in pairs.
#pragma once

#include <mcast/query.h>
#include <mcast/senders.h>

#include <memory>
#include <thread>
#include <vector>

#include "bench/storage/connection.h"

namespace cepheus::bench {

inline constexpr std::uint16_t kRegion = 1;

inline void check(mcast_status_t status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + mcast_last_error());
}

struct Options {
  unsigned rank = 0, replicas = 3;
  bool sender_group = false;
  std::string directory;
  int switch_pid = 0;
  double seconds = 0.3;
  std::vector<std::string> cases;
};

class Party {
 public:
  explicit Party(const Options& options) : options_(options), meeting_(options.directory) {
    mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
    params.register_timeout_ms = params.progress_timeout_ms = 60'000;
    check(mcast_context_create(&params, &context_), "mcast_context_create");
    mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
    check(mcast_context_query(context_, &attr), "mcast_context_query");
    device_ = std::make_unique<Device>(attr);
    cq_ = ibv_create_cq(device_->context, 4 * kQueue, nullptr, device_->channel, 0);
    require(cq_ != nullptr, "no completion queue");
    mcast_group_params_t group = MCAST_GROUP_PARAMS_INIT;
    group.lane = MCAST_LANE_BULK;
    group.send_depth = kMostDepth;
    group.sender_group = options.sender_group ? 1 : 0;
    if (options.sender_group && options.rank == 0) group.virtual_qpn = MCAST_CHOSEN_QPN_FIRST;
    check(mcast_group_create(context_, &group, &group_), "mcast_group_create");
    check(mcast_region_publish(group_, kRegion, device_->memory, kMemory), "mcast_region_publish");
  }
  Party(const Party&) = delete;
  Party& operator=(const Party&) = delete;

 protected:
  // Connects this process's queue pair for `peer` with the peer's one for this process.
  std::unique_ptr<QueuePair> meet(unsigned peer, const std::string& purpose) {
    auto qp = std::make_unique<QueuePair>(*device_, cq_, 1000 + options_.rank);
    const auto file = [&](unsigned of, unsigned with) {
      return purpose + std::to_string(of) + "-" + std::to_string(with);
    };
    meeting_.leave(file(options_.rank, peer), qp->name());
    const auto name = meeting_.find<Name>(file(peer, options_.rank), [&] { rest(); });
    qp->connect(name);
    peer_pid_ = name.pid;
    return qp;
  }
  void join_group() {
    Membership own{};
    std::size_t regions = 1;
    check(mcast_group_member(group_, &own.member), "mcast_group_member");
    if (options_.sender_group)
      check(mcast_group_regions(group_, &own.region, &regions), "mcast_group_regions");
    meeting_.leave("member" + std::to_string(options_.rank), own);
    if (options_.rank == 0) lead(own.member);
    mcast_status_t status{};
    while ((status = mcast_group_test(group_)) == MCAST_INPROGRESS) rest();
    check(status, "the group");
    // Connects the pairs first, then the group, so an active group means that all is connected.
    meeting_.leave("ready" + std::to_string(options_.rank), char{1});
  }
  void lead(const mcast_member_t& own) {
    std::vector<mcast_member_t> members{own};
    std::vector<mcast_region_t> regions;
    for (unsigned r = 1; r <= options_.replicas; ++r) {
      const auto one = meeting_.find<Membership>("member" + std::to_string(r), [&] { rest(); });
      members.push_back(one.member);
      regions.push_back(one.region);
    }
    if (options_.sender_group) {
      check(mcast_group_lead_regions(group_, members.data(), members.size(), regions.data(),
                                     regions.size()),
            "mcast_group_lead_regions");
    } else {
      check(mcast_group_lead(group_, members.data(), members.size()), "mcast_group_lead");
    }
  }
  void rest() {
    if (mcast_progress(context_) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  // `region` is of sender groups: their sender brings it to the switches.
  struct Membership {
    mcast_member_t member;
    mcast_region_t region;
  };

  Options options_;
  Meeting meeting_;
  mcast_context_h context_ = nullptr;
  mcast_group_h group_ = nullptr;
  std::unique_ptr<Device> device_;
  ibv_cq* cq_ = nullptr;
  pid_t peer_pid_ = 0;
};

}  // namespace cepheus::bench
