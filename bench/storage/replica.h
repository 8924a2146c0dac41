// A replica: forwards WRITEs down the chain. Its NIC alone serves multicast and plain WRITEs.
#pragma once

#include <poll.h>

#include "bench/storage/party.h"

namespace cepheus::bench {

class Replica : Party {
 public:
  using Party::Party;
  // Serves until the writer is done. It sleeps while the chain has nothing for it: WRITEs are its NIC's work.
  void serve() {
    const unsigned own = options_.rank;
    const auto writer = meet(0, "write");
    const auto before = own == 1 ? meet(0, "chain") : meet(own - 1, "chain");
    const auto next = own == options_.replicas ? meet(0, "tail") : meet(own + 1, "chain");
    join_group();
    auto look_at = Clock::now();
    while (true) {
      if (!pass_on(*before, *next)) wait();
      if (Clock::now() < look_at) continue;
      look_at = Clock::now() + std::chrono::milliseconds(50);
      mcast_progress(context_);
      if (meeting_.has("stop")) break;
    }
    mcast_group_destroy(group_);
  }

 private:
  bool pass_on(QueuePair& before, QueuePair& next) {
    ibv_wc wc[16];
    const int count = ibv_poll_cq(cq_, 16, wc);
    for (int i = 0; i < count; ++i) {
      require(wc[i].status == IBV_WC_SUCCESS,
              std::string("the chain broke: ") + ibv_wc_status_str(wc[i].status));
      if (wc[i].opcode != IBV_WC_RECV_RDMA_WITH_IMM) continue;
      before.post_receive();
      const std::size_t length = wc[i].byte_len, at = wc[i].imm_data * length;
      const bool is_tail = options_.rank == options_.replicas;
      next.post(IBV_WR_RDMA_WRITE_WITH_IMM, at, at, is_tail ? 0 : length, wc[i].imm_data);
    }
    return count > 0;
  }
  void wait() {
    require(ibv_req_notify_cq(cq_, 0) == 0, "no notification");
    pollfd fd{device_->channel->fd, POLLIN, 0};
    // Completions before the request have no notification: the caller polls again first.
    if (is_armed_ && poll(&fd, 1, 50) == 1) {
      ibv_cq* which = nullptr;
      void* context = nullptr;
      if (ibv_get_cq_event(device_->channel, &which, &context) == 0) ibv_ack_cq_events(which, 1);
      is_armed_ = false;
    } else {
      is_armed_ = true;
    }
  }

  bool is_armed_ = false;
};

}  // namespace cepheus::bench
