// The host of the collectives, as a test holds it in its hands: communicators of one job, and
// messages between ranks. Messages between two ranks stay in order by tag; all else is the test's to
// choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/host_mpi.h"

namespace cepheus::coll::host {

// A rank's end of it.
struct Communicator {
  int rank = 0;
  int size = 0;
  int next_tag = -1000;
  bool has_retired_tags = false;
  bool outlives_finalize = false;
  // As in Open MPI, requests hold it until they are freed and complete.
  std::shared_ptr<void> object = std::make_shared<char>();
  long requests() const { return object.use_count() - 1; }
};

struct Request {
  bool is_send = false;
  bool is_complete = false;
  bool is_forgotten = false;
  int rank = 0;
  int peer = 0;
  int tag = 0;
  void* memory = nullptr;
  std::size_t size = 0;
  Received status = {};
  Notice* notice = nullptr;
  std::shared_ptr<void> communicator = {};
  std::vector<std::byte> forged = {};  // of another length than the sender's memory
  bool fails = false;                  // it will complete in an error...
  bool arrives = true;                 // ... of a send: its message is received all the same
};

}  // namespace cepheus::coll::host

namespace cepheus::coll::fake {

// The exception of host::abort_job().
struct Aborted {
  int rank;
  std::string reason;
};

class Mpi {
 public:
  using Request = host::Request;

  // The host from now on; one at a time.
  explicit Mpi(int ranks);
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  host::Communicator& communicator(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // Messages that may arrive now: the oldest of each sender, receiver and tag.
  std::vector<std::size_t> deliverable() const;
  int sender(std::size_t index) const { return messages_[index]->rank; }
  int receiver(std::size_t index) const { return messages_[index]->peer; }
  int tag(std::size_t index) const { return messages_[index]->tag; }
  // The data of a message that is delivered now.
  std::vector<std::byte> content(std::size_t index) const {
    const auto* const bytes = static_cast<const std::byte*>(messages_[index]->memory);
    return {bytes, bytes + messages_[index]->size};
  }
  // Delivers one message, also without a posted receive. Only now the sender's memory is read.
  void deliver(std::size_t index);
  // Messages there that no rank has received, of receivers that have not retired the tag.
  std::size_t under_way(int tag) const;
  // The program has freed the communicators of all ranks, and makes others: with the same tags, unless
  // a rank has retired those.
  void make_communicators_anew();
  // A message under way may read or write some of these bytes.
  bool uses(const std::vector<std::byte>& memory) const;
  // The rank's process has died: it receives nothing more. Its sent messages still arrive.
  void kill(int rank) { dead_.insert(rank); }
  // Operations with ranks that are dead end in an error.
  void fail_operations_with_the_dead();
  std::size_t receives() const { return receives_.size(); }
  std::size_t sent_bytes(int rank) const { return sent_bytes_[static_cast<std::size_t>(rank)]; }
  // The ranks that it has sent to.
  std::size_t receivers(int rank) const {
    return receivers_[static_cast<std::size_t>(rank)].size();
  }
  // Runs when a blocking call waits.
  std::function<void()> waits;
  std::optional<int> refused_tag;              // receives of this tag...
  std::optional<int> refused_send;             // and sends of this one...
  std::optional<int> refused_rank;             // ... of this rank alone...
  int refused_after = 0;                       // ... behind this number of them...
  std::size_t most_refused = ~std::size_t{0};  // ... and at most this number
  // ... at once, or as they complete. The message of a failed send arrives or is lost.
  enum class Refuses : std::uint8_t { kAtOnce, kLater, kLaterButArrives };
  Refuses refuses_so = Refuses::kAtOnce;
  std::size_t refused() const { return refused_; }
  // The errors that ranks have logged.
  std::vector<std::string> errors;
  // For each tag: the length of every message from now on, instead of its own.
  std::map<int, std::size_t> wrong_lengths;

  // --- The port's.
  void send(Request* request);
  void receive(Request* request);
  void cancel(Request& request);
  bool refuses(int rank, int tag, bool is_send) {
    const bool is_such =
        tag == (is_send ? refused_send : refused_tag) && rank == refused_rank.value_or(rank);
    const bool is_refused = is_such && refused_after-- <= 0 && refused_ < most_refused;
    refused_ += is_refused ? 1 : 0;
    return is_refused;
  }
  static void wait();

 private:
  static void complete(Request& request, int from, std::size_t bytes, Code error);
  struct Arrived {
    int from, to, tag;
    std::vector<std::byte> data;
  };
  static bool matches(const Request& receive, int from, int to, int tag);
  static void hand_over(Request& receive, int from, const void* data, std::size_t size);

  std::vector<host::Communicator> ranks_;
  std::vector<std::size_t> sent_bytes_;
  std::vector<std::set<int>> receivers_;
  std::deque<Request*> messages_;  // sends that are not complete
  std::deque<Request*> receives_;
  std::deque<Arrived> unexpected_;
  std::set<int> dead_;
  std::size_t refused_ = 0;  // receives and sends
};

}  // namespace cepheus::coll::fake
