#include "replica/sim/world.h"

namespace cepheus::replica::sim {

ReplicaHost::ReplicaHost(World& world, unsigned index)
    : world_(world),
      index_(index),
      record_(ReplicaRecord::fresh(world.plan.settings({}).geometry, world.plan.replicas)),
      memory_(world.plan.blocks),
      disk_(world.plan.blocks) {
  start();
  record_.loss = Loss::kNone;
  engine_ = std::make_unique<ReplicaEngine>(world.plan.settings({}).geometry, record_, world.rules);
}

void ReplicaHost::start() {
  if (is_up()) return;
  record_.note_restart(lost_memory_);
  lost_memory_ = false;
  engine_ =
      std::make_unique<ReplicaEngine>(world_.plan.settings({}).geometry, record_, world_.rules);
}

// What was not flushed is on disk or not, block by block, as the kernel came to it.
void ReplicaHost::crash(bool with_host) {
  if (with_host || world_.plan.is_direct) {
    world_.note_memory_loss(index_);
    lost_memory_ = true;
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      if (!world_.plan.is_direct && world_.random.chance(0.3)) disk_[b] = memory_[b];
    }
    memory_ = disk_;
  }
  world_.say("replica " + std::to_string(index_) + " is down");
  engine_.reset();
  joined_.clear();
  crash_in_ = 0;
  world_.drop_links_of_replica(index_);
  world_.events.in(world_.random.between(Duration{std::chrono::milliseconds(1)},
                                         Duration{std::chrono::milliseconds(60)}),
                   [this] { start(); });
}

void ReplicaHost::flush(const ChunkBitmap& chunks) {
  for (std::uint32_t b = 0; b < memory_.size(); ++b) {
    if (!world_.plan.is_direct || chunks.has(b / world_.plan.chunk_blocks)) disk_[b] = memory_[b];
  }
}

void ReplicaHost::on_request(Link& link, const Request& request) {
  if (!is_up()) return;
  ReplicaActions actions;
  engine_->on_request(link.id, request, actions);
  for (ReplicaAction& action : actions) {
    if (crash_in_ != 0 && --crash_in_ == 0) return crash(false);
    switch (action.kind) {
      case ReplicaAction::Kind::kFence:
        joined_.clear();
        break;
      case ReplicaAction::Kind::kHangUp:
        break;  // the writer behind it finds out by itself
      case ReplicaAction::Kind::kSaveRecord: {
        const ReplicaRecord& now = engine_->record();
        record_.promised = now.promised;
        record_.config = now.config;
        record_.loss = now.loss;
        break;
      }
      case ReplicaAction::Kind::kSaveMarks:
        record_.marks = engine_->record().marks;
        break;
      case ReplicaAction::Kind::kFlush:
        flush(action.chunks);
        break;
      case ReplicaAction::Kind::kJoin:
        joined_[link.id] = action.generation;
        break;
      case ReplicaAction::Kind::kAnswer:
        if (action.link == link.id) world_.send(link, std::optional<Answer>(action.answer));
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
