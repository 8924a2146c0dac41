// collectives/host_mpi.h on MPI's public functions. A request is allocated here, and tested under
// one mutex: progress() tests requests with a notice beside the thread that owns them. It tests
// kMostTests at a time, and all in turn, by one call of MPI.
//
// Refused: messages beyond INT_MAX bytes, and messages before tags are exchanged. A canceled
// receive has no sender. abort_job() gives the launcher a second to read its line.
#include "collectives/host_mpi.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/group/team.h"
#include "pmpi/background.h"
#include "pmpi/calls.h"
#include "pmpi/codes.h"
#include "pmpi/communicator.h"
#include "pmpi/parameters.h"

namespace cepheus::coll::host {

using namespace pmpi;

struct Request {
  pmpi::Request handle;
  const Communicator* comm;  // null: a send, which may outlive it
  int from;
  bool is_complete = false;
  Notice* notice = nullptr;
  Received outcome{Code::kDone, kAnyRank, 0};
};

namespace {

int world_rank(const Communicator& comm, int rank) {
  return comm.world_ranks[static_cast<std::size_t>(rank)];
}

// The rank of `world_rank` in `comm`. A canceled receive has none.
int rank_of(const Communicator& comm, int world_rank) {
  const std::vector<int>& ranks = comm.world_ranks;
  const auto at = static_cast<std::size_t>(world_rank);
  if (at < ranks.size() && ranks[at] == world_rank) return world_rank;
  const auto found = std::ranges::find(ranks, world_rank);
  return found != ranks.end() ? static_cast<int>(found - ranks.begin()) : kAnyRank;
}

// MPI calls back for no request. So progress() tests those with a notice, also beside the thread that
// owns the request: a few at a time and all in turn, because each communicator has one. One call of
// MPI tests them, since each call moves all of MPI's messages, too. Requests are tested and freed
// under this mutex.
constexpr std::size_t kMostTests = 8;
std::mutex requests_mutex;
std::vector<Request*> noticed;
std::size_t next_noticed = 0;

// MPI has freed its handle.
void complete(Request& request, int rc, const Status& status) {
  request.handle = kRequestNull;
  request.is_complete = true;
  request.outcome.error = to_code(rc);
  if (request.comm == nullptr) return;
  Count bytes = 0;
  if (calls().Get_elements_x(&status, kByte, &bytes) != kSuccess) bytes = 0;
  request.outcome.from =
      request.from != kAnyRank ? request.from : rank_of(*request.comm, status.source);
  request.outcome.bytes = static_cast<std::size_t>(std::max<Count>(bytes, 0));
}

bool test(Request& request) {
  if (request.is_complete) return true;
  Status status{};
  int is_complete = 0;
  const int rc = calls().Test(&request.handle, &is_complete, &status);
  if (rc == kSuccess && is_complete == 0) return false;
  complete(request, rc, status);
  return true;
}

// One of these that is complete; their size: none.
std::size_t test_any(std::span<Request* const> requests) {
  std::array<pmpi::Request, kMostTests> handles;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i]->is_complete) return i;  // its owner has tested it
    handles[i] = requests[i]->handle;
  }
  Status status{};
  int at = kUndefined, is_complete = 0;
  const int rc = calls().Testany(static_cast<int>(requests.size()), handles.data(), &at,
                                 &is_complete, &status);
  const bool is_known = at >= 0 && static_cast<std::size_t>(at) < requests.size();
  if (is_known && (is_complete != 0 || rc != kSuccess)) {
    complete(*requests[static_cast<std::size_t>(at)], rc, status);
    return static_cast<std::size_t>(at);
  }
  if (rc == kSuccess) return requests.size();
  // A failed one that MPI does not name.
  const auto found = std::ranges::find_if(requests, [](Request* each) { return test(*each); });
  return static_cast<std::size_t>(found - requests.begin());
}

void forget_notice(Request& request) {
  if (request.notice == nullptr) return;
  request.notice = nullptr;
  std::erase(noticed, &request);
}

bool can_transfer(const Communicator& comm, std::size_t size) {
  return comm.addresses.is_known() && size <= INT_MAX;
}

}  // namespace

// --- Communicators.

int rank(const Communicator& comm) { return comm.rank; }
int size(const Communicator& comm) { return comm.size; }
std::string name(const Communicator& comm) { return name_of(comm); }

bool outlives_finalize(const Communicator&) { return false; }  // sessions' are not served
bool is_dynamic(const Communicator& comm) {
  return std::ranges::any_of(comm.world_ranks, [](int each) { return each < 0; }) ||
         comm.world_ranks.empty();
}

bool shares_machine(const Communicator& comm, int rank) {
  return pmpi::is_on_this_machine(world_rank(comm, rank));
}

PlaceInJob place_in_job(const Communicator& comm, int rank) {
  return {0, static_cast<std::uint32_t>(world_rank(comm, rank))};
}

