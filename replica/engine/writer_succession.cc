// How a writer comes by a volume: its claim, the replicas' promises, and the configuration that it
// continues from. It begins once all members of the last configuration have promised. It ends
// instead if they lost data that its user relies on, or if another writer had the volume meanwhile.
//
//   situation                    the writer
//   a replica knows another      claims again while it has no volume; is fenced if a member refuses;
//   writer's claim               evicts any other replica, and claims again if refusals last
//   its last member is lost      becomes its own successor: claims again, and repeats what is not
//                                acknowledged (start_again)
//
// If all replicas of the latest configuration that a writer finds are present, one of them knows any
// later one (docs/replica.md, "Why a successor finds everything"). The found configuration may itself
// be a growth that never was on record: then it is first put on record with all its members.
#include <algorithm>

#include "replica/engine/writer.h"
#include "wire/situation.h"
#include "wire/splitmix.h"

namespace cepheus::replica {

void Writer::on_promise(unsigned replica, const Answer& answer) {
  Peer& peer = peers_[replica];
  if (answer.promised != epoch_ || peer.has_promised) {
    CEPHEUS_SITUATION("a promise comes after the writer claimed again, or twice");
    return;
  }
  peer.has_promised = true;
  peer.refused_since = {};
  peer.config = answer.config;
  peer.loss = answer.loss;
  // Others have a configuration, so a replica without one has a new disk.
  if (answer.config.epoch.number == 0) peer.loss = Loss::kAll;
  peer.is_fresh = peer.loss == Loss::kAll;
  peer.marks = ChunkBitmap(settings_.geometry.chunks(), answer.words);
}

Loss Writer::least_loss(Members members) const {
  Loss least = Loss::kAll;
  for (const unsigned r : members) least = std::min(least, peers_[r].loss);
  return least;
}

// Of all replicas that have promised, or of a volume that was never written to.
Config Writer::latest() const {
  Config latest;
  for (const unsigned r : promised()) {
    if (latest.members.empty() || is_later(peers_[r].config, latest)) latest = peers_[r].config;
  }
  return latest;
}

// The latest configuration, if all its members have promised. Then no writer can acknowledge by an
// older one any more, and there is no later one. Empty while members are missing.
//
// Nothing was acknowledged by a configuration that one of its members has not recorded. All members
// of the one before it have everything, too, so that one counts if the others have lost data.
std::optional<Config> Writer::find_last() const {
  const Members here = promised();
  Config last = latest();
  for (;;) {
    if (last.members.empty()) return std::nullopt;
    if (!here.includes(last.members)) {
      CEPHEUS_SITUATION("a successor waits for members of the latest configuration");
      return std::nullopt;
    }
    const Config* before = nullptr;
    for (const unsigned r : last.members) {
      const Config& config = peers_[r].config;
      if (config.epoch == last.epoch && config.version + 1 == last.version &&
          config.members.includes(last.members)) {
        before = &config;
      }
    }
    if (before == nullptr || least_loss(last.members) == Loss::kNone) return last;
    CEPHEUS_RARE_SITUATION("members lost data, and the configuration before counts");
    last = *before;
  }
}

// A replica with a new disk may have known a later configuration than all present ones.
bool Writer::may_be_a_later_one(const Config& last) const {
  if (last.epoch.number == 0 || !settings_.rules.new_disk_lacks_all) return false;
  if (promised() == Members::all(settings_.replicas)) return false;
  for (const unsigned r : last.members) {
    if (peers_[r].config.epoch.number == 0) {
      CEPHEUS_RARE_SITUATION("a new disk may have known a later configuration");
      return true;
    }
  }
  return false;
}

void Writer::try_to_begin(Instant now, WriterActions& out) {
  const auto last = find_last();
  if (!last || may_be_a_later_one(*last)) return;
  // All members of a configuration that was on record have new disks, or are still to come.
  const bool is_forgotten = is_later(known_, latest());
  if (is_forgotten && !promised().includes(known_.members)) return;
  // Another writer had the volume meanwhile, perhaps only for a moment: the data that this one's
  // user expects may have changed.
  if (has_served_ && !is_forgotten && last->epoch.writer != epoch_.writer) {
    CEPHEUS_SITUATION("another writer had the volume meanwhile");
    return end(now, Phase::kFenced, out);
  }
  if (!has_been_written(*last)) {
    for (Peer& peer : peers_) peer.is_fresh = false;  // all replicas are equal
  }
  if (!has_lost_data(now, *last, is_forgotten, out)) begin_from(now, *last, out);
}

void Writer::begin_from(Instant now, const Config& last, WriterActions& out) {
  const Loss least = least_loss(last.members);
  ChunkBitmap marks(settings_.geometry.chunks());
  Members members;
  unrecorded_ = {};
  for (const unsigned r : last.members) {
    const Peer& peer = peers_[r];
    marks.add(peer.marks);
    if (peer.loss == least || !settings_.rules.least_loss_is_source) members = members.with(r);
    if (peer.config != last) unrecorded_ = last.members;
  }
  if (members != last.members)
    CEPHEUS_SITUATION("replicas that lost more than others are no source");
  if (unrecorded_.empty()) known_ = last;
  for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
    chunks_[c].state = marks.has(c) ? ChunkState::kMarked : ChunkState::kClear;
    chunks_[c].last_write = now;
    // Data of an earlier writer that the user will read may not be on disks either.
    if (!has_served_) chunks_[c].ack = marks.has(c) ? 1 : 0;
  }
  acks_ = std::max<std::uint64_t>(acks_, 1);
  phase_ = Phase::kRecovering;
  config_ = {epoch_, 0, {}};
  for (const unsigned r : members) send_marks(r, out);
  first_ = members;
  propose(now, unrecorded_.empty() ? members : unrecorded_, out);
  form_at_ = now;
}

