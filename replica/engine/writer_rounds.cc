// Requests to several replicas at once: marks, flushes, configurations.
//
// A round goes to some replicas, and ends when all that still belong to it have answered. So it
// ends also when its last replica is lost.
//
//   kMark      before data is sent: all members' bitmaps have its chunks
//   kFlush     of a request; kSyncFlush of a replica that returns; kClean before marks are cleared
//   kConfig    a configuration is on record once all its members have it
//   kTrial     a disk that hung answers again
//
// A replica is late when one in sync has answered and `disk` has passed since, or as long as that
// one took, if that is longer. Then it is evicted. Of one that returns a late flush is given up.
// Marks are cleared when all replicas are in sync and flushed.
#include <algorithm>

#include "replica/engine/writer.h"
#include "wire/situation.h"

namespace cepheus::replica {

void Writer::send_request(unsigned replica, Request request, WriterActions& out) {
  if (request.serial == 0) request.serial = ++serials_;
  request.epoch = epoch_;
  out.push_back({.kind = Kind::kSend, .replica = replica, .request = std::move(request)});
}

void Writer::start_round(Instant now, Round round, WriterActions& out) {
  round.request.serial = ++serials_;
  round.started = now;
  for (const unsigned r : round.waiting) send_request(r, round.request, out);
  rounds_.push_back(std::move(round));
}

// No request of the user waits for it.
void Writer::start_flush_of(Instant now, unsigned replica, Round::Purpose purpose,
                            WriterActions& out) {
  start_round(now,
              {.purpose = purpose,
               .request = {.type = RequestType::kFlush},
               .waiting = Members::only(replica),
               .peer = replica},
              out);
}

bool Writer::is_requested(unsigned replica, Round::Purpose purpose) const {
  return std::ranges::any_of(rounds_, [&](const Round& round) {
    return round.purpose == purpose && round.peer == replica;
  });
}

// The volume continues without the late replicas: one in sync has answered. Not before the first
// configuration is on record, since all of its members have to promise.
bool Writer::may_be_late(const Round& round) const {
  return settings_.rules.evict_hung_disk && round.until != Instant::max() && unrecorded_.empty() &&
         !(in_sync() - round.waiting).empty();
}

void Writer::flush_again(unsigned replica) {
  peers_[replica].is_flushed = false;
  std::erase_if(rounds_, [&](const Round& round) {
    return round.purpose == Round::Purpose::kSyncFlush && round.peer == replica;
  });
}

// One after the other: without one of them, another may be the last in sync. A replica that is
// being copied has all copies to flush, so requests continue without its flushes.
void Writer::evict_hung(Instant now, WriterActions& out) {
  const auto find = [&] {
    return std::ranges::find_if(
        rounds_, [&](const Round& round) { return may_be_late(round) && now >= round.until; });
  };
  for (auto late = find(); late != rounds_.end(); late = find()) {
    const unsigned replica = late->waiting.lowest();
    if (late->purpose == Round::Purpose::kFlush && !config_.members.has(replica)) {
      CEPHEUS_RARE_SITUATION("a replica that returns flushes late");
      peers_[replica].flushes_late = true;
      late->waiting = late->waiting.without(replica);
      const Round ended = *late;
      if (ended.waiting.empty()) rounds_.erase(late);
      flush_again(replica);
      if (ended.waiting.empty()) end_round(now, ended, out);
      continue;
    }
    CEPHEUS_RARE_SITUATION("a disk hangs");
    peers_[replica].is_hung = true;
    evict(now, replica, out);
  }
}

void Writer::leave_rounds(Instant now, unsigned replica, WriterActions& out) {
  for (Round& round : rounds_) round.waiting = round.waiting.without(replica);
  for (std::size_t i = 0; i < rounds_.size();) {
    if (!rounds_[i].waiting.empty()) {
      ++i;
      continue;
    }
    CEPHEUS_SITUATION("a round ends because its last replica is lost");
    const Round ended = std::move(rounds_[i]);
    rounds_.erase(rounds_.begin() + static_cast<std::ptrdiff_t>(i));
    end_round(now, ended, out);
    i = 0;
  }
}

void Writer::on_answer(Instant now, unsigned replica, const Answer& answer, WriterActions& out) {
  Peer& peer = peers_[replica];
  if (!peer.is_connected || has_ended()) return;
  peer.last_message = now;
  switch (answer.verdict) {
    case Verdict::kRefused:
      on_refusal(now, replica, answer, out);
      advance(now, out);
      return;
    case Verdict::kFailed:
      evict(now, replica, out);
      advance(now, out);
      return;
    case Verdict::kDone:
      break;
  }
  if (answer.type == RequestType::kPromise) {
    on_promise(replica, answer);
  } else {
    const auto round = std::ranges::find_if(rounds_, [&](const Round& r) {
      return r.request.serial == answer.serial && r.waiting.has(replica);
    });
    if (round == rounds_.end()) {  // a ping's, or of a round that no longer needs it
      if (answer.type != RequestType::kPing)
        CEPHEUS_SITUATION("an answer comes after its round has ended");
      return;
    }
    round->waiting = round->waiting.without(replica);
    if (round->until == Instant::max() && in_sync().has(replica)) {
      round->until = now + std::max(settings_.disk, now - round->started);
    }
    if (round->waiting.empty()) {
      const Round ended = std::move(*round);
      rounds_.erase(round);
      end_round(now, ended, out);
    }
  }
  advance(now, out);
}

void Writer::end_round(Instant now, const Round& round, WriterActions& out) {
  switch (round.purpose) {
    case Round::Purpose::kMark:
      for (std::uint32_t c = round.request.range.first; c < round.request.range.end(); ++c) {
        chunks_[c].state = ChunkState::kMarked;
      }
      break;
    case Round::Purpose::kConfig:
      if (round.request.config.version != config_.version) {
        CEPHEUS_SITUATION("a configuration is on record after it was replaced");
        break;
      }
      if (!unrecorded_.empty()) {
        CEPHEUS_SITUATION("a growth that was never on record is put on record first");
        unrecorded_ = {};
        propose(now, first_, out);
        break;
      }
      is_confirmed_ = true;
      known_ = config_;
      if (growing_) {
        CEPHEUS_SITUATION("a replica is in sync again");
        Peer& peer = peers_[*growing_];
        peer.is_syncing = peer.has_todo = peer.is_flushed = peer.is_fresh = false;
        peer.flushes_late = false;
        send_marks(*growing_, out);  // a new disk's bitmap has all chunks until now
        growing_.reset();
      }
      break;
    case Round::Purpose::kFlush:
      if (ops_[round.op].state != OpState::kFlushing) break;
      ops_[round.op].state = OpState::kDone;
      ops_[round.op].is_flushed = true;
      break;
    case Round::Purpose::kSyncFlush:
      if (peers_[round.peer].has_todo) peers_[round.peer].is_flushed = true;
      peers_[round.peer].flushes_late = false;
      break;
    case Round::Purpose::kClean:
      clean(out);
      break;
    case Round::Purpose::kTrial:
      if (peers_[round.peer].has_promised) peers_[round.peer].is_hung = false;
      break;
  }
}

// Every member's bitmap has the chunks before any data is sent. In several rounds if some are
// marked already.
void Writer::mark(Instant now, ChunkRange range, WriterActions& out) {
  for (std::uint32_t c = range.first; c < range.end(); ++c) {
    if (chunks_[c].state != ChunkState::kClear) continue;
    Round round{.purpose = Round::Purpose::kMark,
                .request = {.type = RequestType::kMark, .range = {c, 0}},
                .waiting = wanted()};
    for (; c < range.end() && chunks_[c].state == ChunkState::kClear; ++c) {
      chunks_[c].state = ChunkState::kMarking;
      ++round.request.range.count;
    }
    start_round(now, std::move(round), out);
  }
}

ChunkBitmap Writer::marks() const {
  ChunkBitmap bitmap(settings_.geometry.chunks());
  for (std::uint32_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].state != ChunkState::kClear) bitmap.set(c);
  }
  return bitmap;
}

