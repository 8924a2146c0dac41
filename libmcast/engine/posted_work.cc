#include "libmcast/engine/posted_work.h"

namespace cepheus::mcast {

Expected<void> PairSync::check_send(std::uint64_t packets) {
  if (sync_.may_send(packets)) return {};
  sync_.want_to_send();
  return fail(MCAST_ERR_AGAIN,
              "the queue pair is being synchronised with the group: call mcast_progress()");
}

bool PairSync::on_psns(const Psns& now) {
  if (moved_ != nullptr) {
    psns_move_ = now.*std::exchange(moved_, nullptr) != start_;
    return psns_move_;
  }
  if (now.send != now.receive) sync_.received();
  return true;
}

PairSync::Step PairSync::begin_step(unsigned outstanding) {
  step_ = sync_.due(outstanding);
  if (step_ == Step::kStop) sync_.stopped();
  return *step_;
}

// A flushed receive is older, even if the program posts before it takes the completion in.
KeptReceives PairSync::take_kept() {
  KeptReceives kept = std::exchange(flushed_, {});
  for (const std::uint64_t each : std::exchange(posted_meanwhile_, {})) kept.push_back(each);
  return kept;
}

}  // namespace cepheus::mcast
