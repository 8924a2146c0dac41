// The engine's types for verbs objects: no libibverbs header reaches the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/types.h"

namespace cepheus::rnic {

using wire::Duration;
using wire::Instant;
using wire::Ipv4;
using wire::Psn;
using wire::Qpn;

// Numbers that name a completion queue, protection domain or similar; the caller chooses them.
using CqId = std::uint32_t;
using PdId = std::uint32_t;
using SrqId = std::uint32_t;  // a shared receive queue; the engine chooses the number

enum class QpType : std::uint8_t { kRc, kUc, kUd };
// IBTA 10.3.1. SQE, an error of the send queue alone, exists for UC and UD.
enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
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

// RC gives all, UC SEND and WRITE with or without immediate, UD SEND with or without immediate
// (IBTA table 35).
enum class SendOp : std::uint8_t {
  kSend,
  kSendImm,
  kWrite,
  kWriteImm,
  kSendInvalidate,
  kRead,
  kCompareSwap,
  kFetchAdd,
};

// Destination of a datagram.
struct AddressVector {
  Ipv4 ip{};
  std::uint8_t traffic_class = 0;  // IP TOS
  std::uint8_t hop_limit = 64;
};

// How an access to a program's memory ends.
enum class AccessEnd : std::uint8_t {
  kDone,
  kUnmapped,
  kProtected,  // mapped without the right to read or write, as by mprotect()
  kTruncated,  // behind the end of the file that is mapped there, or its disk is full or fails
};

// Runs work(argument), which touches `bytes` bytes of a program's memory. Not kDone: the work ended
// somewhere in the middle.
using MemoryGuard = AccessEnd (*)(const void* memory, std::size_t bytes, void (*work)(void*),
                                  void* argument);

// A region with bytes that the NIC could not access.
struct LostRegion {
  const void* memory = nullptr;
  std::uint64_t length = 0;
  AccessEnd why = AccessEnd::kUnmapped;
};

struct SendWr {
  std::uint64_t wr_id = 0;
  SendOp op = SendOp::kSend;
  bool signaled = false;
  bool solicited = false;
  bool inline_data = false;  // sges point to plain memory, copied before post_send returns; not
                             // for READ and atomics
  bool fence = false;        // RC: starts when all READs and atomics before it are complete
  std::uint32_t imm = 0;     // value of the big-endian immediate
  std::uint32_t invalidate_rkey = 0;  // kSendInvalidate: the peer's key to revoke
  std::uint64_t remote_address = 0;   // WRITE, READ, atomics
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0;  // kCompareSwap: expected value; kFetchAdd: addend
  std::uint64_t swap = 0;         // kCompareSwap: new value
  AddressVector destination{};    // UD
  Qpn remote_qpn{};               // UD
  std::uint32_t qkey = 0;         // UD; with its highest bit set the QP's own is sent (IBTA 10.2.5)
  // Data to send, or the place of a READ's result; of an atomic: 8 bytes in the host's order.
  std::span<const Sge> sges = {};
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
  kBadResponse,
  kLocalAccess,  // of a receive: the peer's WRITE with immediate may not access its target
};
const char* to_string(WcStatus);

enum class WcOpcode : std::uint8_t {
  kSend,
  kWrite,
  kRecv,
  kRecvWriteImm,
  kRead,
  kCompareSwap,
  kFetchAdd,
};

struct Completion {
  CqId cq = 0;
  std::uint32_t requests = 1;  // that end with it: its own, and unsignaled ones before it
  void* owner = nullptr;       // of its work queue: QpInit's send_owner or recv_owner
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  bool has_imm = false;
  bool has_grh = false;  // UD: the buffer's first kGrhBytes are the packet's network header
  bool solicited = false;
  std::uint32_t byte_len = 0;  // of a receive of UD with kGrhBytes
  std::uint32_t imm = 0;       // the immediate
  Qpn qpn;
  Qpn source_qpn{};  // of receives: the sender
};

// A datagram's receive buffer starts with room for a GRH; over IPv4 the packet's IP header fills
// its last 20 bytes and the first 20 are undefined, here 0 (IBTA Annex A17.4.5.1).
inline constexpr std::uint32_t kGrhBytes = 40;

enum class AsyncEventKind : std::uint8_t {
  kQpFatal,
  kQpAccessError,
  kQpRequestError,
  kCommEstablished,
  kSqDrained,
  kLastWqeReached,   // a QP in ERR will take no more receives from its SRQ
  kSrqLimitReached,  // `srq` has fewer receives than its armed limit; `qpn` is unset
};
struct AsyncEvent {
  AsyncEventKind kind;
  Qpn qpn;
  SrqId srq = 0;
};

// Outputs of one engine call; the caller owns it, reads it, clears it and passes it again.
struct NicOutput {
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

// Limits of create_qp and of a message (IBTA 9.7.7: 2^31 bytes).
inline constexpr QpCap kMaxCap{.max_send_wr = 32768,
                               .max_recv_wr = 32768,
                               .max_send_sge = 32,
                               .max_recv_sge = 32,
                               .max_inline = 1024};
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31;
inline constexpr std::uint8_t kInfiniteRnrRetry = 7;
// READs and atomics outstanding at once, each way.
inline constexpr std::uint8_t kMaxRdAtomic = 16;

struct QpInit {
  QpType type = QpType::kRc;
  PdId pd = 0;
  CqId send_cq = 0;
  CqId recv_cq = 0;
  QpCap cap;
  bool signal_all = false;
  std::optional<SrqId> srq = {};  // then cap.max_recv_wr and max_recv_sge are ignored
  // The driver's own, given back in each completion.
  void* send_owner = nullptr;
  void* recv_owner = nullptr;
};

// Shared receive queues take at most kMaxCap.max_recv_wr and max_recv_sge.
struct SrqInit {
  PdId pd = 0;
  std::uint32_t max_wr = 1;
  std::uint32_t max_sge = 1;
};

struct SrqAttr {
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t limit = 0;  // 0: not armed
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
  std::uint32_t access = 0;             // Access bits that remote operations may use
  std::uint8_t timeout_code = 14;       // local ACK timeout: 4.096 us * 2^code, 0 = never
  std::uint8_t retry_count = 7;         // 0..7
  std::uint8_t rnr_retry = 7;           // 7: for ever
  std::uint8_t min_rnr_timer = 12;      // code sent in our RNR NAKs
  std::uint8_t max_rd_atomic = 0;       // READs and atomics that we may have outstanding
  std::uint8_t max_dest_rd_atomic = 0;  // ... that the peer may have outstanding here
  std::uint32_t qkey = 0;               // UD
  bool drained_event = false;           // to SQD: with a kSqDrained event once it is drained
  bool is_draining = false;             // query_qp: in SQD, and not drained yet
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
  kAttrMaxRdAtomic = 4096,      // RC; optional on the way to RTS, in RTS and SQD
  kAttrMaxDestRdAtomic = 8192,  // RC; optional on the way to RTR
  kAttrQkey = 16384,            // UD; required on the way to INIT
  kAttrDrainedEvent = 32768,    // optional from RTS to SQD
};

}  // namespace cepheus::rnic
