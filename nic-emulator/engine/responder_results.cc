// READs and atomics at the responder: executed on arrival, answered when there is space.
//
// At most max_dest_rd_atomic new results wait. A READ's memory is read when its response leaves, so
// that a repeated READ sees the memory of then (IBTA 9.7.5.1); an atomic is executed once, and its
// result is remembered for repeats. A result acknowledges all before it, so no ACK is owed at the
// same time. If the memory of a first READ has gone meanwhile, the queue pair fails.
#include <algorithm>
#include <atomic>

#include "nic-emulator/engine/packet_out.h"
#include "nic-emulator/engine/responder.h"
#include "wire/situation.h"

namespace cepheus::rnic {
namespace {

std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return std::max(1u, static_cast<std::uint32_t>((std::uint64_t{length} + mtu - 1) / mtu));
}

PendingResult read_result(const wire::RoceHeaders& headers, std::uint32_t mtu) {
  PendingResult result;
  result.psn = headers.bth.psn;
  result.packets = packets_of(headers.reth.dma_length, mtu);
  result.address = headers.reth.virtual_address;
  result.rkey = headers.reth.rkey;
  result.length = headers.reth.dma_length;
  return result;
}

PendingResult atomic_result(Psn psn, std::uint64_t original) {
  PendingResult result;
  result.psn = psn;
  result.atomic = true;
  result.original = original;
  return result;
}

wire::Opcode response_opcode(const PendingResult& result) {
  if (result.atomic) return wire::Opcode::kRcAtomicAcknowledge;
  const bool last = result.packets == 1;
  if (!result.begun) {
    return last ? wire::Opcode::kRcReadResponseOnly : wire::Opcode::kRcReadResponseFirst;
  }
  return last ? wire::Opcode::kRcReadResponseLast : wire::Opcode::kRcReadResponseMiddle;
}

}  // namespace

// Executes a READ or atomic that is next in sequence. False: refused.
bool Responder::execute_fetch(const wire::RoceHeaders& headers, NicOutput& out) {
  const bool atomic = opcode_info(headers.bth.opcode).atomic_request;
  const bool allowed = (qp_.attr.access & (atomic ? kRemoteAtomic : kRemoteRead)) != 0;
  // A requester within its limit already has the oldest of the repeated results: its answer and the
  // repeated request crossed.
  while (results_.size() >= qp_.attr.max_dest_rd_atomic && !results_.empty() &&
         results_.front().repeated) {
    results_.pop();
  }
  if (!allowed || results_.size() >= qp_.attr.max_dest_rd_atomic) {
    return refuse(wire::NakCode::kInvalidRequest, out);
  }
  if (atomic ? !execute_atomic(headers, out) : !begin_read(headers, out)) return false;
  if (atomic) counters_.add(Counter::kRxSilent);
  // The result acknowledges all before it.
  if (owed_ != Owed::kFatalNak) owe(Owed::kNothing);
  msn_ = (msn_ + 1) & Psn::kMask;
  results_.back().msn = msn_;
  since_fetch_ = 0;
  return true;
}

bool Responder::begin_read(const wire::RoceHeaders& headers, NicOutput& out) {
  if (headers.reth.dma_length > kMaxMessage) return refuse(wire::NakCode::kInvalidRequest, out);
  if (!qp_.may_access(headers.reth, kRemoteRead)) return refuse(wire::NakCode::kRemoteAccess, out);
  const PendingResult result = read_result(headers, qp_.attr.path_mtu);
  results_.push(result);
  expected_ = expected_ + result.packets;
  return true;
}

bool Responder::execute_atomic(const wire::RoceHeaders& headers, NicOutput& out) {
  const wire::AtomicEth& atomic = headers.atomic;
  std::uint8_t* const at = qp_.port.memory.translate(
      atomic.rkey, qp_.init.pd, atomic.virtual_address, sizeof(std::uint64_t), kRemoteAtomic);
  const bool aligned = (atomic.virtual_address | reinterpret_cast<std::uintptr_t>(at)) % 8 == 0;
  if (!aligned) return refuse(wire::NakCode::kInvalidRequest, out);
  if (at == nullptr) return refuse(wire::NakCode::kRemoteAccess, out);
  // Atomic for the program, too: its threads may read the same word.
  std::uint64_t original = atomic.compare;
  const bool is_there = qp_.port.memory.touch(atomic.rkey, at, sizeof(std::uint64_t), [&] {
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
    if (headers.bth.opcode == wire::Opcode::kRcFetchAdd) {
      original = word.fetch_add(atomic.swap_add);
    } else {
      word.compare_exchange_strong(original, atomic.swap_add);
    }
  });
  if (!is_there) return refuse(wire::NakCode::kRemoteAccess, out);
  results_.push(atomic_result(headers.bth.psn, original));
  results_.remember(headers.bth.psn, original);
  expected_ = expected_ + 1;
  return true;
}

