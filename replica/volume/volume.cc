// The thread's round: requests of callers, control connections, the group, the engine's timer; each
// may leave actions, which execute() carries out at once. Then it sleeps until a descriptor or the
// earliest deadline, or spins for 40 us while requests are under way.
//
// open() returns once the engine serves, or gives up after `open_timeout` and names the replicas
// that are missing. After a fence or a loss every request ends in -ESTALE or -EIO, and no replica
// is dialled.
#include "replica/volume/volume.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "wire/clock.h"
#include "wire/leave_signals.h"

namespace cepheus::replica {
namespace {

using namespace std::chrono_literals;

// With requests in flight, the thread polls for this long after an event, before it sleeps.
constexpr wire::Duration kSpin = 40us;
constexpr wire::Duration kMeasure = 1s;
constexpr std::size_t kSmallRequest = 64 << 10;
constexpr std::size_t kLargeRequests = 8;
constexpr wire::Duration kStatusTimeLimit = 1s;

int error_of(IoStatus status) {
  switch (status) {
    case IoStatus::kOk:
      return 0;
    case IoStatus::kFenced:
      return -ESTALE;
    case IoStatus::kLost:
      break;
  }
  return -EIO;
}

}  // namespace

tl::expected<std::unique_ptr<Volume>, Volume::Failure> Volume::open(VolumeOptions options) {
  wire::UniqueFd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open()) return tl::unexpected(Failure{-errno, std::strerror(errno)});
  const wire::Duration limit = options.open_timeout;
  std::unique_ptr<Volume> volume(new Volume(std::move(options), std::move(wake)));
  try {
    const wire::LeaveSignals leave;
    volume->thread_ = std::thread([raw = volume.get()] { raw->run(); });
  } catch (const std::system_error& failure) {
    return tl::unexpected(
        Failure{-failure.code().value(), std::string("can't start a thread: ") + failure.what()});
  }
  std::unique_lock lock(volume->mutex_);
  volume->changed_.wait_for(lock, limit,
                            [&] { return volume->serves_ || volume->failure_.has_value(); });
  if (volume->failure_) return tl::unexpected(*volume->failure_);
  const bool serves = volume->serves_;
  lock.unlock();
  if (serves) return volume;
  volume->ends_ = true;
  volume->wake();
  volume->thread_.join();
  return tl::unexpected(Failure{-ETIMEDOUT, volume->missing_replicas()});
}

Volume::Volume(VolumeOptions options, wire::UniqueFd wake)
    : options_(std::move(options)), wake_(std::move(wake)), revents_(options_.replicas.size()) {
  const auto count = static_cast<std::uint8_t>(options_.replicas.size());
  for (std::uint8_t place = 0; place < count; ++place) {
    links_.emplace_back(options_.replicas[place],
                        ReplicaLink::Identity{options_.volume, place, count}, options_.key);
  }
}

