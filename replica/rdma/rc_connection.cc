// The queue pair is made in INIT; connect() takes it to RTR and RTS in one call. Both ends take the
// smaller path MTU. Every request is signaled, so completions count the free places. No receive is
// ever posted: all operations are one-sided. A silent peer fails the connection after kRetries
// time-outs.
#include "replica/rdma/rc_connection.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "replica/control/volume_key.h"

namespace cepheus::replica {
namespace {

constexpr std::uint8_t kReadsAtOnce = 16;  // limit of nearly all devices
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kRnrTimer = 1;  // 10 us
constexpr std::uint8_t kHops = 64;

// IBV_MTU_256 = 1 ... IBV_MTU_4096 = 5
ibv_mtu code_of(std::uint32_t path_mtu) {
  return static_cast<ibv_mtu>(std::bit_width(path_mtu) - std::bit_width(128u));
}

// ::ffff:a.b.c.d
ibv_gid gid_of(std::uint32_t ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const std::uint32_t bytes = htonl(ipv4);
  std::memcpy(gid.raw + 12, &bytes, sizeof bytes);
  return gid;
}

wire::Error failed(const char* what, int error) {
  return {wire::ErrorCode::kUnavailable,
          std::string("a connection for reads: ") + what + ": " + std::strerror(error)};
}

}  // namespace

wire::Result<std::unique_ptr<RcConnection>> RcConnection::create(RdmaPort& port, unsigned depth) {
  std::unique_ptr<RcConnection> made(new RcConnection(port));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = port.queue();
  init.cap.max_send_wr = std::max(depth, 1u);
  init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.sq_sig_all = 1;
  made->pair_.reset(ibv_create_qp(port.verbs().pd, &init));
  if (!made->pair_) return tl::unexpected(failed("no queue pair", errno));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port.verbs().port;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = ibv_modify_qp(made->pair_.get(), &attr, mask)) {
    return tl::unexpected(failed("INIT", error));
  }
  made->name_ = {port.attributes().ipv4, made->pair_->qp_num,
                 static_cast<std::uint32_t>(random_number() & 0xFFFFFF),
                 port.attributes().path_mtu};
  return made;
}

wire::Result<void> RcConnection::connect(const RcName& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = code_of(std::min(name_.path_mtu, peer.path_mtu));
  attr.dest_qp_num = peer.qpn;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = kReadsAtOnce;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = port_.verbs().port;
  attr.ah_attr.sl = static_cast<std::uint8_t>(port_.attributes().service_level);
  attr.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(port_.attributes().traffic_class);
  attr.ah_attr.grh.flow_label = port_.attributes().flow_label;
  attr.ah_attr.grh.dgid = gid_of(peer.ipv4);
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.attributes().gid_index);
  attr.ah_attr.grh.hop_limit = kHops;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_modify_qp(pair_.get(), &attr, mask)) {
    return tl::unexpected(failed("RTR", error));
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = name_.psn;
  attr.timeout = static_cast<std::uint8_t>(port_.attributes().ack_timeout);
  attr.retry_cnt = kRetries;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = kReadsAtOnce;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int error = ibv_modify_qp(pair_.get(), &attr, mask)) {
    return tl::unexpected(failed("RTS", error));
  }
  return {};
}

bool RcConnection::post(std::uint64_t id, ibv_wr_opcode opcode, const Piece& piece) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(piece.address),
              static_cast<std::uint32_t>(piece.length), piece.lkey};
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = piece.remote;
  wr.wr.rdma.rkey = piece.rkey;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair_.get(), &wr, &bad) == 0;
}

}  // namespace cepheus::replica
