#include "collectives/fakes/fake_mpi.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "collectives/fakes/allocations.h"

namespace cepheus::coll::fake {

namespace {
Mpi* running_mpi = nullptr;
}  // namespace

Mpi::Mpi(int ranks)
    : ranks_(static_cast<std::size_t>(ranks)),
      sent_bytes_(static_cast<std::size_t>(ranks)),
      receivers_(static_cast<std::size_t>(ranks)) {
  running_mpi = this;
  for (int rank = 0; rank < ranks; ++rank) {
    communicator(rank).rank = rank;
    communicator(rank).size = ranks;
  }
}

Mpi::~Mpi() {
  // A send that was forgotten is looked at again with the next one.
  for (Request* each : messages_) complete(*each, each->rank, each->size, Code::kDone);
  for (Request* each : receives_) delete each;
  running_mpi = nullptr;
}

void Mpi::send(Request* request) {
  sent_bytes_[static_cast<std::size_t>(request->rank)] += request->size;
  receivers_[static_cast<std::size_t>(request->rank)].insert(request->peer);
  if (const auto wrong = wrong_lengths.find(request->tag); wrong != wrong_lengths.end()) {
    const auto* const bytes = static_cast<const std::byte*>(request->memory);
    request->forged.assign(bytes, bytes + std::min(request->size, wrong->second));
    request->forged.resize(wrong->second, std::byte{0xBB});
    request->memory = request->forged.data();
    request->size = wrong->second;
  }
  messages_.push_back(request);
}

void Mpi::wait() {
  if (running_mpi != nullptr && running_mpi->waits) running_mpi->waits();
}

// Like MPI: sends can't be cancelled.
void Mpi::cancel(Request& request) {
  request.notice = nullptr;
  if (std::erase(receives_, &request) > 0) complete(request, host::kAnyRank, 0, Code::kDone);
}

void Mpi::complete(Request& request, int from, std::size_t bytes, Code error) {
  request.status = {error, from, bytes};
  request.is_complete = true;
  if (request.notice != nullptr) request.notice->run(request.notice);
  if (request.is_forgotten) delete &request;
}

bool Mpi::matches(const Request& receive, int from, int to, int tag) {
  return receive.rank == to && receive.tag == tag &&
         (receive.peer == from || receive.peer == host::kAnyRank);
}

void Mpi::hand_over(Request& receive, int from, const void* data, std::size_t size) {
  if (receive.fails) return complete(receive, from, 0, Code::kFailed);
  if (size > 0) std::memcpy(receive.memory, data, std::min(size, receive.size));
  complete(receive, from, size, size > receive.size ? Code::kTruncated : Code::kDone);
}

void Mpi::receive(Request* request) {
  const auto at = std::ranges::find_if(unexpected_, [&](const Arrived& each) {
    return matches(*request, each.from, each.to, each.tag);
  });
  if (at == unexpected_.end()) return receives_.push_back(request);
  const Arrived arrived = std::move(*at);
  unexpected_.erase(at);
  hand_over(*request, arrived.from, arrived.data.data(), arrived.data.size());
}

std::vector<std::size_t> Mpi::deliverable() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Request& one = *messages_[i];
    if (dead_.contains(one.peer)) continue;
    const auto first = std::ranges::find_if(messages_, [&](const Request* each) {
      return each->rank == one.rank && each->peer == one.peer && each->tag == one.tag;
    });
    if (static_cast<std::size_t>(first - messages_.begin()) == i) found.push_back(i);
  }
  return found;
}

void Mpi::deliver(std::size_t index) {
  Request& send = *messages_[index];
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
  const int from = send.rank;
  const Code sent = send.fails ? Code::kFailed : Code::kDone;
  if (!send.arrives) return complete(send, from, 0, sent);
  const auto* const bytes = static_cast<const std::byte*>(send.memory);
  const auto at = std::ranges::find_if(
      receives_, [&](const Request* each) { return matches(*each, from, send.peer, send.tag); });
  if (at == receives_.end()) {
    unexpected_.push_back({from, send.peer, send.tag, {bytes, bytes + send.size}});
    return complete(send, from, send.size, sent);
  }
  Request& receive = **at;
  receives_.erase(at);
  hand_over(receive, from, bytes, send.size);
  complete(send, from, send.size, sent);
}

std::size_t Mpi::under_way(int tag) const {
  const auto is_left = [&](int to, int its_tag) {
    return its_tag == tag && !ranks_[static_cast<std::size_t>(to)].has_retired_tags;
  };
  const auto sent = std::ranges::count_if(
      messages_, [&](const Request* each) { return is_left(each->peer, each->tag); });
  const auto arrived = std::ranges::count_if(
      unexpected_, [&](const Arrived& each) { return is_left(each.to, each.tag); });
  return static_cast<std::size_t>(sent + arrived);
}

