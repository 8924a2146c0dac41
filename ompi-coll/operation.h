// One unit of one broadcast on its way, without blocking: call progress() until it is done.
#pragma once

#include <chrono>
#include <cstdint>

#include "ompi-coll/payload.h"
#include "ompi-coll/session.h"
#include "ompi-coll/tree.h"

namespace cepheus::coll {

// The same on all members but for the payload: derived from size x count only.
struct Call {
  const Team* team;
  int root;  // member
  uint64_t unit;
  uint64_t retry_after;  // should this rank have to decide, see Agreement
  Payload* payload;
  size_t offset, length;  // of the unit in the packed payload
  // The program may be elsewhere until it is done: whatever the NICs can do by themselves is begun
  // at the first progress().
  bool unattended;

  bool is_root() const { return team->self() == root; }
};

inline Position position_of(const Call& call) {
  return {call.team->self(), call.team->size(), call.root};
}

class Operation {
 public:
  virtual ~Operation() = default;
  // OMPI_SUCCESS: root: the buffer may be reused; others: it is filled. OMPI_ERR_WOULD_BLOCK: call
  // again. OMPI_ERR_NOT_AVAILABLE: the saved module shall serve it. Under the communicator's guard.
  virtual int progress(Actions& out) = 0;
  // How long the caller may sleep without delaying it much.
  virtual std::chrono::nanoseconds spare_time() const { return {}; }
  // Root: it waits for members that have not come yet.
  virtual bool awaits_members() const { return false; }
  // After an error, until it is true: nothing of it uses the program's memory any more.
  virtual bool end() { return true; }
  // Root of a large unit: member `to` lacks all behind its first `bytes`. OMPI_ERR_NOT_AVAILABLE:
  // it can take nothing.
  virtual int serve(int to, uint64_t bytes) = 0;
};

// The root can't pack its data, so the others must not get any: the group is given up before
// anything of the unit is sent, and the saved module serves it. Returns OMPI_ERR_WOULD_BLOCK.
int unreadable(const Call& call, Session& session);

// The caller's arguments differ from those of the root that has sent the message with `header`.
// Says so, makes the next broadcast's units the root's, and returns the error. Under the transport's
// mutex.
int mismatch(const Call& call, const EagerHeader& header, Session& session);
// For a rank that waits for something else in a large broadcast: mismatch() if its root has sent a
// small one, else OMPI_ERR_WOULD_BLOCK.
int look_for_small(const Call& call, Session& session);

// Says why on the component's output, and returns OMPI_ERROR.
int broken(const Call& call, const char* why);
// The same of a unit that the fabric lost and that its root has no copy of. This rank takes part in
// the rest, so it returns OMPI_SUCCESS.
int lost(const Call& call);

}  // namespace cepheus::coll
