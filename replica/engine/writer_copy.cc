// Making replicas equal: after a writer's death before any request, and when a replica returns.
//
// One copy is under way at a time, of the lowest chunk that a replica lacks: `ops_.back()` belongs
// to it. It waits for requests of its chunk, and they wait for it (may_go).
//
//   kRecovering  a successor copies every marked chunk from the first member to the others, once
//                its configuration is on record; then it serves
//   kServing     a replica that returns gets what it lacks, at copy_rate at most; then it flushes,
//                and a configuration with it is put on record. Copies go to several at once; a
//                configuration admits one
#include <algorithm>

#include "replica/engine/writer.h"
#include "wire/situation.h"

namespace cepheus::replica {

// A successor copies every marked chunk from one replica.
void Writer::make_todo() {
  const unsigned source = config_.members.lowest();
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    Peer& peer = peers_[r];
    peer.has_todo = config_.members.has(r) && r != source;
    if (peer.has_todo) peer.todo = marks();
  }
}

void Writer::begin_serving(Instant now, WriterActions& out) {
  for (Peer& peer : peers_) peer.has_todo = false;
  phase_ = Phase::kServing;
  has_served_ = true;
  clean_at_ = now + settings_.clean;
  // Writes that will be repeated.
  for (const Op& op : ops_) {
    if (op.state == OpState::kMarking) {
      CEPHEUS_SITUATION("a write is marked again after a recovery");
      mark(now, chunks_of(op.io), out);
    }
  }
}

void Writer::keep_copying(Instant now, WriterActions& out) {
  if (!is_formed_) return;
  if (phase_ == Phase::kRecovering) {
    // Until a configuration is on record, no replica may be overwritten that could still be a
    // source.
    if (!is_confirmed_) {
      CEPHEUS_SITUATION("a successor's copies wait for its configuration");
      return;
    }
    const bool is_done = !settings_.rules.copy_before_serving ||
                         std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
                           return !peer.has_todo || peer.todo.empty();
                         });
    if (is_done && ops_.back().state == OpState::kFree) {
      return begin_serving(now, out);
    }
  }
  Op& op = ops_.back();
  if (op.state == OpState::kWaiting && may_go(op)) op.state = OpState::kReady;
  if (op.state != OpState::kFree || now < copy_at_) return;
  std::uint32_t chunk = settings_.geometry.chunks();
  for (const Peer& peer : peers_) {
    if (!peer.has_todo) continue;
    if (const auto first = peer.todo.first()) chunk = std::min(chunk, *first);
  }
  if (chunk == settings_.geometry.chunks()) return;
  op.targets = peers_that([chunk](const Peer& p) { return p.has_todo && p.todo.has(chunk); });
  const Members sources = (config_.members & group_) - op.targets;
  if (sources.empty()) return;
  if (op.targets.count() > 1) CEPHEUS_SITUATION("one copy goes to two replicas");
  op.replica = sources.lowest();
  op.io = {};
  op.io.offset = settings_.geometry.chunk_offset(chunk);
  op.io.length = settings_.geometry.chunk_bytes(chunk);
  op.order = ++order_;
  op.state = OpState::kWaiting;
  if (may_go(op)) op.state = OpState::kReady;
  if (phase_ == Phase::kServing && settings_.copy_rate != 0) {
    copy_at_ = now + std::chrono::nanoseconds(op.io.length * 1'000'000'000 / settings_.copy_rate);
  }
}

void Writer::on_copied(Instant now, std::uint64_t attempt, Members failed, WriterActions& out) {
  Op* const op = posted(attempt);
  if (op != nullptr) {
    const auto chunk = static_cast<std::uint32_t>(op->io.offset / settings_.geometry.chunk);
    op->state = OpState::kFree;
    if (failed.has(op->replica)) {
      CEPHEUS_SITUATION("the source of a copy fails");
    } else {
      if (!failed.empty()) CEPHEUS_RARE_SITUATION("a target of a copy fails");
      for (const unsigned r : op->targets - failed) {
        if (peers_[r].has_todo) peers_[r].todo.clear(chunk);
      }
    }
    for (const unsigned r : failed) evict(now, r, out);
  }
  advance(now, out);
}

// A replica that lacks nothing is flushed, since others have promised that for the copied data. It
// is in sync once a configuration with it is on record at all members.
void Writer::keep_growing(Instant now, WriterActions& out) {
  if (phase_ != Phase::kServing || !is_formed_) return;
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    Peer& peer = peers_[r];
    if (!peer.is_syncing || !peer.has_todo || !peer.todo.empty()) continue;
    if (ops_.back().state != OpState::kFree && ops_.back().targets.has(r)) continue;
    if (growing_ && *growing_ != r) {
      CEPHEUS_RARE_SITUATION("a second replica waits until the first is in sync");
    }
    if (!peer.is_flushed) {
      if (is_requested(r, Round::Purpose::kSyncFlush)) continue;
      start_flush_of(now, r, Round::Purpose::kSyncFlush, out);
    } else if (is_confirmed_ && !growing_) {
      growing_ = r;
      propose(now, config_.members.with(r), out);
    }
  }
}

}  // namespace cepheus::replica
