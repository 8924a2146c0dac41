// Faults come until kFaultsEnd. Then finish(): disks are mended, all requests of living writers
// end, and one writer must serve. It reads every block and flushes, and all replicas become equal,
// in memory and on disk.
//
// Messages keep their order on a link and take up to 3 ms. Cuts and pauses delay them; a closing
// writer may lose its last ones. Bounds: a million events, and 5 s of virtual time for each step of
// finish(). The first failure ends the seed.
#include "replica/sim/world.h"

#include <algorithm>
#include <cstdio>

namespace cepheus::replica::sim {

using namespace std::chrono_literals;

World::World(const VolumePlan& p, const Rules& r, std::uint64_t seed, bool trace)
    : random(seed), history(p.blocks), plan(p), rules(r), trace_(trace) {
  operations_left = plan.operations;
  for (unsigned i = 0; i < plan.replicas; ++i) {
    replicas.push_back(std::make_unique<ReplicaHost>(*this, i));
  }
}

void World::Outcome::operator+=(const Outcome& other) {
  steps += other.steps;
  operations += other.operations;
  acknowledged += other.acknowledged;
  evicted += other.evicted;
  takeovers += other.takeovers;
  disk_losses += other.disk_losses;
}

void World::fail(const std::string& text) {
  log("FAILED: " + text);
  if (!outcome.failure) outcome.failure = text;
}

void World::log(const std::string& text) const {
  if (!trace_) return;
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(events.now().time_since_epoch());
  std::printf("%9lld us  %s\n", static_cast<long long>(us.count()), text.c_str());
}

Instant World::blocked(unsigned writer, unsigned replica) const {
  return std::max(cuts_[writer][replica], replicas[replica]->paused_until);
}

Link* World::connect(unsigned writer, unsigned replica) {
  if (!replicas[replica]->is_up() || blocked(writer, replica) > events.now()) return nullptr;
  links_.push_back(std::make_unique<Link>());
  Link& link = *links_.back();
  link.id = links_.size();
  link.writer = writer;
  link.replica = replica;
  return &link;
}

void World::send(Link& link, std::optional<Request> request) {
  // A host is slow at times.
  const Duration delay = soon(random.chance(0.05) ? 3000 : 150);
  link.down.emplace_back(events.now() + delay, std::move(request));
  if (link.down.size() == 1) {
    events.at(link.down.front().first, [this, &link] { pump_down(link); });
  }
}

void World::send(Link& link, std::optional<Answer> answer) {
  link.up.emplace_back(events.now() + soon(150), std::move(answer));
  if (link.up.size() == 1) events.at(link.up.front().first, [this, &link] { pump_up(link); });
}

void World::pump_down(Link& link) {
  if (link.down.empty()) return;
  const Instant until = blocked(link.writer, link.replica);
  if (until > events.now()) {
    events.at(until + soon(50), [this, &link] { pump_down(link); });
    return;
  }
  const auto message = std::move(link.down.front().second);
  link.down.pop_front();
  if (!link.down.empty()) {
    events.at(link.down.front().first, [this, &link] { pump_down(link); });
  }
  if (!link.replica_holds) return;
  ReplicaHost& host = *replicas[link.replica];
  if (message) {
    host.on_request(link, *message);
  } else {
    host.on_disconnected(link);
    link.replica_holds = false;
  }
}

void World::pump_up(Link& link) {
  if (link.up.empty()) return;
  WriterHost& host = *writers[link.writer];
  const Instant until = std::max(blocked(link.writer, link.replica), host.paused_until);
  if (until > events.now()) {
    events.at(until + soon(50), [this, &link] { pump_up(link); });
    return;
  }
  const auto message = std::move(link.up.front().second);
  link.up.pop_front();
  if (!link.up.empty()) events.at(link.up.front().first, [this, &link] { pump_up(link); });
  if (!link.writer_holds || !host.is_up()) return;
  if (message) {
    host.on_answer(link, *message);
  } else {
    link.writer_holds = false;
    host.on_disconnected(link);
  }
}

void World::drop_links_of_replica(unsigned replica) {
  for (auto& link : links_) {
    if (link->replica != replica || !link->replica_holds) continue;
    link->replica_holds = false;
    send(*link, std::optional<Answer>());
  }
}

void World::drop_links_of_writer(unsigned writer) {
  for (auto& link : links_) {
    if (link->writer != writer || !link->writer_holds) continue;
    link->writer_holds = false;
    // Some or all of the sent messages arrive.
    if (random.chance(0.5)) {
      while (link->down.size() > 1 && random.chance(0.7)) link->down.pop_back();
    }
    send(*link, std::optional<Request>());
  }
}

void World::add_writer() {
  const auto index = static_cast<unsigned>(writers.size());
  log("writer " + std::to_string(index) + " starts");
  cuts_.emplace_back(plan.replicas);
  writers.push_back(std::make_unique<WriterHost>(*this, index));
  if (!faults_ended) writers.back()->start_client();
}

void World::create_anew() {
  log("the user creates all replicas anew");
  for (const auto& replica : replicas) replica->replace_disk();
}

bool World::has_other_claim(const Epoch& own) const {
  return std::ranges::any_of(
      claims_, [&](const auto& claim) { return claim.first != own.writer && own < claim.second; });
}

void World::note_claim(const Epoch& promised) {
  claims_[promised.writer] = std::max(claims_[promised.writer], promised);
}

void World::note_record() {
  for (const auto& host : replicas) {
    const Config& config = host->record().config;
    bool is_on_record = is_later(config, on_record_);
    for (const unsigned r : config.members) {
      if (is_later(config, replicas[r]->record().config)) is_on_record = false;
    }
    if (is_on_record) on_record_ = config;
  }
}

void World::note_crash() {
  bool all_crashed = true, all_forgot = true;
  for (const unsigned r : on_record_.members) {
    all_crashed &= replicas[r]->has_crashed();
    all_forgot &= replicas[r]->has_forgotten();
  }
  if (all_crashed) history.excuse_torn();
  if (all_forgot) history.lose_unflushed(events.now());
}

void World::note_new_disk() {
  has_new_disk = true;
  if (on_record_.members.empty() || has_disk_in_sync({})) return;
  log("all replicas in sync have lost their disks");
  outcome.disk_losses = 1;
  history.lose_all(events.now());
  disks_are_lost = true;
  on_record_ = {};  // epochs start again, too
}

void World::lose_power(bool with_writer) {
  if (with_writer && writers.back()->is_up()) writers.back()->crash();
  for (auto& replica : replicas) replica->crash(true);
}

bool World::has_disk_in_sync(Members but) const {
  for (const unsigned r : on_record_.members - but) {
    if (replicas[r]->record().loss != Loss::kAll) return true;
  }
  return false;
}

void World::inject(const Fault& fault) {
  WriterHost& writer = *writers.back();
  ReplicaHost& replica = *replicas[fault.replica];
  log(std::string(to_string(fault.kind)) + ", replica " + std::to_string(fault.replica));
  const Instant until = events.now() + fault.length;
  switch (fault.kind) {
    case Fault::Kind::kReplicaCrash:
      if (replica.is_up()) replica.crash_after(fault.step);
      break;
    case Fault::Kind::kHostCrash:
      if (replica.is_up()) replica.crash(true);
      break;
    case Fault::Kind::kWriterCrash:
      writer.crash_after(fault.step);
      events.in(fault.length, [this, &writer] {
        if (writer.is_up()) writer.crash();
        if (!faults_ended) add_writer();
      });
      break;
    case Fault::Kind::kWriterStall:
      writer.pause(until);
      events.in(fault.length / 4, [this] {
        if (!faults_ended) add_writer();
      });
      break;
    case Fault::Kind::kWriterPause:
      writer.pause(until);
      break;
    case Fault::Kind::kRival:
      add_writer();
      break;
    case Fault::Kind::kCut:
      cuts_[writers.size() - 1][fault.replica] = until;
      break;
    case Fault::Kind::kGroupFails:
      writer.fail_group();
      break;
    case Fault::Kind::kPause:
      replica.paused_until = until;
      break;
    case Fault::Kind::kPowerLoss:
      lose_power(fault.step % 2 == 0);
      if (!writers.back()->is_up()) {
        events.in(fault.length, [this] {
          if (!faults_ended && !writers.back()->is_up()) add_writer();
        });
      }
      break;
    case Fault::Kind::kNewDisk:
      replica.replace_disk();
      break;
    case Fault::Kind::kNewDisks:
      for (const auto& one : replicas) {
        events.in(random.between(Duration{0}, fault.length), [this, &one] {
          if (!faults_ended) one->replace_disk();
        });
      }
      break;
    case Fault::Kind::kHungDisk:
      replica.hang_disk(until, fault.step != 1, fault.step != 2);
      break;
    case Fault::Kind::kRefused:
      // The volume waits for the last one in sync, whatever the fabric refuses.
      if (!has_disk_in_sync(Members::only(fault.replica))) break;
      refused = Members::only(fault.replica);
      if (replica.is_up()) replica.crash(false);
      break;
  }
}

bool World::run_until(Instant end, const std::function<bool()>& is_done) {
  constexpr std::uint64_t kMostSteps = 1'000'000;
  while (!outcome.failure && !is_done()) {
    if (!events.step(end)) return is_done();
    if (events.steps() > kMostSteps) fail("events without end");
  }
  return !outcome.failure;
}

bool World::is_finished() const {
  WriterHost& last = *writers.back();
  if (!last.is_up() || last.engine().phase() != Writer::Phase::kServing || !last.is_idle()) {
    return false;
  }
  for (unsigned r = 0; r < plan.replicas; ++r) {
    if (!last.engine().is_in_sync(r)) return false;
  }
  return last.engine().config_is_confirmed() && last.engine().marked() == 0;
}

void World::mend_disks() {
  for (auto& replica : replicas) replica->mend_disk();
}

// The requests of every living writer end, with success or not.
bool World::end_requests() {
  const auto all_ended = [this] {
    return std::ranges::all_of(
        writers, [](const auto& writer) { return !writer->is_up() || writer->is_idle(); });
  };
  if (run_until(events.now() + 5s, all_ended)) return true;
  if (!outcome.failure) fail("requests of a living writer do not end");
  return false;
}

// One writer remains: the last one, if it still serves, or another.
bool World::come_to_serve() {
  const bool goes_on = random.chance(0.5);
  const bool is_dark = random.chance(0.3);
  for (auto& writer : writers) {
    if (writer->is_up() && (writer != writers.back() || !goes_on || is_dark)) writer->crash();
  }
  if (is_dark) {
    log("power failure everywhere");
    lose_power(false);
  }
  // Messages of dead writers arrive, claims included.
  if (!run_until(events.now() + 100ms, [] { return false; }) && outcome.failure) return false;
  if (!writers.back()->is_up() || writers.back()->has_ended()) add_writer();
  const auto serves = [this] {
    return writers.back()->engine().phase() == Writer::Phase::kServing;
  };
  const auto has_lost_disks = [this] {
    return writers.back()->has_ended() && writers.back()->engine().has_lost_disks();
  };
  if (run_until(events.now() + 5s, [&] { return serves() || has_lost_disks(); }) &&
      has_lost_disks()) {
    create_anew();
    add_writer();
  }
  if (run_until(events.now() + 5s, serves)) return true;
  if (!outcome.failure) fail("no writer serves");
  return false;
}

// The phase without faults: one writer makes all replicas equal, and every block can be read.
void World::finish() {
  faults_ended = true;
  log("faults end");
  for (auto& replica : replicas) replica->live_on();
  for (auto& writer : writers) writer->live_on();
  // If the other replicas had no fault, the volume does not need the disk that hangs.
  if (!plan.hangs_alone) mend_disks();
  if (!end_requests()) return;
  refused = {};
  mend_disks();
  if (!come_to_serve()) return;
  writers.back()->read_all();
  events.in(100ms, [this] { writers.back()->flush(); });
  run_until(events.now() + 150ms, [] { return false; });
  if (outcome.failure) return;
  if (run_until(events.now() + 5s, [this] { return is_finished(); })) return compare();
  if (!outcome.failure) fail("replicas do not become equal");
}

// Replicas that return after the last reads copy, too: equal is not enough.
void World::compare() {
  const auto reader = static_cast<unsigned>(writers.size() - 1);
  const Instant now = events.now();
  for (std::size_t b = 0; b < plan.blocks; ++b) {
    if (const auto wrong = history.read({now, now, now}, reader, b, replicas[0]->get(b))) {
      fail("at the end " + *wrong);
    }
  }
  for (unsigned r = 0; r < plan.replicas; ++r) {
    for (std::size_t b = 0; b < plan.blocks; ++b) {
      if (replicas[r]->get(b) != replicas[0]->get(b)) {
        fail("block " + std::to_string(b) + " differs on replicas 0 and " + std::to_string(r));
      } else if (replicas[r]->disk()[b] != replicas[0]->get(b)) {
        fail("block " + std::to_string(b) + " is not on the disk of replica " + std::to_string(r));
      }
    }
  }
}

World::Outcome World::run() {
  add_writer();
  for (const Fault& fault : plan.faults) {
    events.at(fault.at, [this, &fault] { inject(fault); });
  }
  run_until(kFaultsEnd, [] { return false; });
  if (!outcome.failure) finish();
  outcome.steps = events.steps();
  return outcome;
}

World::Outcome run_seed(std::uint64_t seed, const Rules& rules, bool trace) {
  return World(VolumePlan::of_seed(seed), rules, seed, trace).run();
}

}  // namespace cepheus::replica::sim
