// The host of the collectives, as a test holds it in its hands: communicators of one job, and
// messages between ranks. Messages between two ranks stay in order by tag; all else is the test's to
// choose.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/host_mpi.h"

namespace cepheus::coll::host {

// A rank's end of it.
struct Communicator {
  int rank = 0;
  int size = 0;
  int next_tag = -1000;
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
  std::vector<std::byte> forged = {};  // of another length than the sender's memory
};

}  // namespace cepheus::coll::host

namespace cepheus::coll::fake {

// What host::abort_job() throws.
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
  int receiver(std::size_t index) const { return messages_[index]->peer; }
  // Lets one arrive. What is sent is read only now.
  void deliver(std::size_t index);
  // Messages that nobody has received.
  std::size_t under_way() const { return messages_.size(); }
  std::size_t receives() const { return receives_.size(); }
  std::size_t sent_bytes(int rank) const { return sent_bytes_[static_cast<std::size_t>(rank)]; }
  // By tag: the length of every message sent there from now on, instead of its own.
  std::map<int, std::size_t> wrong_lengths;

  // --- The port's.
  void send(Request* request);
  void receive(Request* request) { receives_.push_back(request); }
  void cancel(Request& request);

 private:
  static void complete(Request& request, int from, std::size_t bytes, Code error);
  std::deque<Request*>::const_iterator receive_for(const Request& send) const;

  std::vector<host::Communicator> ranks_;
  std::vector<std::size_t> sent_bytes_;
  std::deque<Request*> messages_;  // sends that are not complete
  std::deque<Request*> receives_;
};

}  // namespace cepheus::coll::fake