void Mpi::make_communicators_anew() {
  const bool has_retired = std::ranges::any_of(ranks_, &host::Communicator::has_retired_tags);
  for (host::Communicator& each : ranks_) {
    if (!has_retired) each.next_tag = host::Communicator{}.next_tag;
    each.has_retired_tags = false;
  }
}

bool Mpi::uses(const std::vector<std::byte>& memory) const {
  const auto is_there = [&](const Request* each) {
    const auto* const first = static_cast<const std::byte*>(each->memory);
    return first >= memory.data() && first < memory.data() + memory.size();
  };
  return std::ranges::any_of(receives_, is_there) || std::ranges::any_of(messages_, is_there);
}

void Mpi::fail_operations_with_the_dead() {
  for (std::deque<Request*>* const queue : {&messages_, &receives_}) {
    const auto end = std::stable_partition(queue->begin(), queue->end(), [&](const Request* each) {
      return !dead_.contains(each->peer) || dead_.contains(each->rank);
    });
    const std::vector<Request*> failed(end, queue->end());
    queue->erase(end, queue->end());
    for (Request* const each : failed) complete(*each, each->peer, 0, Code::kFailed);
  }
}

}  // namespace cepheus::coll::fake

namespace cepheus::coll::host {

using fake::running_mpi;

int rank(const Communicator& comm) { return comm.rank; }
int size(const Communicator& comm) { return comm.size; }
std::string name(const Communicator&) { return "WORLD"; }
bool outlives_finalize(const Communicator& comm) { return comm.outlives_finalize; }
bool is_dynamic(const Communicator&) { return false; }
bool shares_machine(const Communicator&, int) { return false; }
PlaceInJob place_in_job(const Communicator&, int rank) {
  return {1, static_cast<std::uint32_t>(rank)};
}
int reserve_tags(Communicator& comm, int count) {
  const int first = comm.next_tag;
  comm.next_tag -= count;
  return first;
}
void retire_tags(Communicator& comm) { comm.has_retired_tags = true; }
void retain(Communicator&) {}
void release(Communicator&) {}
void abort_job(const Communicator& comm, const std::string& reason) {
  throw fake::Aborted{comm.rank, reason};
}

Code send(Communicator& comm, const void* data, std::size_t size, int to, int tag, Request*& out) {
  const bool is_refused = running_mpi->refuses(comm.rank, tag, true);
  if (is_refused && running_mpi->refuses_so == fake::Mpi::Refuses::kAtOnce) return Code::kNoMemory;
  const fake::Counting uncounted(false);
  out = new Request{true, false, false, comm.rank, to, tag, const_cast<void*>(data), size};
  out->communicator = comm.object;
  out->fails = is_refused;
  out->arrives = !is_refused || running_mpi->refuses_so == fake::Mpi::Refuses::kLaterButArrives;
  running_mpi->send(out);
  return Code::kDone;
}
Code receive(Communicator& comm, void* data, std::size_t size, int from, int tag, Request*& out) {
  const bool is_refused = running_mpi->refuses(comm.rank, tag, false);
  if (is_refused && running_mpi->refuses_so == fake::Mpi::Refuses::kAtOnce) return Code::kNoMemory;
  const fake::Counting uncounted(false);
  out = new Request{false, false, false, comm.rank, from, tag, data, size};
  out->communicator = comm.object;
  out->fails = is_refused;
  running_mpi->receive(out);
  return Code::kDone;
}
bool is_complete(const Request& request) { return request.is_complete; }
Received received(const Request& request) { return request.status; }
void on_complete(Request& request, Notice& notice) {
  if (request.is_complete)
    notice.run(&notice);
  else
    request.notice = &notice;
}
void cancel(Request& request) {
  const fake::Counting uncounted(false);
  running_mpi->cancel(request);
}
void free(Request* request) {
  if (request->is_complete)
    delete request;
  else
    request->is_forgotten = true;
}

const char* implementation() { return "the fake"; }
std::string parameter(const char* name) { return name; }
void progress() { fake::Mpi::wait(); }
void start_background_progress() {}
void stop_background_progress() {}
bool knows_device_memory() { return false; }

// CEPHEUS_VERBOSE is the verbosity.
void log(int level, const char* format, ...) {
  static const char* const verbosity = std::getenv("CEPHEUS_VERBOSE");
  const bool is_shown = verbosity != nullptr && level <= std::atoi(verbosity);
  const bool is_kept = running_mpi != nullptr && level == 0;
  if (!is_shown && !is_kept) return;
  const fake::Counting uncounted(false);
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (is_kept) running_mpi->errors.emplace_back(line);
  if (is_shown) std::fprintf(stderr, "%s\n", line);
}

}  // namespace cepheus::coll::host
