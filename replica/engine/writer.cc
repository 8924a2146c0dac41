// A write's states: waiting for overlapping requests, marking its chunks, ready, posted to the
// group, done, perhaps flushing, free. Reads and copies need no marks; flushes go to all replicas
// at once. advance() moves every request as far as it can and is called after each event.
//
// A write is done when every member of the group has it, and is acknowledged once the configuration
// is on record. Failed writes are posted again in their first order.
//
// Bounds: `depth` requests and one copy at a time. Timers ping replicas and evict silent ones. If
// this program was stopped, their silence is forgiven, because their messages wait unread.
#include "replica/engine/writer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "wire/situation.h"

namespace cepheus::replica {

Writer::Writer(const WriterSettings& settings, std::uint64_t id)
    : settings_(settings),
      epoch_{1, id},
      peers_(settings.replicas),
      ops_(settings.depth + 1),
      chunks_(settings.geometry.chunks()) {
  ops_.back().is_copy = true;
  for (Peer& peer : peers_) peer.rejoin = settings_.rejoin;
  rounds_.reserve(settings.depth + 2 * settings.replicas + 4);
  sorted_.reserve(ops_.size());
}

ChunkRange Writer::chunks_of(const IoRequest& io) const {
  const std::uint64_t chunk = settings_.geometry.chunk;
  const auto first = static_cast<std::uint32_t>(io.offset / chunk);
  const auto last = static_cast<std::uint32_t>((io.offset + io.length - 1) / chunk);
  return {first, last - first + 1};
}

bool Writer::submit(Instant now, const IoRequest& io, WriterActions& out) {
  if (under_way_ == settings_.depth || has_ended()) return false;
  const auto free = std::ranges::find(ops_.begin(), ops_.end() - 1, OpState::kFree, &Op::state);
  assert(free != ops_.end() - 1);
  free->state = OpState::kWaiting;
  free->io = io;
  free->order = ++order_;
  free->post = free->attempt = 0;
  free->is_flushed = false;
  ++under_way_;
  advance(now, out);
  return true;
}

// Reads overlap reads, and writes overlap writes, which all replicas see in the order of posting. A
// read that overlaps a write waits for it: a value that was read never changes back.
bool Writer::may_go(const Op& op) const {
  if (op.io.kind == IoKind::kFlush && !op.is_copy) return true;
  // A successor copies before any request.
  if (phase_ == Phase::kRecovering) return op.is_copy;
  for (const Op& other : ops_) {
    if (&other == &op || other.state == OpState::kFree || other.order > op.order) continue;
    if (other.io.length == 0 || other.io.offset >= op.io.offset + op.io.length ||
        op.io.offset >= other.io.offset + other.io.length) {
      continue;
    }
    if (op.is_copy) CEPHEUS_SITUATION("a copy waits for a request of its chunk");
    if (other.is_copy) CEPHEUS_SITUATION("a request waits for a copy of its chunk");
    if (!op.is_copy && !other.is_copy && other.io.kind != op.io.kind) {
      CEPHEUS_SITUATION("a read and a write of one place wait for each other");
    }
    if (op.is_copy || other.is_copy || other.io.kind != op.io.kind) return false;
  }
  return true;
}

void Writer::count_writes(const IoRequest& io, int change, Instant now) {
  const ChunkRange range = chunks_of(io);
  for (std::uint32_t c = range.first; c < range.end(); ++c) {
    chunks_[c].writes += static_cast<std::uint32_t>(change);
    chunks_[c].last_write = now;
  }
}

bool Writer::are_marked(ChunkRange range) const {
  return std::all_of(chunks_.begin() + range.first, chunks_.begin() + range.end(),
                     [](const Chunk& c) { return c.state == ChunkState::kMarked; });
}

void Writer::admit(Instant now, Op& op, WriterActions& out) {
  if (op.is_copy || op.io.kind == IoKind::kRead) {
    op.state = OpState::kReady;
    return;
  }
  if (op.io.kind == IoKind::kFlush) {
    return start_flush(now, static_cast<std::size_t>(&op - ops_.data()), out);
  }
  count_writes(op.io, 1, now);
  mark(now, chunks_of(op.io), out);
  op.state = OpState::kMarking;
}

void Writer::start_flush(Instant now, std::size_t op, WriterActions& out) {
  ops_[op].state = OpState::kFlushing;
  ops_[op].covers = acks_;
  Round round{.purpose = Round::Purpose::kFlush,
              .request = {.type = RequestType::kFlush},
              .waiting = wanted(),
              .op = op};
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    if (!peers_[r].flushes_late) continue;
    CEPHEUS_RARE_SITUATION("a flush goes on without a replica that flushes late");
    round.waiting = round.waiting.without(r);
    flush_again(r);
  }
  start_round(now, std::move(round), out);
}

