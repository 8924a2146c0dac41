// One thread polls the connections, the workers' bell and the NIC. Disks are waited for by three
// workers (record, flush, digest), so an answer is sent when its content is durable, and a hanging
// disk blocks no other peer.
//
// Bounds: 64 peers, where a stranger or an observer makes way for a newcomer; one unread status or
// digest a peer; kMostAtDisk requests of a peer that wait for a disk. A peer that is silent for
// `idle` goes.
//
// A failed disk ends the server: no answer may follow a record that was not saved. The next program
// must know whether this memory is lost, so the record names the boot of the machine.
#include "replica/server/replica_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wire/clock.h"

namespace cepheus::replica {

namespace {

// Of a request that waits for a disk: 1, and 1 more for each 512 bytes of an answer to kPromise.
std::size_t weight(const AnswerMessage& message) { return 1 + message.answer.words.size() / 64; }

}  // namespace
using Kind = ReplicaAction::Kind;

constexpr int kIdleMs = 1000;
// A member answers its leader's probes within a fraction of the eviction time.
constexpr int kMemberMs = 20;
constexpr int kRegisteringMs = 1;
constexpr std::uint64_t kMostDigested = 16 << 20;  // in one request

wire::Result<std::unique_ptr<ReplicaServer>> ReplicaServer::start(Parts parts) {
  wire::UniqueFd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open()) return wire::unavailable(std::strerror(errno));
  std::unique_ptr<ReplicaServer> server(new ReplicaServer(std::move(parts), std::move(wake)));
  // From now on it reports that it has restarted.
  if (const int error = server->record_file_.save(server->stored_)) {
    return wire::fail(wire::ErrorCode::kFailed,
                      std::string("the record can't be saved: ") + std::strerror(error));
  }
  if (auto opened = server->data_path_.open(); !opened) return tl::unexpected(opened.error());
  return server;
}

ReplicaServer::ReplicaServer(Parts parts, wire::UniqueFd wake)
    : listener_(std::move(parts.listener)),
      wake_(std::move(wake)),
      record_file_(std::move(parts.record)),
      stored_(record_file_.stored()),
      file_(std::move(parts.file)),
      key_(std::move(parts.key)),
      idle_(parts.idle),
      data_path_(parts.device, file_.data(), file_.outlives_program()) {
  const std::string boot = boot_id();
  // A volume that was never written to has nothing to lose.
  if (stored_.record.promised.number != 0) stored_.record.note_restart(boot != stored_.boot);
  stored_.boot =
      file_.outlives_program() ? boot : "";  // none: every start of the program loses the memory
  make_engine();
  const auto ring = [this] { eventfd_write(wake_.get(), 1); };
  record_worker_ = std::make_unique<DiskWorker>(
      [this](DiskWorker::Batch& batch) { return batch.save ? record_file_.save(*batch.save) : 0; },
      ring);
  flush_worker_ = std::make_unique<DiskWorker>(
      [this](DiskWorker::Batch& batch) { return file_.flush(batch.flush, stored_.geometry.chunk); },
      ring);
  digest_worker_ = std::make_unique<DiskWorker>(
      [this, digest = std::move(parts.digest)](DiskWorker::Batch& batch) {
        for (DiskWorker::Job& job : batch.jobs) {
          if (stop_requested_) break;  // finish_digests() sends none of them
          digest(job.digests, file_.data());
        }
        return 0;
      },
      ring);
}

ReplicaServer::~ReplicaServer() {
  stop_requested_ = true;
  data_path_.fence();
  record_worker_.reset();
  flush_worker_.reset();
  digest_worker_.reset();
}

void ReplicaServer::make_engine() { engine_.emplace(stored_.geometry, stored_.record); }

void ReplicaServer::stop() {
  stop_requested_ = true;
  eventfd_write(wake_.get(), 1);
}

wire::Result<void> ReplicaServer::run() {
  int record_error = 0;
  while (!stop_requested_ && disk_error_ == 0 && wait_error_ == 0) wait();
  data_path_.fence();  // the disk may hang
  if (disk_error_ == 0 && !file_.outlives_program()) disk_error_ = save_memory();
  if (const int error = flush_worker_->finish()) {
    disk_error_ = error;
    const int saved = forget_memory();
    // Memory that goes with the program is lost without a record.
    record_error = file_.outlives_program() ? saved : 0;
  }
  if (disk_error_ == 0 && wait_error_ != 0) {
    return wire::fail(wire::ErrorCode::kFailed, std::string("can't wait for connections: ") +
                                                    std::strerror(wait_error_) +
                                                    "; raise the limit of open files");
  }
  if (disk_error_ == 0) return {};
  std::string text = std::string("the disk failed: ") + std::strerror(disk_error_) +
                     "; the volume continues without this replica";
  if (record_error != 0) {
    // If not even the page cache has it, a new program would take all of its memory for sound.
    text += std::string("; its record can't be saved either: ") + std::strerror(record_error) +
            ": restart this host before the replica serves again";
  }
  return wire::fail(wire::ErrorCode::kFailed, text);
}

