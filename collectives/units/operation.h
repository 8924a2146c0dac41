// One unit of one broadcast by multicast, and its repair after a failure of the group. Never blocks:
// call progress() until it is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "collectives/core/agreement.h"
#include "collectives/units/call.h"

namespace cepheus::coll {

class Session;

// Kept for the units to come: each class has a begin(), which forgets the last one.
class Operation {
 public:
  virtual ~Operation() = default;
  // Code::kDone: root: the buffer may be reused; others: it is filled. Code::kPending: call again.
  // Code::kNotServed: the saved function shall serve it. Under the communicator's guard.
  Code progress(Actions& out);
  // The time for which the caller may sleep without much delay.
  virtual std::chrono::nanoseconds spare_time() const { return {}; }
  // Root of a large unit: member `to` lacks all behind its first `bytes`. Code::kNotServed: it can
  // take nothing.
  virtual Code serve(int to, uint64_t bytes) = 0;
  // The unit is over: forgets its messages under way.
  virtual void finish() = 0;

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
  // The root can't pack its data, so the others must not get any: the group is given up before
  // anything of the unit is sent, and the saved function serves it. Returns Code::kPending.
  Code unreadable();
  // Says why in the log, and returns Code::kFailed.
  Code fail_call(const std::string& why) const;

  Call call_{};
  Session* session_ = nullptr;

 private:
  bool entered_ = false;
};

}  // namespace cepheus::coll