void Writer::post(Instant, Op& op, WriterActions& out) {
  WriterAction action{};
  if (op.is_copy) {
    action.kind = Kind::kCopy;
    action.members = op.targets;
  } else if (op.io.kind == IoKind::kRead) {
    const Members from = readable() & group_;
    if (from.empty()) return;
    do {
      next_reader_ = (next_reader_ + 1) % settings_.replicas;
    } while (!from.has(next_reader_));
    op.replica = next_reader_;
    action.kind = Kind::kRead;
  } else {
    action.kind = Kind::kWrite;
    action.generation = generation_;
    if (op.post != 0) CEPHEUS_SITUATION("a write is posted again in another group");
    if (op.post == 0) op.post = ++posts_;
  }
  op.state = OpState::kPosted;
  op.attempt = ++attempts_;
  action.replica = op.replica;
  action.io = op.io;
  action.attempt = op.attempt;
  out.push_back(std::move(action));
  if (!settings_.rules.all_before_ack && !op.is_copy && op.io.kind == IoKind::kWrite) {
    op.state = OpState::kDone;
  }
}

// Writes that were posted before are repeated in the same order, then new ones follow.
void Writer::post_ready(Instant now, WriterActions& out) {
  sorted_.clear();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (ops_[i].state != OpState::kReady) continue;
    if (phase_ == Phase::kServing || ops_[i].is_copy) sorted_.push_back(i);
  }
  std::ranges::sort(sorted_, {}, [this](std::size_t i) {
    return std::pair(ops_[i].post - 1, ops_[i].order);  // post 0 becomes the largest
  });
  for (const std::size_t i : sorted_) post(now, ops_[i], out);
}

void Writer::note_acknowledged(const Op& op) {
  if (op.is_flushed) {
    flushed_ = std::max(flushed_, op.covers);
  } else if (op.io.kind == IoKind::kWrite) {
    const ChunkRange range = chunks_of(op.io);
    ++acks_;
    for (std::uint32_t c = range.first; c < range.end(); ++c) chunks_[c].ack = acks_;
  }
}

void Writer::finish(Instant now, Op& op, IoStatus status, WriterActions& out) {
  if (op.io.kind == IoKind::kWrite && op.state != OpState::kWaiting) {
    count_writes(op.io, -1, now);
  }
  if (status == IoStatus::kOk) note_acknowledged(op);
  op.state = OpState::kFree;
  --under_way_;
  out.push_back({.kind = Kind::kComplete, .io = op.io, .status = status});
}

// A write is acknowledged when all replicas in sync have it and their configuration is on record.
// So a successor that finds a replica that was evicted meanwhile knows better than to trust it.
void Writer::finish_done(Instant now, WriterActions& out) {
  if (!is_confirmed_) return;
  for (Op& op : ops_) {
    if (op.state != OpState::kDone) continue;
    if (op.io.fua && !op.is_flushed) {
      start_flush(now, static_cast<std::size_t>(&op - ops_.data()), out);
    } else {
      finish(now, op, IoStatus::kOk, out);
    }
  }
}

// Continues all requests that can. In several rounds: a finished request frees others.
void Writer::advance(Instant now, WriterActions& out) {
  if (phase_ == Phase::kAcquiring) try_to_begin(now, out);
  if (phase_ == Phase::kAcquiring || has_ended()) return;
  keep_group(now, out);
  keep_growing(now, out);
  keep_copying(now, out);
  if (phase_ == Phase::kServing) {
    finish_done(now, out);
    for (Op& op : ops_) {
      if (op.state == OpState::kWaiting && may_go(op)) admit(now, op, out);
      if (op.state == OpState::kMarking &&
          (are_marked(chunks_of(op.io)) || !settings_.rules.mark_before_data)) {
        op.state = OpState::kReady;
      }
    }
  }
  if (is_formed_) post_ready(now, out);
  if (!settings_.rules.all_before_ack) finish_done(now, out);
}

Writer::Op* Writer::posted(std::uint64_t attempt) {
  for (Op& op : ops_) {
    if (op.state == OpState::kPosted && op.attempt == attempt) return &op;
  }
  return nullptr;
}

void Writer::on_written(Instant now, std::uint64_t attempt, WriterActions& out) {
  if (Op* const op = posted(attempt)) {
    if (!is_confirmed_) CEPHEUS_SITUATION("a write arrives before its configuration is on record");
    op->state = OpState::kDone;
    in_a_row_until_ = {};
  }
  advance(now, out);
}