// Then a new program starts with this memory.
int ReplicaServer::save_memory() {
  data_path_.fence();
  if (const int error = record_worker_->finish()) return error;
  if (const int error = flush_worker_->finish()) return error;
  if (const int error = file_.flush(engine_->unflushed(), stored_.geometry.chunk)) return error;
  stored_.record = engine_->record();
  stored_.boot = boot_id();
  return record_file_.save(stored_);
}

// After a failed flush. The kernel marks the pages clean although they are in memory only, and
// later flushes succeed. So the next program must report that this memory is lost.
int ReplicaServer::forget_memory() {
  record_worker_->finish();
  stored_.boot.clear();
  // If it can't be synchronised, the page cache has it while the boot id stays the same.
  return record_file_.save(stored_);
}

void ReplicaServer::wait() {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  std::vector<std::uint64_t> links;
  for (const auto& [link, peer] : peers_) {
    fds.push_back({peer.socket.fd(), peer.events(), 0});
    links.push_back(link);
  }
  const bool has_more = std::any_of(peers_.begin(), peers_.end(),
                                    [](const auto& each) { return each.second.can_go_on(); });
  const int timeout = has_more                      ? 0
                      : data_path_.is_registering() ? kRegisteringMs
                      : data_path_.has_group()      ? kMemberMs
                                                    : kIdleMs;
  const int ready = poll(fds.data(), fds.size(), timeout);
  if (ready < 0 && errno != EINTR) wait_error_ = errno;
  data_path_.progress();
  if (fds[0].revents != 0) {
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
  }
  finish_jobs(*record_worker_);
  finish_jobs(*flush_worker_);
  finish_digests();
  if (disk_error_ != 0) return;  // no answer may follow a record that was not saved
  const wire::Instant now = wire::monotonic_now();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto at = peers_.find(links[i]);
    if (at == peers_.end()) continue;
    if (!take_turn(links[i], at->second, fds[i + 2].revents, now)) disconnect(links[i]);
  }
  if (fds[1].revents != 0) accept_all();
}

// False: disconnect.
bool ReplicaServer::take_turn(std::uint64_t link, Peer& peer, short revents, wire::Instant now) {
  if (peer.is_digesting) return (revents & (POLLERR | POLLHUP)) == 0;
  if (peer.hello && revents != 0) peer.until = now + idle_;
  if (now >= peer.until) return false;
  return (revents == 0 && !peer.can_go_on()) || serve(link, peer);
}

void ReplicaServer::accept_all() {
  for (std::size_t n = 0; n < Peers::kMost; ++n) {
    wire::UniqueFd connection = accept_from(listener_.get());
    if (!connection.is_open()) return;
    if (peers_.is_full()) {
      const auto gives_way = peers_.one_to_give_way();
      if (!gives_way) continue;
      disconnect(*gives_way);
    }
    peers_.add(std::move(connection));
  }
}

// A peer has one unread answer at a time. The next one is made when the peer has read this one, and
// others have had their turn.
bool ReplicaServer::serve(std::uint64_t link, Peer& peer) {
  const bool lives = peer.socket.receive();
  if (peer.has_more && !peer.socket.flush()) return false;
  if (peer.has_more && !peer.can_go_on()) return lives;
  peer.has_more = false;
  bool ok = true;
  while (const auto frame = peer.socket.next(ok)) {
    const bool is_free =
        frame->type == MessageType::kDigestRequest || frame->type == MessageType::kStatusRequest;
    if (!take(link, peer, *frame)) {
      peer.socket.flush();  // sends the reason of the refusal
      return false;
    }
    if (!peers_.contains(link)) return true;  // it was disconnected meanwhile
    if (is_free) {
      peer.has_more = true;
      break;
    }
  }
  return lives && ok && peer.socket.flush();
}

bool ReplicaServer::take(std::uint64_t link, Peer& peer, const FrameSocket::Frame& frame) {
  if (!peer.hello) {
    if (frame.type != MessageType::kHello) return false;
    auto hello = decode<VolumeHello>(frame.body);
    if (!hello) return false;
    if (const auto why = refusal(peer, *hello)) {
      encode_refusal(*why, peer.socket.out());
      return false;
    }
    greet(peer, std::move(*hello));
    return true;
  }
  switch (frame.type) {
    case MessageType::kRequest: {
      const auto message = decode<RequestMessage>(frame.body);
      if (!message || peer.hello->role != Role::kWriter) return false;
      if (message->request.type == RequestType::kPing) {
        progress_ = message->progress;
        writer_link_ = link;
      }
      // While a disk hangs, requests must not gather.
      if (peer.at_disk >= kMostAtDisk) return false;
      ReplicaActions actions;
      engine_->on_request(link, message->request, actions);
      execute(actions, *message);
      return true;
    }
    case MessageType::kStatusRequest:
      encode_status(status(), peer.socket.out());
      return true;
    case MessageType::kDigestRequest: {
      const auto request = decode<DigestRequest>(frame.body);
      return request && begin_digests(link, peer, *request);
    }
    default:
      return false;
  }
}

