// The engine's own words for verbs objects: no libibverbs header reaches the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmcast/wire/types.h"

namespace cepheus::rnic {

using wire::Duration;
using wire::Instant;
using wire::Ipv4;
using wire::Psn;
using wire::Qpn;

// Identifies a completion queue, protection domain or the like to the engine: the face's own
// numbers.
using CqId = std::uint32_t;
using PdId = std::uint32_t;

enum class QpType : std::uint8_t { kRc };
enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kErr };  // IBTA 10.3.1
const char* to_string(QpState);

// Access rights of memory regions and QPs (IBTA 10.6.3); bit values as in ibv_access_flags.
enum Access : std::uint32_t {
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
};

struct Sge {
  std::uint64_t address = 0;  // virtual address in the region's iova space
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

enum class SendOp : std::uint8_t { kSend, kSendImm, kWrite, kWriteImm };

struct SendWr {
  std::uint64_t wr_id = 0;
  SendOp op = SendOp::kSend;
  bool signaled = false;
  bool solicited = false;
  bool inline_data = false;          // sges point to plain memory, copied before post_send returns
  std::uint32_t imm = 0;             // value of the big-endian immediate
  std::uint64_t remote_address = 0;  // writes
  std::uint32_t rkey = 0;
  std::span<const Sge> sges;
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;
};

enum class WcStatus : std::uint8_t {  // as ibv_wc_status, by meaning
  kSuccess,
  kLocalLength,
  kLocalQpOperation,
  kLocalProtection,
  kFlush,
  kRemoteInvalidRequest,
  kRemoteAccess,
  kRemoteOperation,
  kRetryExceeded,
  kRnrRetryExceeded,
};
const char* to_string(WcStatus);

enum class WcOpcode : std::uint8_t { kSend, kWrite, kRecv, kRecvWriteImm };

struct Completion {
  CqId cq = 0;
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  bool has_imm = false;
  bool solicited = false;
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;
  Qpn qpn;
};

enum class AsyncEventKind : std::uint8_t {
  kQpFatal,
  kQpAccessError,
  kQpRequestError,
  kCommEstablished,
  kSqDrained
};
struct AsyncEvent {
  AsyncEventKind kind;
  Qpn qpn;
};

// Outputs of one engine call; the caller owns it, reads it, clears it and passes it again.
struct Actions {
  std::vector<Completion> completions;
  std::vector<AsyncEvent> events;
  void clear() {
    completions.clear();
    events.clear();
  }
};

struct QpCap {
  std::uint32_t max_send_wr = 1;
  std::uint32_t max_recv_wr = 1;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline = 0;
};

// What create_qp grants at most, and what a message may carry (IBTA 9.7.7: 2^31 bytes).
inline constexpr QpCap kMaxCap{.max_send_wr = 32768,
                               .max_recv_wr = 32768,
                               .max_send_sge = 32,
                               .max_recv_sge = 32,
                               .max_inline = 1024};
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31;
inline constexpr std::uint8_t kInfiniteRnrRetry = 7;

struct QpInit {
  QpType type = QpType::kRc;
  PdId pd = 0;
  CqId send_cq = 0;
  CqId recv_cq = 0;
  QpCap cap;
  bool signal_all = false;
};

struct QpAttr {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;  // modify_qp: only with kAttrCurrentState
  std::uint32_t path_mtu = 1024;            // bytes
  Qpn remote_qpn;
  Psn rq_psn;
  Psn sq_psn;
  Ipv4 remote_ip;
  std::uint8_t traffic_class = 0;  // IP TOS
  std::uint8_t hop_limit = 64;
  std::uint32_t access = 0;         // Access bits that remote operations may use
  std::uint8_t timeout_code = 14;   // local ACK timeout: 4.096 us * 2^code, 0 = never
  std::uint8_t retry_count = 7;     // 0..7
  std::uint8_t rnr_retry = 7;       // 7: for ever
  std::uint8_t min_rnr_timer = 12;  // code sent in our RNR NAKs
  QpCap cap;
};
enum QpAttrMask : std::uint32_t {
  kAttrState = 1,
  kAttrCurrentState = 2,
  kAttrPathMtu = 4,
  kAttrRemoteQpn = 8,
  kAttrRqPsn = 16,
  kAttrSqPsn = 32,
  kAttrAddress = 64,
  kAttrAccess = 128,
  kAttrTimeout = 256,
  kAttrRetryCount = 512,
  kAttrRnrRetry = 1024,
  kAttrMinRnrTimer = 2048,
};

}  // namespace cepheus::rnic
