// The members of a volume: configurations and groups. writer_succession.cc has the writer's claim,
// and the configuration that it continues from. Three situations change the members:
//
//   situation                    the writer                                     entrance
//   a member is lost             continues with the others and records that;    evict
//                                begins again if it was the last member, or if
//                                a growth that the writer found is not on
//                                record yet
//   a replica returns            copies what it lacks, one replica at a time    keep_group,
//                                                                               on_formed
//   the group fails              forms it anew without the suspects             on_group_failed
//
// Configurations only shrink from the last one on record, and grow by one replica at a time once
// that is on record. The next shrinking takes back a growth that is not on record.
#include <algorithm>
#include <cassert>

#include "replica/engine/writer.h"
#include "wire/situation.h"

namespace cepheus::replica {

constexpr Duration kInARow = std::chrono::minutes(1);  // from one group's failure to the next one's

Members Writer::promised() const {
  return peers_that([](const Peer& peer) { return peer.has_promised; });
}

Members Writer::wanted() const {
  return config_.members | peers_that([](const Peer& peer) { return peer.is_syncing; });
}

bool Writer::is_one_returning() const {
  return std::ranges::any_of(peers_, [](const Peer& p) { return p.is_syncing && !p.has_todo; });
}

Members Writer::in_sync() const {
  return growing_ ? config_.members.without(*growing_) : config_.members;
}

Members Writer::readable() const {
  return (settings_.rules.copy_before_in_sync ? in_sync() : wanted()) & promised();
}

// All `members` record the configuration for a successor. Until all have it, nothing is
// acknowledged.
void Writer::propose(Instant now, Members members, WriterActions& out) {
  config_ = {epoch_, config_.version + 1, members};
  is_confirmed_ = false;
  const RequestType type = unrecorded_.empty() ? RequestType::kConfig : RequestType::kAdopt;
  start_round(now,
              {.purpose = Round::Purpose::kConfig,
               .request = {.type = type, .config = config_},
               .waiting = members},
              out);
}

void Writer::end(Instant now, Phase phase, WriterActions& out) {
  drop_group(out);
  phase_ = phase;
  const IoStatus status = phase == Phase::kFenced ? IoStatus::kFenced : IoStatus::kLost;
  for (Op& op : ops_) {
    if (!op.is_copy && op.state != OpState::kFree) finish(now, op, status, out);
  }
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    if (peers_[r].is_connected) out.push_back({Kind::kDisconnect, r});
    peers_[r].is_connected = peers_[r].has_promised = false;
  }
}

// Evicts the replica: the bitmap marks the chunks that it misses from now on, for a copy when it
// returns.
void Writer::evict(Instant now, unsigned replica, WriterActions& out) {
  Peer& peer = peers_[replica];
  if (!peer.is_connected) return;
  // Each return that fails has delayed requests, so the next one comes later.
  const bool was_wanted = wanted().has(replica);
  if (peer.is_syncing) {
    peer.rejoin = std::min(2 * peer.rejoin, settings_.rejoin_most);
  } else if (config_.members.has(replica)) {
    peer.rejoin = settings_.rejoin;
  }
  peer.is_connected = peer.has_promised = false;
  peer.is_syncing = peer.has_todo = peer.is_flushed = peer.flushes_late = false;
  peer.rejoin_at =
      was_wanted ? now + peer.rejoin : std::max(peer.rejoin_at, now + settings_.rejoin);
  out.push_back({Kind::kDisconnect, replica});
  if (phase_ == Phase::kAcquiring || has_ended()) return;
  if (has_group_ && group_.has(replica)) drop_group(out);
  form_at_ = std::max(form_at_, now);
  leave_config(now, replica, out);
  if (phase_ == Phase::kRecovering) make_todo();
}

void Writer::leave_config(Instant now, unsigned replica, WriterActions& out) {
  if (unrecorded_.has(replica)) {
    CEPHEUS_RARE_SITUATION("a member is lost before a found growth is on record");
    return start_again(now, epoch_, out);
  }
  Members members = config_.members.without(replica);
  if (growing_) members = members.without(*growing_);
  if (config_.members.has(replica)) {
    // Without the last replica in sync the writer must wait; when it returns it may have lost data.
    if (members.empty()) {
      CEPHEUS_SITUATION("the last replica in sync is lost");
      return start_again(now, epoch_, out);
    }
    if (!is_confirmed_) CEPHEUS_SITUATION("a member is lost before its configuration is on record");
    growing_.reset();  // the replica that was being added is copied on, if it is present
    propose(now, members, out);
  }
  leave_rounds(now, replica, out);
}

