// The writer: writes by all ways in turns, and reads the data back.
#pragma once

#include <mcast/wait.h>
#include <mcast/write.h>
#include <poll.h>

#include "bench/storage/measurement.h"
#include "bench/storage/party.h"

namespace cepheus::bench {

class Writer : Party {
 public:
  using Party::Party;

  void run() {
    std::vector<pid_t> processes{getpid()};
    if (options_.switch_pid != 0) processes.push_back(options_.switch_pid);
    for (unsigned r = 1; r <= options_.replicas; ++r) {
      to_.push_back(meet(r, "write"));
      processes.push_back(peer_pid_);
    }
    head_ = meet(1, "chain");
    tail_ = meet(options_.replicas, "tail");
    join_group();
    for (unsigned r = 1; r <= options_.replicas; ++r) {
      meeting_.find<char>("ready" + std::to_string(r), [&] { rest(); });
    }
    run_rounds([&](unsigned round) {
      for (const std::string& one : options_.cases) {
        const Case of = Case::parse(one, kMostDepth, kScratch);
        for (unsigned way = 0; way < std::size(kWays); ++way) {
          // In another order each round, so that none is always the first.
          measure(static_cast<Way>((way + round) % std::size(kWays)), of, processes);
        }
      }
    });
    meeting_.leave("stop", char{1});
    mcast_group_destroy(group_);
  }

 private:
  enum class Way { kMulticast, kOne, kEach, kChain };
  static constexpr const char* kWays[] = {"multicast", "one", "each", "chain"};
  static constexpr std::size_t kScratch = kMemory / 2;
  struct Slot {
    mcast_op_t op{};
    Writer* writer = nullptr;
    unsigned lacking = 0;
    Clock::time_point start;
  };

