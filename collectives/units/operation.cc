// The path comes from the Agreement at each call: multicast, wait for the drain, repair, the saved
// function, or no copy at the root. A unit enters the Agreement at its first call and leaves it
// when it is done or has failed. If the saved function serves it, the unit stays the current one.
//
// If the root has no copy, mode "require" ends the job. Otherwise this call ends in an error, and
// the rank takes part in the rest.
#include "collectives/units/operation.h"

#include "collectives/core/parameters.h"
#include "collectives/group/session.h"

namespace cepheus::coll {

using Path = Agreement::Path;

Code Operation::progress(Actions& out) {
  Agreement& agreement = session_->agreement();
  if (!entered_) {
    entered_ = true;
    agreement.enter(call_.unit, call_.root, call_.retry_after, out);
    enter();
  }
  Code rc = Code::kPending;
  switch (agreement.path()) {
    case Path::kMulticast:
      rc = run();
      break;
    case Path::kDrain:
      break;
    case Path::kRepair:
      rc = repair(out);
      break;
    case Path::kSaved:
      return Code::kNotServed;
    case Path::kGone:
      rc = gone();
      break;
  }
  if (rc == Code::kPending) return rc;
  if (rc == Code::kDone) fill();
  agreement.leave(call_.unit + 1, out);
  return rc;
}

Code Operation::unreadable() {
  session_->agreement().fail(
      Cause::kWork, rank_text(*call_.team) + ": its data could not be packed for a broadcast");
  return Code::kPending;
}

Code Operation::fail_call(const std::string& why) const {
  host::log(0, "cepheus: broadcast on %s: %s", host::name(call_.team->comm()).c_str(), why.c_str());
  return Code::kFailed;
}

// The fabric lost the unit. This rank takes part in the rest, so it returns Code::kDone.
Code Operation::gone() {
  const std::string what =
      "the fabric lost data: it was acknowledged, but did not arrive here, and the root has no "
      "copy";
  // No call returns an error in mode "require": the job ends.
  if (parameters().chosen_mode() == Mode::kRequire)
    host::abort_job(call_.team->comm(), rank_text(*call_.team) + ": " + what);
  call_.payload->fail(fail_call(what + "; the buffer is not valid"));
  return Code::kDone;
}

}  // namespace cepheus::coll