void Writer::take_back_posted() {
  for (Op& op : ops_) {
    if (op.is_copy) {
      if (op.state == OpState::kPosted)
        CEPHEUS_RARE_SITUATION("a group ends with a copy under way");
      op.state = OpState::kFree;
    } else if (op.state == OpState::kPosted) {
      CEPHEUS_SITUATION("a group ends with requests under way");
      op.state = OpState::kReady;
    }
  }
}

void Writer::drop_group(WriterActions& out) {
  if (!has_group_) return;
  has_group_ = is_formed_ = false;
  take_back_posted();
  out.push_back({Kind::kDrop});
}

// The group has all wanted replicas, and is formed anew whenever they change.
void Writer::keep_group(Instant now, WriterActions& out) {
  if (!unrecorded_.empty()) return;
  if (phase_ == Phase::kServing) {
    for (unsigned r = 0; r < settings_.replicas; ++r) {
      Peer& peer = peers_[r];
      if (!peer.has_promised || peer.is_syncing || config_.members.has(r) || now < peer.rejoin_at) {
        continue;
      }
      if (peer.is_hung) {
        if (!is_requested(r, Round::Purpose::kTrial)) {
          start_flush_of(now, r, Round::Purpose::kTrial, out);
        }
        continue;
      }
      // One after the other: if the fabric refuses one of them, the group's failure names it.
      if (is_one_returning()) {
        CEPHEUS_SITUATION("two replicas return at once");
        continue;
      }
      peer.is_syncing = true;
      send_marks(r, out);
    }
  }
  const Members members = wanted();
  if (has_group_ && members != group_) drop_group(out);
  if (has_group_ || now < form_at_ || !promised().includes(members)) return;
  has_group_ = true;
  group_ = members;
  out.push_back({.kind = Kind::kForm, .generation = ++generation_, .members = members});
}

void Writer::on_formed(Instant now, std::uint64_t generation, WriterActions& out) {
  if (!has_group_ || is_formed_ || generation != generation_) return;
  is_formed_ = true;
  if (phase_ == Phase::kRecovering) make_todo();
  for (Peer& peer : peers_) {
    if (!peer.is_syncing || peer.has_todo) continue;
    peer.has_todo = true;
    peer.todo = lacking_marks(peer);
    if (peer.is_fresh) {
      CEPHEUS_SITUATION("a new disk is copied everything");
      peer.todo.set_all();
    }
  }
  advance(now, out);
}

// If all members answer, the fabric may refuse a returning one: the others had a group without it.
// A replica that has already been in a formed group is copied on, unless the next group fails, too.
Members Writer::doubtful(Instant now) const {
  return peers_that([&](const Peer& peer) {
    return peer.is_syncing && (now < in_a_row_until_ || !peer.has_todo);
  });
}

void Writer::on_group_failed(Instant now, std::uint64_t generation, Members suspects,
                             bool all_answer, WriterActions& out) {
  if (!has_group_ || generation != generation_) return;
  if (all_answer) {
    CEPHEUS_SITUATION("a fabric refuses a group, and all its members answer");
    if (settings_.rules.evict_refused) suspects = doubtful(now);
    in_a_row_until_ = suspects.empty() ? now + kInARow : Instant();
  }
  drop_group(out);
  form_at_ = now + settings_.reform;
  for (const unsigned r : suspects) evict(now, r, out);
  advance(now, out);
}

void Writer::check_consistent() const {
#ifndef NDEBUG
  unsigned busy = 0;
  for (const Op& op : ops_) busy += !op.is_copy && op.state != OpState::kFree;
  assert(busy == under_way_);
  if (phase_ == Phase::kAcquiring || has_ended()) return;
  assert(!config_.members.empty());
  assert(!is_formed_ || (has_group_ && promised().includes(group_)));
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    const Peer& peer = peers_[r];
    assert(!peer.has_promised || peer.is_connected);
    assert(!peer.is_syncing || peer.has_promised);
    assert(!config_.members.has(r) || peer.has_promised);
  }
  for (const Round& round : rounds_) {
    assert(!round.waiting.empty() && promised().includes(round.waiting));
  }
#endif
}

}  // namespace cepheus::replica
