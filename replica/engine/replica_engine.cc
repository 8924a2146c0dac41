// A promise goes to the highest epoch. It closes the way for all earlier writers (kFence), ends the
// former connection, and is saved before its answer. A promise to a lower epoch is refused.
//
// All other requests must come from the promised writer: another epoch is refused, an older
// connection of the same writer gets no answer. Every answer follows what it reports: record,
// marks, flush. A lost connection closes the way, too.
//
// A new disk has lost everything (Loss::kAll) until a configuration names this replica as complete.
// docs/replica.md has the reasons.
#include "replica/engine/replica_engine.h"

#include <algorithm>

#include "wire/situation.h"

namespace cepheus::replica {

using Kind = ReplicaAction::Kind;

ReplicaRecord ReplicaRecord::fresh(const Geometry& geometry, unsigned replicas) {
  ReplicaRecord record;
  record.config.members = Members::all(replicas);
  record.loss = Loss::kAll;
  record.marks = ChunkBitmap(geometry.chunks());
  return record;
}

void ReplicaRecord::note_restart(bool host) {
  loss = std::max(loss, host ? Loss::kMemory : Loss::kProcess);
}

ReplicaEngine::ReplicaEngine(const Geometry& geometry, ReplicaRecord record, const Rules& rules)
    : geometry_(geometry), rules_(rules), record_(std::move(record)) {
  if (record_.config.epoch.number == 0) record_.loss = Loss::kAll;
  if (!rules_.new_disk_lacks_all && record_.loss == Loss::kAll) record_.loss = Loss::kNone;
}

void ReplicaEngine::answer(std::uint64_t link, const Request& request, Verdict verdict,
                           ReplicaActions& out) {
  out.push_back({.kind = Kind::kAnswer,
                 .link = link,
                 .answer = {request.type, request.serial, verdict, record_.promised}});
}

void ReplicaEngine::promise(std::uint64_t link, const Request& request, ReplicaActions& out) {
  if (request.epoch < record_.promised) {
    CEPHEUS_SITUATION("a writer comes back after its successor");
    return answer(link, request, Verdict::kRefused, out);
  }
  // A new connection of the same writer fences, too: its earlier writes must not land any more.
  if (rules_.fencing) out.push_back({Kind::kFence});
  if (link_ != 0 && link_ != link && rules_.fencing) {
    CEPHEUS_SITUATION("a promise ends another writer's connection");
    out.push_back({Kind::kDisconnect, link_});
  }
  if (request.epoch == record_.promised)
    CEPHEUS_SITUATION("a writer connects again under its own epoch");
  link_ = link;
  if (request.epoch != record_.promised) {
    record_.promised = request.epoch;
    out.push_back({Kind::kSaveRecord});
  }
  answer(link, request, Verdict::kDone, out);
  Answer& answer = out.back().answer;
  answer.config = record_.config;
  answer.loss = record_.loss;
  answer.words = record_.marks.words();
}

void ReplicaEngine::on_request(std::uint64_t link, const Request& request, ReplicaActions& out) {
  if (request.type == RequestType::kPromise) return promise(link, request, out);
  if (request.epoch != record_.promised && rules_.fencing) {
    CEPHEUS_SITUATION("a request of a writer that was succeeded");
    return answer(link, request, Verdict::kRefused, out);
  }
  // An old connection of the same writer: it needs no answers.
  if (link != link_ && rules_.fencing) return;
  switch (request.type) {
    case RequestType::kPromise:
    case RequestType::kPing:
      break;
    case RequestType::kConfig:
    case RequestType::kAdopt:
      if (is_later(request.config, record_.config)) record_.config = request.config;
      if (request.type == RequestType::kConfig) record_.loss = Loss::kNone;
      out.push_back({Kind::kSaveRecord});
      break;
    case RequestType::kBitmap:
      record_.marks = ChunkBitmap(geometry_.chunks(), request.words);
      out.push_back({Kind::kSaveMarks});
      break;
    case RequestType::kMark:
      if (request.range.first > geometry_.chunks() ||
          request.range.count > geometry_.chunks() - request.range.first) {
        return answer(link, request, Verdict::kFailed, out);
      }
      record_.marks.set(request.range);
      out.push_back({Kind::kSaveMarks});
      break;
    case RequestType::kFlush:
      out.push_back({Kind::kFlush});
      out.back().chunks = unflushed();
      break;
    case RequestType::kJoin:
      // A new disk will be copied everything, and then holds a part of a volume.
      if (record_.loss == Loss::kAll) {
        CEPHEUS_SITUATION("a new disk joins");
        record_.marks.set_all();
        out.push_back({Kind::kSaveMarks});
      }
      out.push_back({Kind::kJoin, link, request.generation});
      break;
  }
  answer(link, request, Verdict::kDone, out);
}

void ReplicaEngine::on_disconnected(std::uint64_t link, ReplicaActions& out) {
  if (link != link_) {
    CEPHEUS_SITUATION("an old connection ends after a new one began");
    return;
  }
  link_ = 0;
  // A writer that can't reach this replica evicts it: its data must not land any more.
  if (rules_.fencing) out.push_back({Kind::kFence});
}

}  // namespace cepheus::replica
