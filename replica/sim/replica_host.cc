#include "replica/sim/world.h"

namespace cepheus::replica::sim {

ReplicaHost::ReplicaHost(World& world, unsigned index)
    : world_(world),
      index_(index),
      record_(ReplicaRecord::fresh(world.plan.settings({}).geometry, world.plan.replicas)),
      memory_(world.plan.blocks),
      disk_(world.plan.blocks) {
  engine_ = std::make_unique<ReplicaEngine>(world.plan.settings({}).geometry, record_, world.rules);
}

void ReplicaHost::start() {
  if (is_up()) return;
  // A volume that nobody has written to has nothing to lose.
  if (record_.promised.number != 0) record_.note_restart(lost_memory_);
  lost_memory_ = false;
  engine_ =
      std::make_unique<ReplicaEngine>(world_.plan.settings({}).geometry, record_, world_.rules);
}

// What was not flushed is on disk or not, block by block, as the kernel came to it.
void ReplicaHost::crash(bool with_host) {
  has_crashed_ = true;
  if (landing_ && world_.random.chance(0.5) && memory_[landing_->first] != landing_->second) {
    memory_[landing_->first] = world_.history.tear(landing_->second);
  }
  landing_.reset();
  if (with_host || world_.plan.is_direct) {
    has_forgotten_ = lost_memory_ = true;
    ChunkBitmap all(world_.plan.settings({}).geometry.chunks());
    all.set_all();
    if (!world_.plan.is_direct) write_back(all, 0.3);
    memory_ = disk_;
  }
  world_.note_crash();
  world_.say("replica " + std::to_string(index_) + " is down");
  engine_.reset();
  ++starts_;
  joined_.clear();
  crash_in_ = 0;
  world_.drop_links_of_replica(index_);
  world_.events.in(world_.random.between(Duration{std::chrono::milliseconds(1)},
                                         Duration{std::chrono::milliseconds(60)}),
                   [this] { start(); });
}

void ReplicaHost::replace_disk() {
  crash(true);
  record_ = ReplicaRecord::fresh(world_.plan.settings({}).geometry, world_.plan.replicas);
  lost_memory_ = false;
  memory_.assign(memory_.size(), 0);
  disk_ = memory_;
}

void ReplicaHost::write_back(const ChunkBitmap& chunks, double share) {
  for (std::uint32_t b = 0; b < memory_.size(); ++b) {
    if (world_.plan.is_direct && !chunks.has(b / world_.plan.chunk_blocks)) continue;
    if (share == 1 || world_.random.chance(share)) disk_[b] = memory_[b];
  }
}

// It takes its time, in which data comes, requests are answered, and all may end.
void ReplicaHost::flush(Link& link, const ChunkBitmap& chunks, const Answer& answer) {
  const Duration half = world_.soon(world_.random.chance(0.1) ? 3000 : 60);
  const auto in = [this, start = starts_](Duration delay, std::function<void()> what) {
    world_.events.in(delay, [this, start, what = std::move(what)] {
      if (starts_ == start) what();
    });
  };
  in(half, [this, chunks] { write_back(chunks, 0.5); });
  in(2 * half, [this, chunks, &link, answer] {
    write_back(chunks, 1);
    if (link.replica_holds) world_.send(link, std::optional<Answer>(answer));
  });
}

void ReplicaHost::save_record() {
  const ReplicaRecord& now = engine_->record();
  record_.promised = now.promised;
  record_.config = now.config;
  record_.loss = now.loss;
  world_.note_record();
}

void ReplicaHost::on_request(Link& link, const Request& request) {
  if (!is_up()) return;
  ReplicaActions actions;
  engine_->on_request(link.id, request, actions);
  std::optional<ChunkBitmap> to_flush;
  for (ReplicaAction& action : actions) {
    if (crash_in_ != 0 && --crash_in_ == 0) return crash(false);
    switch (action.kind) {
      case ReplicaAction::Kind::kFence:
        joined_.clear();
        landing_.reset();
        break;
      case ReplicaAction::Kind::kHangUp:
        break;  // the writer behind it finds out by itself
      case ReplicaAction::Kind::kSaveRecord:
        save_record();
        if (request.ask == Ask::kConfig && request.config == record_.config) {
          has_crashed_ = has_forgotten_ = false;
        }
        break;
      case ReplicaAction::Kind::kSaveMarks:
        record_.marks = engine_->record().marks;
        break;
      case ReplicaAction::Kind::kFlush:
        to_flush = std::move(action.chunks);
        break;
      case ReplicaAction::Kind::kJoin:
        joined_[link.id] = action.generation;
        break;
      case ReplicaAction::Kind::kAnswer:
        if (action.link != link.id) break;
        if (to_flush) {
          flush(link, *to_flush, action.answer);
        } else {
          world_.send(link, std::optional<Answer>(action.answer));
        }
        break;
    }
  }
}

void ReplicaHost::on_hang_up(Link& link) {
  if (!is_up()) return;
  ReplicaActions actions;
  engine_->on_hang_up(link.id, actions);
  for (const ReplicaAction& action : actions) {
    if (action.kind == ReplicaAction::Kind::kFence) joined_.clear();
  }
}

}  // namespace cepheus::replica::sim
