// A replica under faults: the real ReplicaEngine over simulated memory, two disks (record, data)
// and a NIC's view of membership. An action that saves waits for its disk; an answer is sent when
// its content is durable.
//
// A crash may leave the block in progress half written. A host that crashes keeps only what reached
// its disk; the kernel may have written any block back before. A crashed program starts again after
// 1 to 60 ms, and not before its record's disk works.
#include "replica/sim/world.h"

namespace cepheus::replica::sim {

void DiskQueue::hang(Instant until) {
  until_ = std::max(until_, until);
  events_.at(until_, [this] {
    if (events_.now() >= until_) go_on();
  });
}

void DiskQueue::go_on() {
  until_ = {};
  while (!waiting_.empty()) {
    const auto work = std::move(waiting_.front());
    waiting_.pop_front();
    work();
  }
}

void DiskQueue::run(std::function<void()> work) {
  if (until_ > events_.now() || !waiting_.empty()) {
    waiting_.push_back(std::move(work));
  } else {
    work();
  }
}

ReplicaHost::ReplicaHost(World& world, unsigned index)
    : world_(world),
      index_(index),
      record_(ReplicaRecord::fresh(world.plan.settings({}).geometry, world.plan.replicas)),
      record_disk_(world.events),
      data_disk_(world.events),
      memory_(world.plan.blocks),
      disk_(world.plan.blocks) {
  engine_ = std::make_unique<ReplicaEngine>(world.plan.settings({}).geometry, record_, world.rules);
}

void ReplicaHost::start() {
  if (is_up()) return;
  // A start saves the record first.
  const Instant hangs_until = record_disk_.hangs_until();
  if (hangs_until > world_.events.now()) {
    world_.events.at(hangs_until, [this] { start(); });
    return;
  }
  // A volume that was never written to has nothing to lose.
  if (record_.promised.number != 0) record_.note_restart(lost_memory_);
  lost_memory_ = false;
  engine_ =
      std::make_unique<ReplicaEngine>(world_.plan.settings({}).geometry, record_, world_.rules);
}

// Each unflushed block may be on disk or not, as the kernel's write-back chose.
void ReplicaHost::crash(bool with_host) {
  has_crashed_ = true;
  if (landing_ && world_.random.chance(0.5) && memory_[landing_->first] != landing_->second) {
    memory_[landing_->first] = world_.history.tear(landing_->second);
  }
  landing_.reset();
  if (with_host || world_.plan.is_direct) {
    has_forgotten_ = lost_memory_ = true;
    std::vector<bool> all(memory_.size(), true);
    if (!world_.plan.is_direct) write_back(all, 0.3);
    memory_ = disk_;
  }
  world_.note_crash();
  world_.log("replica " + std::to_string(index_) + " is down");
  engine_.reset();
  ++starts_;
  joined_.clear();
  record_disk_.forget();
  data_disk_.forget();
  crash_in_ = 0;
  world_.drop_links_of_replica(index_);
  world_.events.in(world_.random.between(Duration{std::chrono::milliseconds(1)},
                                         Duration{std::chrono::milliseconds(60)}),
                   [this] { start(); });
}

void ReplicaHost::hang_disk(Instant until, bool record, bool data) {
  if (record) record_disk_.hang(until);
  if (data) data_disk_.hang(until);
}

void ReplicaHost::mend_disk() {
  const bool may_wait = record_disk_.hangs_until() > world_.events.now();
  record_disk_.go_on();
  data_disk_.go_on();
  if (may_wait) start();
}

void ReplicaHost::replace_disk() {
  crash(true);
  record_ = ReplicaRecord::fresh(world_.plan.settings({}).geometry, world_.plan.replicas);
  lost_memory_ = false;
  memory_.assign(memory_.size(), 0);
  disk_ = memory_;
  world_.note_new_disk();
  mend_disk();
}

// A block that the NIC is storing may reach the disk half old and half new.
void ReplicaHost::write_back(std::vector<bool>& left, double share) {
  for (std::size_t b = 0; b < left.size(); ++b) {
    if (!left[b] || !world_.random.chance(share)) continue;
    left[b] = false;
    const bool is_landing = landing_ && landing_->first == b && memory_[b] != landing_->second;
    disk_[b] = is_landing && world_.random.chance(0.5) ? world_.history.tear(landing_->second)
                                                       : memory_[b];
  }
}

std::vector<bool> ReplicaHost::blocks_of(const ChunkBitmap& chunks) const {
  std::vector<bool> blocks(memory_.size(), true);
  for (std::uint32_t b = 0; world_.plan.is_direct && b < blocks.size(); ++b) {
    blocks[b] = chunks.has(b / world_.plan.chunk_blocks);
  }
  return blocks;
}

// A flush takes time, in which data arrives, requests are answered, and the program may end. Each
// block goes to the disk once, at some moment of the flush; data that lands later is not flushed.
void ReplicaHost::flush(Link& link, const ChunkBitmap& chunks, const Answer& answer) {
  const double dice = world_.random.fraction();
  const Duration half = world_.soon(dice < 0.02 ? 15000 : dice < 0.1 ? 3000 : 60);
  const auto left = std::make_shared<std::vector<bool>>(blocks_of(chunks));
  const auto in = [this, start = starts_](Duration delay, std::function<void()> work) {
    world_.events.in(delay, [this, start, work = std::move(work)] {
      if (starts_ == start) work();
    });
  };
  write_back(*left, 0.3);
  in(half, [this, left] { write_back(*left, 0.5); });
  in(2 * half, [this, left, &link, answer] {
    write_back(*left, 1);
    if (link.replica_holds) world_.send(link, std::optional<Answer>(answer));
  });
}

// `is_named`: as a replica that has everything.
void ReplicaHost::save_record(const ReplicaRecord& now, bool is_named) {
  record_.promised = now.promised;
  record_.config = now.config;
  record_.loss = now.loss;
  world_.note_record();
  if (is_named) has_crashed_ = has_forgotten_ = false;
}

// No answer before its content is durable.
void ReplicaHost::answer(Link& link, const Answer& answer,
                         const std::optional<ChunkBitmap>& to_flush, bool to_record) {
  const auto send = [this, &link, answer] {
    if (link.replica_holds) world_.send(link, std::optional<Answer>(answer));
  };
  if (to_flush) {
    data_disk_.run([this, &link, chunks = *to_flush, answer] { flush(link, chunks, answer); });
  } else if (!to_record) {
    send();
  } else {
    record_disk_.run(send);
  }
}

void ReplicaHost::on_request(Link& link, const Request& request) {
  if (!is_up()) return;
  ReplicaActions actions;
  engine_->on_request(link.id, request, actions);
  world_.note_claim(engine_->record().promised);
  std::optional<ChunkBitmap> to_flush;
  bool to_record = request.type != RequestType::kPing && request.type != RequestType::kJoin;
  for (ReplicaAction& action : actions) {
    if (crash_in_ != 0 && --crash_in_ == 0) return crash(false);
    switch (action.kind) {
      case ReplicaAction::Kind::kFence:
        joined_.clear();
        landing_.reset();
        break;
      case ReplicaAction::Kind::kDisconnect:
        break;  // the writer behind it detects this by itself
      case ReplicaAction::Kind::kSaveRecord: {
        const bool is_named =
            request.type == RequestType::kConfig && request.config == engine_->record().config;
        record_disk_.run([this, now = engine_->record(), is_named] { save_record(now, is_named); });
        break;
      }
      case ReplicaAction::Kind::kSaveMarks:
        record_disk_.run([this, marks = engine_->record().marks] { record_.marks = marks; });
        to_record = true;
        break;
      case ReplicaAction::Kind::kFlush:
        to_flush = std::move(action.chunks);
        break;
      case ReplicaAction::Kind::kJoin:
        joined_[link.id] = action.generation;
        break;
      case ReplicaAction::Kind::kAnswer:
        if (action.link == link.id) answer(link, action.answer, to_flush, to_record);
        break;
    }
  }
}

void ReplicaHost::on_disconnected(Link& link) {
  if (!is_up()) return;
  ReplicaActions actions;
  engine_->on_disconnected(link.id, actions);
  for (const ReplicaAction& action : actions) {
    if (action.kind == ReplicaAction::Kind::kFence) joined_.clear();
  }
}

}  // namespace cepheus::replica::sim