Volume::~Volume() {
  ends_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Volume::wake() { eventfd_write(wake_.get(), 1); }

// --- Callers' threads.

int Volume::submit(IoRequest io, void* buffer, unsigned flags, cepheus_volume_done_t done,
                   void* arg) {
  if (done == nullptr || (flags & ~(CEPHEUS_VOLUME_FUA | CEPHEUS_VOLUME_NOWAIT)) != 0) {
    return -EINVAL;
  }
  if (io.kind != IoKind::kFlush) {
    const bool is_inside = io.offset <= geometry_.size && io.length <= geometry_.size - io.offset;
    if (buffer == nullptr || io.length == 0 || io.length > kMostRequest || !is_inside ||
        io.offset % geometry_.block != 0 || io.length % geometry_.block != 0) {
      return -EINVAL;
    }
  }
  io.fua = io.kind == IoKind::kWrite && (flags & CEPHEUS_VOLUME_FUA) != 0;
  bool is_first = false;
  const int taken =
      requests_->submit(io, buffer, (flags & CEPHEUS_VOLUME_NOWAIT) == 0, done, arg, is_first);
  if (taken == 0 && is_first && sleeps_.load()) wake();
  return taken;
}

std::string Volume::status() {
  std::unique_lock lock(mutex_);
  status_.clear();
  status_requested_ = true;
  wake();
  changed_.wait_for(lock, kStatusTimeLimit, [this] { return !status_.empty(); });
  return status_;
}

// --- The volume's thread.

void Volume::refuse(int error, std::string text) {
  const std::lock_guard lock(mutex_);
  if (serves_ || failure_) return;
  failure_ = Failure{error, std::move(text)};
  changed_.notify_all();
}

void Volume::run() {
  while (!ends_.load()) {
    const wire::Instant now = wire::monotonic_now();
    bool worked = take_submitted(now);
    worked |= look_at_links(now);
    worked |= look_at_group(now);
    if (engine_ && now >= engine_->deadline()) {
      engine_->on_timer(now, actions_);
      execute(now);
    }
    publish(now);
    if (worked) last_work_ = now;
    const bool is_busy = engine_ && engine_->under_way() > 0;
    wait(now, is_busy && now - last_work_ < kSpin);
  }
  path_.reset();  // no reads or writes after this
  if (!requests_) return;
  requests_->close(-ECANCELED);
  std::vector<unsigned> unused;
  requests_->take(unused);
  for (unsigned i = 0; i < options_.depth; ++i) {
    if (requests_->slot(i).is_busy) requests_->complete(i, -ECANCELED);
  }
}

// Polls the descriptors, and sleeps on them unless it may spin.
void Volume::wait(wire::Instant now, bool may_spin) {
  constexpr std::size_t kOwn = 3;  // other descriptors than the links'
  std::array<pollfd, kMostReplicas + kOwn> fds;
  fds[0] = {wake_.get(), POLLIN, 0};
  fds[1] = fds[2] = {-1, POLLIN, 0};
  std::size_t count = kOwn;
  wire::Instant until = wire::kNever;
  // Then no replica is dialled any more.
  const bool has_ended = engine_ && engine_->has_ended();
  for (const ReplicaLink& link : links_) {
    const int fd = link.fd();
    fds[count++] = {fd, fd < 0 ? short{0} : link.events(), 0};
    if (!has_ended || fd >= 0) until = std::min(until, link.deadline());
  }
  if (engine_) until = std::min(until, engine_->deadline());
  timespec timeout{};
  if (!may_spin) {
    sleeps_.store(true);
    if (path_) {
      const auto armed = path_->arm();
      fds[1].fd = armed.connections;
      fds[2].fd = armed.group;
      until = std::min(until, path_->deadline(now));
      // An event before it was armed wakes no thread.
      if (look_at_group(now)) until = now;
    }
    if (take_submitted(now)) until = now;
    const wire::Duration left =
        std::clamp(until - wire::monotonic_now(), wire::Duration(0), wire::Duration(1s));
    timeout.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    timeout.tv_nsec = (left % 1s).count();
  }
  const int ready = ppoll(fds.data(), count, &timeout, nullptr);
  sleeps_.store(false);
  for (std::size_t i = 0; i < links_.size(); ++i)
    revents_[i] = ready > 0 ? fds[i + kOwn].revents : short{0};
  if (ready > 0 && fds[0].revents != 0) {
    eventfd_t unused = 0;
    eventfd_read(wake_.get(), &unused);
  }
}

bool Volume::take_submitted(wire::Instant now) {
  if (!requests_ || !engine_) return false;
  taken_.clear();
  requests_->take(taken_);
  for (const unsigned number : taken_) {
    if (engine_->submit(now, requests_->slot(number).io, actions_)) {
      execute(now);
    } else {
      requests_->complete(number, engine_->phase() == Writer::Phase::kFailed ? -EIO : -ESTALE);
    }
  }
  return !taken_.empty();
}

bool Volume::look_at_links(wire::Instant now) {
  bool worked = false;
  for (unsigned r = 0; r < links_.size(); ++r) {
    ReplicaLink& link = links_[r];
    if (engine_ && engine_->has_ended() && link.fd() < 0) continue;
    if (revents_[r] == 0 && now < link.deadline()) continue;
    worked |= revents_[r] != 0;
    answers_.clear();
    const auto change = link.progress(now, revents_[r], answers_);
    revents_[r] = 0;
    if (link.is_refused()) refuse(-EACCES, link.name() + " refuses: " + link.reason());
    if (change == ReplicaLink::LinkChange::kWelcomed) on_welcomed(now, r);
    for (const AnswerMessage& message : answers_) {
      if (!engine_) break;
      if (message.answer.type == RequestType::kJoin) {
        path_->on_joined(now, r, message);
      } else {
        engine_->on_answer(now, r, message.answer, actions_);
        execute(now);
      }
    }
    if (change == ReplicaLink::LinkChange::kLost && engine_) {
      engine_->on_disconnected(now, r, actions_);
      execute(now);
    }
  }
  return worked;
}

void Volume::on_welcomed(wire::Instant now, unsigned replica) {
  const Geometry& found = links_[replica].geometry();
  if (!engine_) begin(found);
  if (!engine_) return;
  if (found != geometry_) {
    refuse(-EPROTO, links_[replica].name() + " has a volume of another size or block");
    return links_[replica].disconnect(now);
  }
  engine_->on_connected(now, replica, actions_);
  execute(now);
}

// The first replica has sent the volume's geometry.
void Volume::begin(const Geometry& geometry) {
  const auto replicas = static_cast<unsigned>(links_.size());
  const std::size_t small = std::max<std::size_t>(kSmallRequest, geometry.block);
  const std::size_t arena = kLargeRequests * kMostRequest + options_.depth * small;
  const std::size_t probes = BounceArena::kPage;
  const std::size_t reserved = probes + geometry.chunk;
  static_assert(kMostReplicas * GroupPath::kProbe <= BounceArena::kPage);
  try {
    requests_ = std::make_unique<RequestQueue>(options_.depth, arena, reserved);
  } catch (const std::bad_alloc&) {
    return refuse(-ENOMEM, "no memory for " + std::to_string(arena) + " bytes of buffers");
  }
  requests_->own(std::this_thread::get_id());
  path_ = std::make_unique<GroupPath>(options_.device, options_.multicast, replicas, options_.depth,
                                      requests_->memory(), geometry.chunk);
  if (auto opened = path_->open_port(); !opened) refuse(-ENODEV, opened.error().text);
  geometry_ = geometry;
  WriterSettings settings;
  settings.replicas = replicas;
  settings.geometry = geometry;
  settings.depth = options_.depth;
  settings.copy_rate = options_.copy_rate;
  engine_ = std::make_unique<Writer>(settings, random_number());
}

bool Volume::look_at_group(wire::Instant now) {
  if (!engine_) return false;
  events_.clear();
  const bool worked = path_->progress(now, events_);
  for (const GroupPath::Event& event : events_) {
    switch (event.kind) {
      case GroupPath::Event::Kind::kFormed:
        engine_->on_formed(now, event.number, actions_);
        break;
      case GroupPath::Event::Kind::kFailed:
        engine_->on_group_failed(now, event.number, event.members, event.ok, actions_);
        break;
      case GroupPath::Event::Kind::kWritten:
        engine_->on_written(now, event.number, actions_);
        break;
      case GroupPath::Event::Kind::kRead:
        engine_->on_read(now, event.number, event.ok, actions_);
        break;
      case GroupPath::Event::Kind::kCopied:
        engine_->on_copied(now, event.number, event.members, actions_);
        break;
    }
    execute(now);
  }
  return worked;
}

void Volume::execute(wire::Instant now) {
  engine_->check_consistent();
  // Callbacks of completed requests submit to a queue, and nothing here calls the engine: no action
  // makes another.
  doing_.swap(actions_);
  for (WriterAction& action : doing_) execute(now, action);
  doing_.clear();
}

void Volume::execute(wire::Instant now, WriterAction& action) {
  const auto place = [this](const IoRequest& io) {
    return requests_->slot(static_cast<unsigned>(io.id)).bounce;
  };
  switch (action.kind) {
    case WriterAction::Kind::kSend: {
      RequestMessage message{std::move(action.request)};
      if (message.request.type == RequestType::kPing)
        message.progress = progress_of(action.replica);
      links_[action.replica].send(message);
      break;
    }
    case WriterAction::Kind::kDisconnect:
      links_[action.replica].disconnect(now);
      break;
    case WriterAction::Kind::kForm:
      form(now, action);
      break;
    case WriterAction::Kind::kDrop:
      path_->drop();
      break;
    case WriterAction::Kind::kWrite:
      path_->write(action.attempt, place(action.io), action.io.length, action.io.offset);
      break;
    case WriterAction::Kind::kRead:
      path_->read(action.attempt, action.replica, place(action.io), action.io.length,
                  action.io.offset);
      break;
    case WriterAction::Kind::kCopy:
      path_->copy(action.attempt, action.replica, action.members, action.io.length,
                  action.io.offset);
      break;
    case WriterAction::Kind::kComplete:
      ++requests_done_;
      requests_->complete(static_cast<unsigned>(action.io.id), error_of(action.status));
      break;
  }
}

void Volume::form(wire::Instant now, const WriterAction& action) {
  path_->form(now, action.generation, action.members);
  if (!path_->is_forming()) return;  // its events have the reason
  for (const unsigned r : action.members) {
    links_[r].send({.request = {.type = RequestType::kJoin,
                                .serial = action.generation,
                                .epoch = engine_->epoch(),
                                .generation = action.generation},
                    .rc = path_->connection_to(r),
                    .multicast = options_.multicast});
  }
}

// Publishes the state that callers read.
void Volume::publish(wire::Instant now) {
  if (!engine_) return;
  const auto phase = engine_->phase();
  if (engine_->has_ended()) {
    const int error = phase == Writer::Phase::kFenced ? -ESTALE : -EIO;
    refuse(error, failure());
    requests_->close(error);
  }
  measure_copies(now);
  if (phase == Writer::Phase::kServing && !serves_) {
    const std::lock_guard lock(mutex_);
    serves_ = true;
    changed_.notify_all();
  }
  if (!status_requested_.load()) return;
  const std::lock_guard lock(mutex_);
  status_requested_ = false;
  status_ = status_json();
  changed_.notify_all();
}

void Volume::measure_copies(wire::Instant now) {
  if (now - measured_at_ < kMeasure) return;
  const std::uint64_t bytes = path_->copied_bytes();
  const double seconds = std::chrono::duration<double>(now - measured_at_).count();
  copy_rate_ = static_cast<std::uint64_t>(static_cast<double>(bytes - measured_bytes_) / seconds);
  measured_bytes_ = bytes;
  measured_at_ = now;
}

}  // namespace cepheus::replica
