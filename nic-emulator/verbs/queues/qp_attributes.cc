// The engine checks transitions and the attributes it knows. Here are the checks that only verbs
// make: P_Key index, port and the counts of READs are required (IBTA 11.2.5.2). Access flags other
// than the remote ones are dropped. Answers report a migrated path, as there is no alternate one.
#include "nic-emulator/verbs/queues/qp_attributes.h"

#include <optional>

#include "nic-emulator/verbs/device/limits.h"
#include "nic-emulator/verbs/queues/address_vector.h"

namespace cepheus::verbs {
namespace {

constexpr int kRefused = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_RATE_LIMIT;
constexpr unsigned kRemoteAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Both sides count the states alike.
static_assert(static_cast<int>(QpState::kReset) == IBV_QPS_RESET &&
              static_cast<int>(QpState::kInit) == IBV_QPS_INIT &&
              static_cast<int>(QpState::kRtr) == IBV_QPS_RTR &&
              static_cast<int>(QpState::kRts) == IBV_QPS_RTS &&
              static_cast<int>(QpState::kSqd) == IBV_QPS_SQD &&
              static_cast<int>(QpState::kSqe) == IBV_QPS_SQE &&
              static_cast<int>(QpState::kErr) == IBV_QPS_ERR);

std::optional<QpState> to_engine(ibv_qp_state state) {
  if (state > IBV_QPS_ERR) return std::nullopt;
  return static_cast<QpState>(state);
}

std::uint32_t mtu_bytes(ibv_mtu mtu) {
  return mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 ? 0 : 128u << mtu;
}

// Attributes that verbs require and the engine does not (IBTA 11.2.5.2).
int required_by_verbs(QpState from, QpState to, QpType type) {
  if (from == QpState::kReset && to == QpState::kInit) return IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (type != QpType::kRc) return 0;
  if (from == QpState::kInit && to == QpState::kRtr) return IBV_QP_MAX_DEST_RD_ATOMIC;
  if (from == QpState::kRtr && to == QpState::kRts) return IBV_QP_MAX_QP_RD_ATOMIC;
  return 0;
}

const char* check_verbs_only(const ibv_qp_attr& a, int mask) {
  if ((mask & kRefused) != 0) {
    return "alternate paths, resizing and rate limits are not supported";
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && a.pkey_index != 0) return "the only pkey_index is 0";
  if ((mask & IBV_QP_PORT) != 0 && a.port_num != kPort) return "the only port_num is 1";
  return nullptr;
}

const char* set_address(const ibv_ah_attr& ah, QpAttr& out) {
  AddressVector to;
  if (const char* problem = verbs::to_engine(ah, to); problem != nullptr) return problem;
  out.remote_ip = to.ip;
  out.traffic_class = to.traffic_class;
  out.hop_limit = to.hop_limit;
  return nullptr;
}

}  // namespace

wire::Result<QpChange> to_engine(const ibv_qp_attr& a, int mask, QpState from, QpType type) {
  if (const char* problem = check_verbs_only(a, mask)) return wire::invalid(problem);
  QpChange change;
  QpAttr& out = change.attributes;
  const auto take = [&](int verbs_bit, std::uint32_t bit) {
    if ((mask & verbs_bit) == 0) return false;
    change.mask |= bit;
    return true;
  };
  QpState to = from;
  if (take(IBV_QP_STATE, kAttrState)) {
    const auto state = to_engine(a.qp_state);
    if (!state) return wire::invalid("no such qp_state; use reset, init, rtr, rts, sqd or err");
    out.state = to = *state;
  }
  if (take(IBV_QP_CUR_STATE, kAttrCurrentState)) {
    const auto state = to_engine(a.cur_qp_state);
    if (!state) return wire::invalid("no such cur_qp_state");
    out.current_state = *state;
  }
  if (const int missing = required_by_verbs(from, to, type) & ~mask; missing != 0) {
    return wire::invalid(
        "pkey_index and port (init), max_dest_rd_atomic (rtr), max_rd_atomic (rts) are required");
  }
  if (take(IBV_QP_AV, kAttrAddress)) {
    if (const char* problem = set_address(a.ah_attr, out)) return wire::invalid(problem);
  }
  if (take(IBV_QP_PATH_MTU, kAttrPathMtu)) {
    out.path_mtu = mtu_bytes(a.path_mtu);
    if (out.path_mtu == 0) return wire::invalid("no such path_mtu");
  }
  if (take(IBV_QP_ACCESS_FLAGS, kAttrAccess)) out.access = a.qp_access_flags & kRemoteAccess;
  if (take(IBV_QP_DEST_QPN, kAttrRemoteQpn)) out.remote_qpn = Qpn(a.dest_qp_num);
  if (take(IBV_QP_RQ_PSN, kAttrRqPsn)) out.rq_psn = Psn(a.rq_psn);
  if (take(IBV_QP_SQ_PSN, kAttrSqPsn)) out.sq_psn = Psn(a.sq_psn);
  if (take(IBV_QP_TIMEOUT, kAttrTimeout)) out.timeout_code = a.timeout;
  if (take(IBV_QP_RETRY_CNT, kAttrRetryCount)) out.retry_count = a.retry_cnt;
  if (take(IBV_QP_RNR_RETRY, kAttrRnrRetry)) out.rnr_retry = a.rnr_retry;
  if (take(IBV_QP_MIN_RNR_TIMER, kAttrMinRnrTimer)) out.min_rnr_timer = a.min_rnr_timer;
  if (take(IBV_QP_MAX_QP_RD_ATOMIC, kAttrMaxRdAtomic)) out.max_rd_atomic = a.max_rd_atomic;
  if (take(IBV_QP_MAX_DEST_RD_ATOMIC, kAttrMaxDestRdAtomic)) {
    out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  }
  if (take(IBV_QP_QKEY, kAttrQkey)) out.qkey = a.qkey;
  if (take(IBV_QP_EN_SQD_ASYNC_NOTIFY, kAttrDrainedEvent)) {
    out.drained_event = a.en_sqd_async_notify != 0;
  }
  return change;
}

void to_verbs(const QpAttr& from, ibv_qp_attr& a) {
  a.qp_state = static_cast<ibv_qp_state>(from.state);
  a.cur_qp_state = a.qp_state;
  a.path_mtu = mtu_code(from.path_mtu);
  a.path_mig_state = IBV_MIG_MIGRATED;
  a.sq_draining = from.is_draining ? 1 : 0;
  a.rq_psn = from.rq_psn.value();
  a.sq_psn = from.sq_psn.value();
  a.dest_qp_num = from.remote_qpn.value();
  a.qp_access_flags = from.access;
  a.cap = to_verbs(from.cap);
  a.min_rnr_timer = from.min_rnr_timer;
  a.timeout = from.timeout_code;
  a.retry_cnt = from.retry_count;
  a.rnr_retry = from.rnr_retry;
  a.max_rd_atomic = from.max_rd_atomic;
  a.max_dest_rd_atomic = from.max_dest_rd_atomic;
  a.qkey = from.qkey;
}

ibv_mtu mtu_code(std::uint32_t bytes) {
  int code = IBV_MTU_4096;
  while (code > IBV_MTU_256 && bytes < 128u << code) --code;
  return static_cast<ibv_mtu>(code);
}

ibv_qp_cap to_verbs(const QpCap& cap) {
  return {cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline};
}

QpCap to_engine(const ibv_qp_cap& cap) {
  return {.max_send_wr = cap.max_send_wr,
          .max_recv_wr = cap.max_recv_wr,
          .max_send_sge = cap.max_send_sge,
          .max_recv_sge = cap.max_recv_sge,
          .max_inline = cap.max_inline_data};
}

}  // namespace cepheus::verbs
