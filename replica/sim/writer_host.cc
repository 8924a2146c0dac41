// A writer under faults: the real Writer over simulated links, groups and copies. A group's WRITEs
// pass one pipe for each replica, block by block. A replica outside the group stops its pipe, and
// some time later the group fails.
//
// A writer must not end without a loss or a later claim, and one that was stopped must not give up
// living replicas. A crash keeps packets in flight for a short time.
#include <functional>

#include "replica/sim/world.h"

namespace cepheus::replica::sim {

using namespace std::chrono_literals;
using Kind = WriterAction::Kind;

WriterHost::WriterHost(World& world, unsigned index)
    : world_(world),
      index_(index),
      engine_(std::make_unique<Writer>(world.plan.settings(world.rules), world.random.next())),
      links_(world.plan.replicas),
      sure_since_(world.events.now()) {
  for (unsigned r = 0; r < links_.size(); ++r) dial(r, world_.soon(500));
}

// Later, if the program still lives; if it is stopped, when it continues.
void WriterHost::after(Duration delay, std::function<void()> work) {
  world_.events.in(delay, [this, work = std::move(work)]() mutable {
    if (!is_up()) return;
    const Duration wait = paused_until - world_.events.now();
    if (wait > Duration{0}) return after(wait, std::move(work));
    work();
  });
}

template <typename Event, typename... Arguments>
void WriterHost::handle(Event event, const Arguments&... arguments) {
  if (!is_up()) return;
  WriterActions actions;
  std::invoke(event, *engine_, world_.events.now(), arguments..., actions);
  engine_->check_consistent();
  run(actions);
  if (!is_up()) return;
  note_phase();
  log_config();
  arm();
}

void WriterHost::note_phase() {
  const Writer::Phase phase = engine_->phase();
  if (phase == Writer::Phase::kFailed && !has_ended_) {
    world_.log("writer " + std::to_string(index_) + " reports lost data");
    // A configuration that was never on record has no disk in sync.
    const bool is_known =
        world_.disks_are_lost || (world_.has_new_disk && !world_.has_disk_in_sync({}));
    if (world_.history.last_loss() < sure_since_ && !(engine_->has_lost_disks() && is_known)) {
      world_.fail("a writer ended without a loss");
    }
    world_.events.in(world_.soon(5000), [this, has_lost_disks = engine_->has_lost_disks()] {
      if (world_.faults_ended || world_.writers.back().get() != this) return;
      if (has_lost_disks && world_.random.chance(0.5)) world_.create_anew();
      world_.add_writer();
    });
  }
  if (phase == Writer::Phase::kFenced && !has_ended_) {
    const Epoch own = has_served_ ? held_ : engine_->epoch();
    if (!world_.has_other_claim(own)) world_.fail("a writer ended without another one");
  }
  has_ended_ = engine_->has_ended();
  const bool was_serving = is_serving_;
  is_serving_ = phase == Writer::Phase::kServing;
  if (was_serving || !is_serving_) return;
  // Replicas in sync may have crashed since: the writer will learn of it.
  bool has_all = true;
  for (const unsigned r : engine_->config().members) {
    has_all &= links_[r] != nullptr && links_[r]->replica_holds;
  }
  world_.log("writer " + std::to_string(index_) + " serves" + (has_served_ ? " again" : ""));
  if (has_served_ && has_all) {
    world_.history.resume(index_);
    sure_since_ = world_.events.now();
  }
  world_.disks_are_lost = false;
  world_.history.serve(world_.events.now(), index_, engine_->epoch());
  held_ = engine_->epoch();
  if (has_served_) return;
  has_served_ = true;
  ++world_.outcome.takeovers;
}

void WriterHost::log_config() {
  const Config& config = engine_->config();
  const bool is_on_record = engine_->config_is_confirmed();
  if (config == logged_ && is_on_record == is_logged_on_record_) return;
  logged_ = config;
  is_logged_on_record_ = is_on_record;
  std::string members;
  for (const unsigned r : config.members) members += " " + std::to_string(r);
  world_.log("writer " + std::to_string(index_) + ", epoch " + std::to_string(config.epoch.number) +
             ": in sync" + members + (is_on_record ? ", on record" : ", proposed"));
}

void WriterHost::arm() {
  const Instant at = engine_->deadline();
  if (at == Instant::max() || (armed_ > world_.events.now() && armed_ <= at)) return;
  armed_ = at;
  const Duration wait = std::max(at - world_.events.now(), Duration{1us});
  after(wait, [this, at] {
    if (armed_ != at) return;
    armed_ = Instant::max();
    on_timer();
  });
}

void WriterHost::pause(Instant until) {
  paused_from_ = world_.events.now();
  paused_until = until;
}

// Replicas that were there all the while that it was stopped have had no chance to be heard.
void WriterHost::on_timer() {
  const Instant now = world_.events.now();
  const Duration ping = world_.plan.settings(world_.rules).ping;
  bool may_give_up = now != paused_until || paused_until - paused_from_ <= 2 * ping ||
                     engine_->phase() != Writer::Phase::kServing;
  for (const unsigned r : engine_->config().members) {
    may_give_up |= links_[r] == nullptr || !links_[r]->replica_holds;
    may_give_up |= world_.blocked(index_, r) > paused_from_;
  }
  handle(&Writer::on_timer);
  if (!may_give_up && is_up() && engine_->phase() == Writer::Phase::kAcquiring) {
    world_.fail("a writer that was stopped gives all replicas up");
  }
}

void WriterHost::run(WriterActions& actions) {
  for (WriterAction& action : actions) {
    if (crash_in_ != 0 && --crash_in_ == 0) return crash();
    switch (action.kind) {
      case Kind::kSend:
        if (Link* const link = links_[action.replica]) {
          world_.send(*link, std::optional<Request>(std::move(action.request)));
        }
        break;
      case Kind::kDisconnect:
        if (Link* const link = links_[action.replica]) {
          ++world_.outcome.evicted;
          world_.log("writer " + std::to_string(index_) + " evicts replica " +
                     std::to_string(action.replica));
          link->writer_holds = false;
          world_.send(*link, std::optional<Request>());
          links_[action.replica] = nullptr;
        }
        dial(action.replica, 2ms);
        break;
      case Kind::kForm:
        form(action);
        break;
      case Kind::kDrop:
        drop();
        break;
      case Kind::kWrite:
        write(action);
        break;
      case Kind::kRead:
        read(action);
        break;
      case Kind::kCopy:
        copy(action);
        break;
      case Kind::kComplete:
        complete(action);
        break;
    }
  }
}

void WriterHost::crash() {
  world_.log("writer " + std::to_string(index_) + " is down");
  drop();
  engine_.reset();
  world_.drop_links_of_writer(index_);
  for (Link*& link : links_) link = nullptr;
}

void WriterHost::dial(unsigned replica, Duration delay) {
  after(delay + world_.soon(200), [this, replica] {
    if (links_[replica] != nullptr || has_ended_) return;
    Link* const link = world_.connect(index_, replica);
    if (link == nullptr) return dial(replica, 1ms);
    links_[replica] = link;
    handle(&Writer::on_connected, replica);
  });
}

void WriterHost::on_answer(Link& link, const Answer& answer) {
  if (links_[link.replica] != &link) return;
  if (answer.type == RequestType::kJoin) {
    if (!group_ || group_->generation != answer.serial) return;
    if (answer.verdict != Verdict::kDone) return;  // another writer has come: pings will reveal it
    group_->joining = group_->joining.without(link.replica);
    if (!group_->joining.empty() || group_->is_formed) return;
    after(world_.soon(200), [this, group = group_] {
      if (group_ != group || group->is_dropped) return;
      if (!(group->members & world_.refused).empty()) return fail_group();
      group->is_formed = true;
      handle(&Writer::on_formed, group->generation);
    });
    return;
  }
  handle(&Writer::on_answer, link.replica, answer);
}

void WriterHost::on_disconnected(Link& link) {
  if (links_[link.replica] != &link) return;
  links_[link.replica] = nullptr;
  handle(&Writer::on_disconnected, link.replica);
}

void WriterHost::form(const WriterAction& action) {
  group_ = std::make_shared<Group>();
  group_->generation = action.generation;
  group_->members = group_->joining = action.members;
  group_->links = links_;
  group_->pipes.resize(links_.size());
  for (const unsigned r : action.members) {
    if (links_[r] == nullptr) continue;
    world_.send(*links_[r], std::optional<Request>({.type = RequestType::kJoin,
                                                    .serial = action.generation,
                                                    .epoch = engine_->epoch(),
                                                    .generation = action.generation}));
  }
  after(5ms, [this, group = group_] {
    if (group_ != group || group->is_dropped || group->is_formed) return;
    handle(&Writer::on_group_failed, group->generation, group->joining, false);
  });
}

// Packets in flight still arrive for a short time.
void WriterHost::drop() {
  if (!group_) return;
  group_->is_dropped = true;
  group_->dead_at = world_.events.now() + world_.soon(300);
  group_.reset();
}

void WriterHost::fail_group() {
  if (!is_up() || !group_ || group_->is_dropped) return;
  handle(&Writer::on_group_failed, group_->generation, Members{}, true);
}

void WriterHost::write(const WriterAction& action) {
  const std::shared_ptr<Group> group = group_;
  const std::size_t first = action.io.offset / kBlock, count = action.io.length / kBlock;
  group->lacking[action.attempt] = group->members;
  for (const unsigned r : group->members) {
    auto& pipe = group->pipes[r];
    const bool was_empty = pipe.empty();
    for (std::size_t b = 0; b < count; ++b) {
      pipe.push_back({action.attempt, first + b, open_.at(action.io.id).value, b + 1 == count});
    }
    if (was_empty) {
      world_.events.in(world_.soon(100), [this, group, r] { pump(group, r); });
    }
  }
}

// One block after the other lands, waits, or has no memory to land in.
void WriterHost::pump(const std::shared_ptr<Group>& group, unsigned replica) {
  const Instant now = world_.events.now();
  auto& pipe = group->pipes[replica];
  if (pipe.empty() || now > group->dead_at) return;
  Instant until = world_.blocked(index_, replica);
  // A NIC stops with its program.
  if (is_up()) until = std::max(until, paused_until);
  if (until > now) {
    world_.events.at(until + world_.soon(100), [this, group, replica] { pump(group, replica); });
    return;
  }
  if (!world_.replicas[replica]->is_member(group->links[replica]->id, group->generation)) {
    // Retries end some time later.
    after(world_.soon(5000), [this, group, replica] {
      if (group_ != group || group->is_dropped) return;
      const Members suspects = world_.random.chance(0.5) ? Members::only(replica) : Members{};
      handle(&Writer::on_group_failed, group->generation, suspects, suspects.empty());
    });
    return;
  }
  const Group::Landing landing = pipe.front();
  pipe.pop_front();
  ReplicaHost& host = *world_.replicas[replica];
  host.set(landing.block, landing.value);
  if (!pipe.empty()) host.begin_landing(pipe.front().block, pipe.front().value);
  if (landing.is_last) {
    Members& lacking = group->lacking[landing.attempt];
    lacking = lacking.without(replica);
    if (lacking.empty()) {
      // Fixed, so that completions come in the order of posting.
      after(20us, [this, group, attempt = landing.attempt] {
        if (group_ != group || group->is_dropped) return;
        handle(&Writer::on_written, attempt);
      });
    }
  }
  if (!pipe.empty()) {
    world_.events.in(world_.soon(20), [this, group, replica] { pump(group, replica); });
  }
}

bool WriterHost::reaches(const Group& group, unsigned replica, std::uint64_t link) const {
  return world_.replicas[replica]->is_member(link, group.generation) &&
         world_.blocked(index_, replica) <= world_.events.now();
}

void WriterHost::read(const WriterAction& action) {
  const Link* const link = links_[action.replica];
  if (link == nullptr) return;
  const auto group = group_;
  after(world_.soon(60), [this, group, id = link->id, action] {
    const ReplicaHost& host = *world_.replicas[action.replica];
    const bool ok = reaches(*group, action.replica, id);
    std::vector<std::uint64_t> found;
    for (std::size_t b = 0; ok && b < action.io.length / kBlock; ++b) {
      found.push_back(host.get(action.io.offset / kBlock + b));
    }
    const Instant taken = world_.events.now();
    after(world_.soon(ok ? 60 : 3000), [this, group, ok, taken, found, action] {
      if (group_ != group) return;
      if (ok) found_[action.io.id] = {taken, found};
      handle(&Writer::on_read, action.attempt, ok);
    });
  });
}

void WriterHost::copy(const WriterAction& action) {
  const auto group = group_;
  if (links_[action.replica] == nullptr) return;
  after(world_.soon(60), [this, group, id = links_[action.replica]->id, action] {
    const std::size_t first = action.io.offset / kBlock, count = action.io.length / kBlock;
    const ReplicaHost& source = *world_.replicas[action.replica];
    std::vector<std::uint64_t> found;
    Members failed;
    if (!reaches(*group, action.replica, id)) failed = failed.with(action.replica);
    for (std::size_t b = 0; failed.empty() && b < count; ++b)
      found.push_back(source.get(first + b));
    if (group_ != group) return;
    const std::vector<Link*> links = group->links;
    const Members targets = found.empty() ? Members{} : action.members;
    for (const unsigned r : targets) {
      if (!reaches(*group, r, links[r]->id)) continue;
      const std::size_t at = world_.random.below(found.size());
      world_.replicas[r]->begin_landing(first + at, found[at]);
    }
    after(world_.soon(60), [=, this]() mutable {
      for (const unsigned r : targets) {
        if (!reaches(*group, r, links[r]->id)) {
          failed = failed.with(r);
          continue;
        }
        for (std::size_t b = 0; b < found.size(); ++b) {
          world_.replicas[r]->set(first + b, found[b]);
        }
      }
      after(world_.soon(60), [this, group, failed, action] {
        if (group_ != group) return;
        handle(&Writer::on_copied, action.attempt, failed);
      });
    });
  });
}

void WriterHost::submit(IoRequest request) {
  if (!is_up() || engine_->under_way() == world_.plan.depth || has_ended_) return;
  request.id = ++ids_;
  Io io{request, world_.events.now(), 0};
  if (request.kind == IoKind::kWrite) {
    io.value = world_.history.begin_write(world_.events.now(), index_, request.offset / kBlock,
                                          request.length / kBlock);
  }
  open_[request.id] = io;
  ++world_.outcome.operations;
  handle(&Writer::submit, request);
}

}  // namespace cepheus::replica::sim