// A request that lies `behind` packets before the next one. SENDs and WRITEs are acknowledged
// again, READs are read again from memory, atomics are answered with their first result (IBTA
// 9.7.5.1).
void Responder::on_duplicate(const wire::RoceHeaders& headers, std::uint32_t behind) {
  counters_.add(Counter::kRxDuplicate);
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  const Psn psn = headers.bth.psn;
  if (info.read_request || info.atomic_request) {
    if (!results_.covers(psn)) repeat_fetch(headers);
    return;
  }
  const Manners& manners = qp_.port.config.manners;
  if (manners.acks_duplicates_if_requested && !headers.bth.ack_request) {
    CEPHEUS_SITUATION("a NIC is silent about a duplicate");
    return;
  }
  const bool is_stale = manners.acks_stale_psn && is_fresh_;
  if (is_stale)
    CEPHEUS_RARE_SITUATION("a NIC acknowledges a duplicate by the PSN of its last connection");
  if (is_stale || behind > since_fetch_) {
    // It precedes the last READ or atomic. An ACK of all would make the requester treat the results
    // behind this request as lost.
    if (owed_ == Owed::kNothing || owed_ == Owed::kDuplicateAck) {
      duplicate_psn_ = is_stale ? stale_ : psn;
      owed_ = Owed::kDuplicateAck;
    }
  } else {
    owe(Owed::kAck);
  }
}

void Responder::repeat_fetch(const wire::RoceHeaders& headers) {
  PendingResult result;
  bool served = false;
  if (opcode_info(headers.bth.opcode).read_request) {
    result = read_result(headers, qp_.attr.path_mtu);
    // The request lies at most 2^23 behind, and kMaxMessage makes at most 2^23 packets of the
    // smallest MTU: the READ's end lies within 2^23 of the next PSN.
    served = headers.reth.dma_length <= kMaxMessage && (qp_.attr.access & kRemoteRead) != 0 &&
             distance(headers.bth.psn + result.packets, expected_) >= 0 &&
             qp_.may_access(headers.reth, kRemoteRead);
  } else if (const auto original = results_.recall(headers.bth.psn)) {
    result = atomic_result(headers.bth.psn, *original);
    served = true;
  }
  if (!served) return counters_.add(Counter::kRxDropStaleRequest);
  // The requester went back to this PSN and repeats every request behind it. Results before it stay:
  // it has repeated several requests at once.
  if (results_.drop_from(headers.bth.psn) && owed_ == Owed::kAck) owed_ = Owed::kNothing;
  if (results_.full()) return counters_.add(Counter::kRxDropStaleRequest);
  result.msn = msn_;
  result.repeated = true;
  results_.push(result);
}

Build Responder::build_result(std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out) {
  PendingResult& result = results_.front();
  wire::RoceHeaders headers = qp_.envelope;
  headers.bth.opcode = response_opcode(result);
  headers.bth.psn = result.psn;
  headers.aeth.msn = result.msn;
  headers.atomic_ack.original = result.original;
  const std::uint32_t length = std::min(result.length, qp_.attr.path_mtu);
  MemoryTable& memory = qp_.port.memory;
  const auto read = [&](std::span<std::uint8_t> bytes) {
    if (length == 0) return true;
    const std::uint8_t* const from =
        memory.translate(result.rkey, qp_.init.pd, result.address, length, kRemoteRead);
    return from != nullptr && memory.copy_out(result.rkey, from, bytes.data(), length);
  };
  const Build built = build_with_payload(qp_.port, headers, length, buffer, frame, read);
  if (built == Build::kFailed) return lose_memory(result, out);
  if (built != Build::kBuilt) return built;
  counters_.add(result.atomic ? Counter::kTxAtomicAck : Counter::kTxReadResponse);

  result.psn = result.psn + 1;
  result.address += length;
  result.length -= length;
  result.begun = true;
  if (--result.packets == 0) results_.pop();
  return Build::kBuilt;
}

// The memory of a READ was deregistered or unmapped in the meantime. A repeated READ had its result
// once, so only the first time is an error.
Build Responder::lose_memory(const PendingResult& result, NicOutput& out) {
  const Psn psn = result.psn;
  const bool repeated = result.repeated;
  results_.clear_pending();
  if (repeated) {
    counters_.add(Counter::kRxDropStaleRequest);
    if (owed_ == Owed::kAck) owed_ = Owed::kNothing;
    return Build::kNothing;
  }
  expected_ = psn;                   // the NAK's place, behind all answered requests
  if (qp_.state == QpState::kErr) {  // a later request has failed the queue pair, and reported it
    fatal_code_ = wire::NakCode::kRemoteAccess;
    owe(Owed::kFatalNak);
    return Build::kNothing;
  }
  refuse(wire::NakCode::kRemoteAccess, out);
  return Build::kFailed;
}

}  // namespace cepheus::rnic