// No replica of a volume that was never written to knows a configuration, nor was one copied to.
bool Writer::has_been_written(const Config& last) const {
  for (const unsigned r : last.members) {
    if (!peers_[r].marks.empty()) return true;
  }
  return last.epoch.number != 0;
}

// The user of a continuing writer relies on all acknowledged data, also if only the replicas'
// memory had it. A later writer's user relies on flushed data only. New disks have lost both.
bool Writer::has_lost_data(Instant now, const Config& last, bool is_forgotten, WriterActions& out) {
  const Loss least = least_loss(last.members);
  const bool are_new = least == Loss::kAll && has_been_written(last);
  has_lost_disks_ = settings_.rules.admit_new_disks && (is_forgotten || are_new);
  lost_ = ChunkBitmap(settings_.geometry.chunks());
  if (has_lost_disks_) {
    CEPHEUS_SITUATION("all replicas in sync have new disks");
    lost_.set_all();
  } else if (has_served_ && least >= Loss::kMemory) {
    CEPHEUS_SITUATION("hosts of all replicas in sync restarted under a living writer");
    lost_ = unflushed();
  }
  if (lost_.empty() || !settings_.rules.admit_loss) return false;
  end(now, Phase::kFailed, out);
  return true;
}

void Writer::on_refusal(Instant now, unsigned replica, const Answer& answer, WriterActions& out) {
  if (answer.promised < epoch_) {  // an answer to an earlier claim
    CEPHEUS_SITUATION("a refusal comes after the writer claimed again");
    return;
  }
  if (phase_ == Phase::kAcquiring) {
    // Another writer had the volume before, or claims it now.
    CEPHEUS_SITUATION("a claim is refused, and made again");
    claim_again(now, answer.promised);
  } else if (config_.members.has(replica)) {
    end(now, Phase::kFenced, out);
  } else {
    // A writer that is unknown to the replicas in sync has claimed the volume. Its claim may still
    // reach them, or it has ended. If they do not know it after a while, the claim is an
    // old one.
    Peer& peer = peers_[replica];
    CEPHEUS_SITUATION("a replica that returns has promised to an unknown writer");
    if (peer.refused_since == Instant{}) peer.refused_since = now;
    const bool is_old = now >= peer.refused_since + 2 * settings_.silence;
    evict(now, replica, out);
    if (is_old) {
      CEPHEUS_RARE_SITUATION("a claim that nobody pursues is outbid");
      start_again(now, answer.promised, out);
    }
  }
}

// Two writers that claim at once each try a higher number, at different times, so that one of them
// succeeds.
void Writer::claim_again(Instant now, const Epoch& after) {
  epoch_.number = after.number + 1;
  for (Peer& peer : peers_) {
    peer.has_promised = false;
    peer.refused_since = {};
  }
  const auto wait = wire::splitmix(epoch_.writer, epoch_.number) % 100;
  promise_at_ = now + std::chrono::milliseconds(wait);
}

// The replicas that the writer continues with may lack writes that others in sync had: they were
// restarted, or had not learned yet of evictions.
void Writer::repeat_writes() {
  for (Op& op : ops_) {
    if (op.is_copy || op.state == OpState::kFree || op.state == OpState::kWaiting) continue;
    const bool is_written = op.state == OpState::kDone || op.state == OpState::kFlushing;
    if (op.io.kind == IoKind::kFlush) {
      op.state = OpState::kWaiting;
    } else if (op.io.kind == IoKind::kWrite) {
      CEPHEUS_SITUATION("a writer that begins again repeats its writes");
      const bool is_safe = is_written && !settings_.rules.repeat_after_loss;
      op.state = is_safe ? OpState::kDone : OpState::kMarking;
      op.is_flushed = false;
    }
  }
}

// As its own successor: repeats everything that was sent and is not acknowledged.
void Writer::start_again(Instant now, const Epoch& after, WriterActions& out) {
  drop_group(out);
  rounds_.clear();
  growing_.reset();
  unrecorded_ = {};
  for (Peer& peer : peers_) {
    peer.is_syncing = peer.has_todo = peer.is_flushed = peer.flushes_late = false;
  }
  repeat_writes();
  phase_ = Phase::kAcquiring;
  const bool is_alone = after == epoch_;
  claim_again(now, after);
  if (is_alone) promise_at_ = now;
}

}  // namespace cepheus::replica
