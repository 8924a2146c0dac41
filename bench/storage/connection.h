// A device with memory for remote WRITEs, and reliable connections between such.
#pragma once

#include <infiniband/verbs.h>
#include <mcast/mcast.h>
#include <mcast/query.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "bench/storage/meeting.h"

namespace cepheus::bench {

inline constexpr std::size_t kMemory = 32 << 20;
inline constexpr unsigned kMostDepth = 64;
inline constexpr unsigned kQueue = 256;

struct Name {
  std::uint32_t qpn, psn, rkey;
  std::uint64_t address;
  ibv_gid gid;
  pid_t pid;
};

class Device {
 public:
  explicit Device(const mcast_context_attr_t& attr)
      : gid_index(attr.gid_index),
        memory(static_cast<std::uint8_t*>(std::aligned_alloc(4096, kMemory))) {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context == nullptr; ++i) {
      if (std::strcmp(ibv_get_device_name(list[i]), attr.device) == 0)
        context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    require(context != nullptr, "can't open the device");
    require(ibv_query_gid(context, 1, gid_index, &gid) == 0, "no GID");
    for (mtu = IBV_MTU_256; (128u << mtu) < attr.path_mtu; mtu = static_cast<ibv_mtu>(mtu + 1)) {
    }
    std::memset(memory, 0, kMemory);
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, kMemory,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    channel = ibv_create_comp_channel(context);
    require(mr != nullptr && channel != nullptr, "can't register memory");
  }

  ibv_context* context = nullptr;
  int gid_index;
  std::uint8_t* memory;
  ibv_gid gid{};
  ibv_mtu mtu{};
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  ibv_comp_channel* channel = nullptr;
};

// One end of a reliable connection.
class QueuePair {
 public:
  QueuePair(Device& device, ibv_cq* cq, std::uint32_t psn) : device_(device), psn_(psn) {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq;
    init.cap = {kQueue, kQueue, 1, 1, 0};
    qp_ = ibv_create_qp(device.pd, &init);
    require(qp_ != nullptr, "no queue pair");
  }
  Name name() const {
    return {qp_->qp_num, psn_,    device_.mr->rkey, reinterpret_cast<std::uint64_t>(device_.memory),
            device_.gid, getpid()};
  }
  void connect(const Name& peer) {
    peer_ = peer;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    modify(a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = device_.mtu;
    a.dest_qp_num = peer.qpn;
    a.rq_psn = peer.psn;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = peer.gid;
    a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_.gid_index);
    a.ah_attr.grh.hop_limit = 64;
    modify(a, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.sq_psn = psn_;
    a.max_rd_atomic = 1;
    modify(a, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                  IBV_QP_MAX_QP_RD_ATOMIC);
    for (unsigned i = 0; i < kMostDepth; ++i) post_receive();
  }
  void post(ibv_wr_opcode opcode, std::size_t local, std::size_t remote, std::size_t length,
            std::uint32_t imm) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(device_.memory) + local,
                static_cast<std::uint32_t>(length), device_.mr->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = imm;
    wr.sg_list = &sge;
    wr.num_sge = length > 0 ? 1 : 0;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = imm;
    wr.wr.rdma.remote_addr = peer_.address + remote;
    wr.wr.rdma.rkey = peer_.rkey;
    require(ibv_post_send(qp_, &wr, &bad) == 0, "a WRITE was refused");
  }
  void post_receive() {
    ibv_recv_wr wr{}, *bad = nullptr;
    require(ibv_post_recv(qp_, &wr, &bad) == 0, "a receive was refused");
  }

 private:
  void modify(ibv_qp_attr& a, int mask) {
    require(ibv_modify_qp(qp_, &a, IBV_QP_STATE | mask) == 0, "a queue pair can't be connected");
  }

  Device& device_;
  ibv_qp* qp_;
  std::uint32_t psn_;
  Name peer_{};
};

}  // namespace cepheus::bench