std::optional<std::string> ReplicaServer::refusal(const Peer& peer,
                                                  const VolumeHello& hello) const {
  if (hello.version != kControlVersion) {
    return "it uses version " + std::to_string(kControlVersion) + " of the control protocol, not " +
           std::to_string(hello.version);
  }
  if (!key_.fits(hello.tag, covered(peer.nonce, hello))) {
    return "the key differs from the replica's: give both the fabric's by $CEPHEUS_KEY_FILE";
  }
  if (hello.role == Role::kObserver) return std::nullopt;
  return stored_.refusal(hello);
}

void ReplicaServer::greet(Peer& peer, VolumeHello hello) {
  if (hello.role == Role::kWriter && stored_.count == 0) {
    // The first writer assigns place and number of replicas.
    stored_.place = hello.place;
    stored_.count = hello.count;
    stored_.record = ReplicaRecord::fresh(stored_.geometry, hello.count);
    make_engine();
  }
  Welcome welcome{stored_.geometry};
  welcome.tag = key_.tag(covered(hello.nonce, welcome));
  encode(welcome, peer.socket.out());
  peer.hello = std::move(hello);
  peer.until = wire::monotonic_now() + idle_;
  peer.socket.expect(kMostFrame);
}

// While a disk hangs, requests of closed connections must not gather.
void ReplicaServer::forget(std::uint64_t link) {
  peers_.erase(link);
  for (auto* worker : {&record_worker_, &flush_worker_, &digest_worker_}) (*worker)->forget(link);
}

void ReplicaServer::disconnect(std::uint64_t link) {
  forget(link);
  if (link == writer_link_) progress_ = {};
  ReplicaActions actions;
  engine_->on_disconnected(link, actions);
  execute(actions, {});
}

// Null: the connection has closed.
template <typename Message>
Peer* ReplicaServer::send(std::uint64_t link, const Message& message) {
  const auto at = peers_.find(link);
  if (at == peers_.end()) return nullptr;
  encode(message, at->second.socket.out());
  at->second.socket.flush();  // the next read detects a closed connection
  return &at->second;
}

void ReplicaServer::execute(ReplicaActions& actions, const RequestMessage& request) {
  DiskWorker::Job job;
  bool to_flush = false;
  AnswerMessage message;
  for (ReplicaAction& action : actions) {
    switch (action.kind) {
      case Kind::kFence:
        data_path_.fence();
        break;
      case Kind::kDisconnect:
        forget(action.link);
        break;
      case Kind::kSaveRecord:
      case Kind::kSaveMarks:
        stored_.record = engine_->record();
        job.save = stored_;
        break;
      case Kind::kFlush:
        to_flush = true;
        job.flush = std::move(action.chunks);
        break;
      case Kind::kJoin:
        if (auto joined = data_path_.join(request.rc, request.multicast)) {
          message.join = *joined;
        } else {
          message.text = joined.error().text;
        }
        break;
      case Kind::kAnswer:
        message.answer = std::move(action.answer);
        if (!message.text.empty()) message.answer.verdict = Verdict::kFailed;
        job.link = action.link;
        job.answer = std::move(message);
        break;
    }
  }
  if (job.link == 0) return;
  const RequestType type = job.answer.answer.type;
  // No answer before its content is durable: later answers keep their order behind it.
  const bool to_record = job.save || (type != RequestType::kPing && type != RequestType::kJoin &&
                                      !record_worker_->is_idle());
  if (!to_flush && !to_record) return static_cast<void>(send(job.link, job.answer));
  const auto at = peers_.find(job.link);
  if (at != peers_.end()) at->second.at_disk += weight(job.answer);
  (to_flush ? flush_worker_ : record_worker_)->submit(std::move(job));
}

void ReplicaServer::finish_jobs(DiskWorker& worker) {
  int error = 0;
  for (const DiskWorker::Job& job : worker.take(error)) {
    if (Peer* const peer = send(job.link, job.answer)) peer->at_disk -= weight(job.answer);
  }
  if (error != 0) disk_error_ = error;
}

// On another thread: neither the digests nor the disk's reads may delay pings.
bool ReplicaServer::begin_digests(std::uint64_t link, Peer& peer, const DigestRequest& request) {
  const Geometry& geometry = stored_.geometry;
  if (request.offset > geometry.size || request.length > geometry.size - request.offset ||
      request.length > kMostDigested || request.unit < geometry.block) {
    return false;
  }
  DiskWorker::Job job;
  job.link = link;
  job.digests.request = request;
  digest_worker_->submit(std::move(job));
  peer.is_digesting = true;
  return true;
}

void ReplicaServer::finish_digests() {
  if (stop_requested_) return;
  int error = 0;
  for (const DiskWorker::Job& job : digest_worker_->take(error)) {
    Peer* const peer = send(job.link, job.digests);
    if (peer == nullptr) continue;
    peer->is_digesting = false;
    peer->until = wire::monotonic_now() + idle_;
  }
}

}  // namespace cepheus::replica