void Writer::on_read(Instant now, std::uint64_t attempt, bool ok, WriterActions& out) {
  if (Op* const op = posted(attempt)) {
    if (ok) {
      finish(now, *op, IoStatus::kOk, out);
    } else {
      CEPHEUS_SITUATION("a read fails");
      op->state = OpState::kReady;
      evict(now, op->replica, out);
    }
  }
  advance(now, out);
}

void Writer::on_connected(Instant now, unsigned replica, WriterActions& out) {
  if (has_ended()) return;
  Peer& peer = peers_[replica];
  peer.is_connected = true;
  peer.last_message = now;
  peer.next_ping = now + settings_.ping;
  send_request(replica, {.type = RequestType::kPromise}, out);
}

void Writer::on_disconnected(Instant now, unsigned replica, WriterActions& out) {
  if (growing_ == replica) CEPHEUS_RARE_SITUATION("a replica that is about to be in sync is lost");
  if (phase_ == Phase::kAcquiring)
    CEPHEUS_SITUATION("a replica is lost before the writer has begun");
  if (phase_ == Phase::kRecovering) CEPHEUS_SITUATION("a replica is lost while a successor copies");
  if (peers_[replica].is_connected) evict(now, replica, out);
  advance(now, out);
}

// This program was stopped, or its host slept: what replicas have said meanwhile is still to be read.
void Writer::forgive_silence(Instant now) {
  CEPHEUS_SITUATION("a writer was stopped, or slept");
  if (!settings_.rules.forgive_silence) return;
  for (Peer& peer : peers_) {
    if (peer.is_connected) peer.last_message = peer.next_ping = now;
  }
  for (Round& round : rounds_) {
    if (round.until != Instant::max()) {
      round.until = std::max(round.until, now + settings_.silence);
    }
  }
}

void Writer::on_timer(Instant now, WriterActions& out) {
  if (has_ended()) return;
  if (now >= promise_at_) {
    promise_at_ = Instant::max();
    for (unsigned r = 0; r < settings_.replicas; ++r) {
      if (peers_[r].is_connected) on_connected(now, r, out);
    }
  }
  if (now - std::exchange(looked_at_, now) > 2 * settings_.ping) forgive_silence(now);
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    Peer& peer = peers_[r];
    if (!peer.is_connected) continue;
    if (now >= peer.last_message + settings_.silence) {
      CEPHEUS_SITUATION("a replica is silent for too long");
      evict(now, r, out);
    } else if (now >= peer.next_ping) {
      peer.next_ping = now + settings_.ping;
      if (peer.has_promised) send_request(r, Request{}, out);
    }
  }
  evict_hung(now, out);
  if (phase_ == Phase::kServing && now >= clean_at_) start_cleaning(now, out);
  advance(now, out);
}

Instant Writer::deadline() const {
  if (has_ended()) return Instant::max();
  const bool is_serving = phase_ == Phase::kServing;
  Instant at = promise_at_;
  for (unsigned r = 0; r < settings_.replicas; ++r) {
    const Peer& peer = peers_[r];
    if (!peer.is_connected) continue;
    at = std::min({at, peer.next_ping, peer.last_message + settings_.silence});
    // It waits for one that returns before it, unless its disk is to be tried.
    const bool is_next =
        peer.is_hung ? !is_requested(r, Round::Purpose::kTrial) : !is_one_returning();
    if (is_serving && peer.has_promised && !peer.is_syncing && !config_.members.has(r) && is_next) {
      at = std::min(at, peer.rejoin_at);
    }
    // Otherwise it is copying, or waits for an event.
    if (is_serving && is_formed_ && ops_.back().state == OpState::kFree && peer.has_todo &&
        !peer.todo.empty()) {
      at = std::min(at, copy_at_);
    }
  }
  if (phase_ == Phase::kAcquiring) return at;
  for (const Round& round : rounds_) {
    if (may_be_late(round)) at = std::min(at, round.until);
  }
  if (!has_group_ && unrecorded_.empty() && promised().includes(wanted())) {
    at = std::min(at, form_at_);
  }
  if (is_serving) at = std::min(at, clean_at_);
  return at;
}

std::uint32_t Writer::marked() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(chunks_, [](const Chunk& c) { return c.state != ChunkState::kClear; }));
}

ChunkBitmap Writer::unflushed() const {
  ChunkBitmap bitmap(settings_.geometry.chunks());
  for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].ack > flushed_) bitmap.set(c);
  }
  return bitmap;
}

std::uint32_t Writer::lacking(unsigned replica) const {
  const Peer& peer = peers_[replica];
  if (peer.has_todo) return peer.todo.count();
  return config_.members.has(replica) ? 0 : marked();
}

}  // namespace cepheus::replica
