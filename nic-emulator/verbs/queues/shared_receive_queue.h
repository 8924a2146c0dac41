// Shared receive queues as verbs programs hold them (IBTA 10.2.9).
#pragma once

#include <atomic>

#include "nic-emulator/verbs/memory/memory.h"
#include "nic-emulator/verbs/queues/slots.h"

namespace cepheus::verbs {

class SharedReceiveQueue final : public ibv_srq, private Listener {
 public:
  SharedReceiveQueue(ProtectionDomain& domain, void* user_context, SrqId id, std::uint32_t max_wr);
  // Waits until the program has acknowledged the asynchronous events that it has fetched.
  ~SharedReceiveQueue();
  static SharedReceiveQueue& of(ibv_srq* srq) { return *static_cast<SharedReceiveQueue*>(srq); }

  Context& owner() const { return Context::of(context); }
  LiveNic& nic() const { return owner().nic(); }
  SrqId id() const { return id_; }
  Slots& slots() { return slots_; }
  // QPs that receive from it.
  std::atomic<int>& users() { return users_; }

  // An errno, or 0.
  int modify(const ibv_srq_attr& attributes, int mask);
  int query(ibv_srq_attr& attributes);

 private:
  void on_event(ibv_event_type type) override;
  void on_forked() override { renew_after_fork(mutex); }

  Reference in_domain_;
  const SrqId id_;
  Slots slots_;
  std::atomic<int> users_{0};
  AsyncSource async_source_;
};

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

}  // namespace cepheus::verbs