  void measure(Way way, const Case& of, const std::vector<pid_t>& processes) {
    const unsigned depth = of.depth;
    way_ = way, size_ = of.size;
    fill(depth);
    latencies_.clear();
    for (unsigned i = 0; i < depth; ++i) start(i);  // the first ones warm up
    const std::size_t warm = std::max<std::size_t>(depth, 20);
    while (latencies_.size() < warm) progress(true);
    const double seconds = write_for([&] { progress(true); });
    std::vector<double> all = latencies_;
    // CPU time is measured in separate WRITEs between which the writer sleeps: polling is not work.
    const CpuTime before = CpuTime::now(processes);
    write_for([&] {
      if (progress(true) == 0) sleep();
    });
    const CpuTime cpu = CpuTime::now(processes).of_each(before, latencies_.size());
    while (under_way_ > 0) progress(false);
    verify(depth);
    print_row(kWays[static_cast<int>(way)], of, std::move(all), seconds, cpu);
  }
  // How long it took, in seconds; `latencies_` are of the WRITEs that ended meanwhile.
  template <typename Step>
  double write_for(Step step) {
    latencies_.clear();
    const auto begin = Clock::now(),
               end = begin + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options_.seconds));
    auto now = begin;
    while (now < end || latencies_.size() < 5) step(), now = Clock::now();
    return std::chrono::duration<double>(now - begin).count();
  }

  void start(unsigned i) {
    Slot& slot = slots_[i];
    const std::size_t at = i * size_;
    slot.start = Clock::now();
    slot.lacking = 1;
    ++under_way_;
    switch (way_) {
      case Way::kMulticast:
        slot.writer = this;
        slot.op = {[](mcast_op_t* op, mcast_status_t status, size_t, uint32_t) {
                     Slot* const self = static_cast<Slot*>(op->user);
                     check(status, "mcast_write");
                     self->writer->finish(*self);
                   },
                   &slot};
        check(mcast_write(group_, device_->memory + at, size_, region(), kRegion, at, nullptr,
                          &slot.op),
              "mcast_write");
        break;
      case Way::kEach:
        slot.lacking = options_.replicas;
        for (const auto& qp : to_) qp->post(IBV_WR_RDMA_WRITE, at, at, size_, i);
        break;
      case Way::kOne:
        to_[0]->post(IBV_WR_RDMA_WRITE, at, at, size_, i);
        break;
      case Way::kChain:
        head_->post(IBV_WR_RDMA_WRITE_WITH_IMM, at, at, size_, i);
        break;
    }
  }
  void finish(Slot& slot) {
    if (--slot.lacking > 0) return;
    latencies_.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - slot.start).count());
    --under_way_;
    done_.push_back(static_cast<unsigned>(&slot - slots_));
  }
  // The number of things done.
  unsigned progress(bool again) {
    const unsigned count = way_ == Way::kMulticast ? mcast_progress(context_) : take_completions();
    if (again) {
      for (const unsigned i : done_) start(i);
    }
    done_.clear();
    return count;
  }
  unsigned take_completions() {
    ibv_wc wc[16];
    const int count = ibv_poll_cq(cq_, 16, wc);
    for (int i = 0; i < count; ++i) {
      require(wc[i].status == IBV_WC_SUCCESS,
              std::string("a WRITE failed: ") + ibv_wc_status_str(wc[i].status));
      if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        tail_->post_receive();
        finish(slots_[wc[i].imm_data]);
      } else if (way_ != Way::kChain) {
        finish(slots_[wc[i].wr_id]);
      }
    }
    return static_cast<unsigned>(count);
  }
  // Waits for an event, at most 10 ms: libmcast's control work has no wake-up.
  void sleep() {
    const bool is_multicast = way_ == Way::kMulticast;
    pollfd fd{device_->channel->fd, POLLIN, 0};
    if (is_multicast) {
      check(mcast_context_arm(context_, &fd.fd), "mcast_context_arm");
    } else {
      require(ibv_req_notify_cq(cq_, 0) == 0, "no notification");
    }
    if (progress(true) > 0 || poll(&fd, 1, 10) != 1 || is_multicast) return;
    ibv_cq* which = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(device_->channel, &which, &context) == 0) ibv_ack_cq_events(which, 1);
  }
  mcast_mem_h region() {
    if (mem_ == nullptr)
      check(mcast_mem_register(context_, device_->memory, kMemory, &mem_), "mcast_mem_register");
    return mem_;
  }

  // Words that no earlier measurement wrote there.
  void fill(unsigned depth) {
    for (std::size_t at = 0; at < size_ * depth; at += 8) {
      const std::uint64_t word = ++words_ * 0x9E3779B97F4A7C15u;
      std::memcpy(device_->memory + at, &word, 8);
    }
  }
  void verify(unsigned depth) {
    const unsigned written = way_ == Way::kOne ? 1 : options_.replicas;
    for (unsigned r = 0; r < written; ++r) {
      for (unsigned i = 0; i < depth; ++i) {
        to_[r]->post(IBV_WR_RDMA_READ, kScratch, i * size_, size_, 0);
        ibv_wc wc{};
        do {
          while (ibv_poll_cq(cq_, 1, &wc) == 0) {
          }
          require(wc.status == IBV_WC_SUCCESS,
                  std::string("a READ failed: ") + ibv_wc_status_str(wc.status));
        } while (wc.opcode != IBV_WC_RDMA_READ);
        require(std::memcmp(device_->memory + kScratch, device_->memory + i * size_, size_) == 0,
                "replica " + std::to_string(r + 1) +
                    " has other data than was written to it: " + kWays[static_cast<int>(way_)]);
      }
    }
  }

  std::vector<std::unique_ptr<QueuePair>> to_;
  std::unique_ptr<QueuePair> head_, tail_;
  mcast_mem_h mem_ = nullptr;
  Way way_{};
  std::size_t size_ = 0;
  Slot slots_[kMostDepth];
  unsigned under_way_ = 0;
  std::vector<unsigned> done_;
  std::vector<double> latencies_;
  std::uint64_t words_ = 0;
};

}  // namespace cepheus::bench
