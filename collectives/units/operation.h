// One unit of one broadcast, without blocking: call progress() until it is done.
#pragma once

#include <chrono>
#include <cstdint>

#include "collectives/core/tree.h"
#include "collectives/group/session.h"
#include "collectives/units/payload.h"

namespace cepheus::coll {

// The same on all members but for the payload: derived from size x count only.
struct Call {
  const Team* team;
  int root;  // member
  uint64_t unit;
  uint64_t retry_after;  // should this rank have to decide, see Agreement
  Payload* payload;
  size_t offset, length;  // of the unit in the packed payload
  // Non-blocking: the first progress() starts all NIC work.
  bool non_blocking;

  bool is_root() const { return team->self() == root; }
};

inline Position position_of(const Call& call) {
  return {call.team->self(), call.team->size(), call.root};
}

// Kept for the units to come: each class has a begin(), which forgets the last one.
class Operation {
 public:
  virtual ~Operation() = default;
  // Code::kDone: root: the buffer may be reused; others: it is filled. Code::kPending: call again.
  // Code::kNotServed: the saved function shall serve it. Under the communicator's guard.
  virtual Code progress(Actions& out) = 0;
  // The time for which the caller may sleep without much delay.
  virtual std::chrono::nanoseconds spare_time() const { return {}; }
  // Root of a large unit: member `to` lacks all behind its first `bytes`. Code::kNotServed: it can
  // take nothing.
  virtual Code serve(int to, uint64_t bytes) = 0;
  // The unit is over: forgets its messages under way.
  virtual void finish() = 0;
};

// A unit by multicast, and its repair after a failure of the group.
class GroupOperation : public Operation {
 public:
  Code progress(Actions& out) final;

 protected:
  void begin(const Call& call, Session& session) {
    call_ = call;
    session_ = &session;
    entered_ = false;
  }
  virtual void enter() {}  // the first progress()
  virtual Code run() = 0;
  virtual Code repair(Actions& out) = 0;
  virtual Code gone();    // the root has no copy
  virtual void fill() {}  // it is complete here

  Call call_{};
  Session* session_ = nullptr;

 private:
  bool entered_ = false;
};

// The root can't pack its data, so the others must not get any: the group is given up before
// anything of the unit is sent, and the saved function serves it. Returns Code::kPending.
Code unreadable(const Call& call, Session& session);

// Says why in the log, and returns Code::kFailed.
Code fail_call(const Call& call, const char* why);
// The same of a unit that the fabric lost and that its root has no copy of. This rank takes part in
// the rest, so it returns Code::kDone. In mode "require" it ends the job.
Code lost(const Call& call);

}  // namespace cepheus::coll