// A returning replica keeps its own marks until it is in sync. It may hold data of a writer that all
// replicas in sync have forgotten, because they got new disks.
ChunkBitmap Writer::lacking_marks(const Peer& peer) const {
  ChunkBitmap bitmap = marks();
  if (peer.is_syncing && !peer.marks.empty())
    CEPHEUS_SITUATION("a replica returns with marks of its own");
  if (peer.is_syncing) bitmap.add(peer.marks);
  return bitmap;
}

void Writer::send_marks(unsigned replica, WriterActions& out) {
  const ChunkBitmap bitmap = lacking_marks(peers_[replica]);
  send_request(replica, {.type = RequestType::kBitmap, .words = bitmap.words()}, out);
}

// Marks stay while replicas may differ in memory or on disk. They are cleared when all replicas are
// in sync and flushed, and the chunk was idle for a while.
void Writer::start_cleaning(Instant now, WriterActions& out) {
  clean_at_ = now + settings_.clean;
  const bool all = is_confirmed_ && config_.members == Members::all(settings_.replicas);
  const bool any = std::ranges::any_of(chunks_, [&](const Chunk& c) {
    return c.state == ChunkState::kMarked && c.writes == 0 && c.last_write + settings_.clean <= now;
  });
  const bool is_cleaning = std::ranges::any_of(
      rounds_, [](const Round& r) { return r.purpose == Round::Purpose::kClean; });
  if (!all || !any || is_cleaning) return;
  clean_before_ = now - settings_.clean;
  if (!settings_.rules.flush_before_clear) return clean(out);
  start_round(now,
              {.purpose = Round::Purpose::kClean,
               .request = {.type = RequestType::kFlush},
               .waiting = config_.members},
              out);
}

void Writer::clean(WriterActions& out) {
  if (!is_confirmed_ || config_.members != Members::all(settings_.replicas)) {
    CEPHEUS_SITUATION("a replica is lost while marks are cleared");
    return;
  }
  bool any = false;
  for (Chunk& chunk : chunks_) {
    // Idle since before the flush began.
    if (chunk.state != ChunkState::kMarked || chunk.writes != 0 ||
        chunk.last_write > clean_before_) {
      if (chunk.writes != 0) CEPHEUS_SITUATION("a chunk is written while others are cleaned");
      continue;
    }
    chunk.ack = 0;
    chunk.state = ChunkState::kClear;
    any = true;
  }
  if (!any) return;
  // One request each: a replica limits the requests that wait for its disk.
  for (unsigned r = 0; r < settings_.replicas; ++r) send_marks(r, out);
}

}  // namespace cepheus::replica
