// What the writer and its replicas both have: a group of all, and connections in pairs.
#pragma once

#include <mcast/query.h>
#include <mcast/write.h>

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
    mcast_member_t own{};
    check(mcast_group_member(group_, &own), "mcast_group_member");
    meeting_.leave("member" + std::to_string(options_.rank), own);
    if (options_.rank == 0) {
      std::vector<mcast_member_t> members{own};
      for (unsigned r = 1; r <= options_.replicas; ++r) {
        members.push_back(
            meeting_.find<mcast_member_t>("member" + std::to_string(r), [&] { rest(); }));
      }
      check(mcast_group_lead(group_, members.data(), members.size()), "mcast_group_lead");
    }
    mcast_status_t status{};
    while ((status = mcast_group_test(group_)) == MCAST_INPROGRESS) rest();
    check(status, "the group");
    // Connected pairs first, then the group: whoever is active here has all.
    meeting_.leave("ready" + std::to_string(options_.rank), char{1});
  }
  void rest() {
    if (mcast_progress(context_) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  Options options_;
  Meeting meeting_;
  mcast_context_h context_ = nullptr;
  mcast_group_h group_ = nullptr;
  std::unique_ptr<Device> device_;
  ibv_cq* cq_ = nullptr;
  pid_t peer_pid_ = 0;
};

}  // namespace cepheus::bench