// Of the communicator's block.
static_assert(static_cast<int>(Tag::kCount) <= kTagsOfBlock, "a block has a tag for each purpose");
int reserve_tags(Communicator&, int count) { return count - 1; }

// Those at which this rank receives. Its messages to other ranks are at their tags. A rank that has not
// received all that were sent to it has failed, too, or knows at the communicator's end that another one
// has: it retires its own. Not so on a communicator that never had a group, at the end of which no rank
// waits for the others: the news of a failed rank may still be under way then.
void retire_tags(Communicator& comm) { comm.has_retired_tags = true; }

void retain(Communicator& comm) { comm.owners.fetch_add(1); }
void release(Communicator& comm) { give_back(comm); }

void abort_job(const Communicator& comm, const std::string& reason) {
  log(0,
      "cepheus: %s (%d ranks) can't multicast: %s. %s is \"require\", so the job ends; \"try\" "
      "would "
      "let it use %s's own algorithms",
      name(comm).c_str(), comm.size, reason.c_str(), parameter("mode").c_str(), implementation());
  // Hydra drops the output that it has not read when it aborts a job.
  for (int unread = 0, i = 0; i < 1000 && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0; ++i) {
    if (unread == 0) break;
    usleep(1000);
  }
  (void)calls().Abort(kCommWorld, 1);
  _exit(1);
}

// --- Messages.

Code send(Communicator& comm, const void* data, std::size_t size, int to, int tag, Request*& out) {
  if (!can_transfer(comm, size)) return Code::kFailed;
  pmpi::Request handle = kRequestNull;
  const int rc = calls().Isend(data, static_cast<int>(size), kByte, world_rank(comm, to),
                               comm.addresses.tag(to, tag), message_communicator(), &handle);
  if (rc == kSuccess) out = new Request{handle, nullptr, kAnyRank};
  return to_code(rc);
}

Code receive(Communicator& comm, void* data, std::size_t size, int from, int tag, Request*& out) {
  if (!can_transfer(comm, size)) return Code::kFailed;
  pmpi::Request handle = kRequestNull;
  const int rc = calls().Irecv(data, static_cast<int>(size), kByte,
                               from == kAnyRank ? kAnySource : world_rank(comm, from),
                               comm.addresses.tag(comm.rank, tag), message_communicator(), &handle);
  if (rc == kSuccess) out = new Request{handle, &comm, from};
  return to_code(rc);
}

bool is_complete(const Request& request) {
  const std::lock_guard<std::mutex> guard(requests_mutex);
  return test(const_cast<Request&>(request));
}

Received received(const Request& request) { return request.outcome; }

void on_complete(Request& request, Notice& notice) {
  const std::lock_guard<std::mutex> guard(requests_mutex);
  if (test(request)) return notice.run(&notice);
  request.notice = &notice;
  noticed.push_back(&request);
}

void cancel(Request& request) {
  const std::lock_guard<std::mutex> guard(requests_mutex);
  forget_notice(request);
  if (request.comm != nullptr && !test(request)) (void)calls().Cancel(&request.handle);
}

void free(Request* request) {
  {
    const std::lock_guard<std::mutex> guard(requests_mutex);
    forget_notice(*request);
    if (!test(*request)) (void)calls().Request_free(&request->handle);
  }
  delete request;
}

// --- The process.

const char* implementation() { return kName; }
std::string parameter(const char* name) { return variable_of(name); }
bool knows_device_memory() { return false; }

void progress() {
  // Peers may wait for messages that MPI moves only inside its calls.
  if (!run_notices()) {
    int found = 0;
    Status status{};
    (void)calls().Iprobe(kAnySource, kAnyTag, own_communicator(), &found, &status);
  }
  progress_background();
}

void start_background_progress() { start_background(); }
void stop_background_progress() { stop_background(); }

void log(int level, const char* format, ...) {
  if (level > std::max(0, parameters().verbose)) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  // Not fprintf(): that needs 8 KiB of stack, more than some threads of programs have left.
  (void)fputs(std::strcat(line, "\n"), stderr);
}

}  // namespace cepheus::coll::host

namespace cepheus::pmpi {

bool run_notices() {
  using namespace coll::host;
  const std::lock_guard<std::mutex> guard(requests_mutex);
  if (noticed.empty()) return false;
  if (next_noticed >= noticed.size()) next_noticed = 0;
  const std::size_t count = std::min(kMostTests, noticed.size() - next_noticed);
  const std::size_t found = test_any(std::span(noticed).subspan(next_noticed, count));
  if (found == count) {
    next_noticed += count;
    return true;
  }
  coll::host::Request*& request = noticed[next_noticed + found];
  Notice* const notice = std::exchange(request->notice, nullptr);
  request = noticed.back();
  noticed.pop_back();
  notice->run(notice);
  return true;
}

}  // namespace cepheus::pmpi
