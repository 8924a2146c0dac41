// Queue pairs as verbs programs hold them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "nic-emulator/verbs/abi.h"
#include "nic-emulator/verbs/device/live_nic.h"
#include "nic-emulator/verbs/memory/memory.h"
#include "nic-emulator/verbs/queues/shared_receive_queue.h"
#include "nic-emulator/verbs/queues/verbs_cq.h"

namespace cepheus::verbs {

// Work requests between wr_start and wr_complete (extended_qp.cc).
struct RequestBatch {
  struct Request {
    SendWr wr;
    std::size_t first_sge = 0;
    std::size_t sges = 0;
    std::size_t first_byte = 0;  // of inline data
    std::size_t bytes = 0;
  };
  std::mutex mutex;  // held from start to complete or abort; taken before the NIC's lock
  std::vector<Request> requests;
  std::vector<Sge> sges;
  std::vector<std::uint8_t> inline_data;
  std::vector<SendWr> wrs;  // posted requests with their pieces
  int error = 0;
};

class QueuePair final : public ibv_qp_ex, private Listener {
 public:
  QueuePair(ProtectionDomain& domain, const ibv_qp_init_attr& init, QpType type, Qpn number,
            std::unique_ptr<QpSlots> slots);
  // Waits until the program has acknowledged the asynchronous events that it has fetched.
  ~QueuePair();
  static QueuePair& of(ibv_qp* qp) {
    return *static_cast<QueuePair*>(reinterpret_cast<ibv_qp_ex*>(qp));
  }

  Context& owner() const { return Context::of(qp_base.context); }
  LiveNic& nic() const { return owner().nic(); }
  Qpn qpn() const { return Qpn(qp_base.qp_num); }
  RequestBatch& batch() { return batch_; }
  QpSlots& slots() { return *slots_; }

  int modify(const ibv_qp_attr& attributes, int mask);
  int query(ibv_qp_attr& attributes, int mask, ibv_qp_init_attr* init);

 private:
  // Of a queue pair that ends or has been reset.
  void forget_completions();
  void on_event(ibv_event_type type) override;
  void on_forked() override {
    renew_after_fork(qp_base.mutex);
    new (&batch_.mutex) std::mutex;
  }

  Reference in_domain_;
  Reference in_send_cq_;
  Reference in_recv_cq_;
  std::optional<Reference> in_srq_;
  const ibv_qp_init_attr init_;
  const QpType type_;
  const std::unique_ptr<QpSlots> slots_;
  ibv_qp_attr set_{};  // attributes of modify() that the engine does not keep; under the NIC's lock
  AsyncSource async_source_;
  RequestBatch batch_;
};

// Errors in errno; sets init.cap to the granted capacities.
QueuePair* create_queue_pair(ProtectionDomain& domain, ibv_qp_init_attr& init);

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

}  // namespace cepheus::verbs
