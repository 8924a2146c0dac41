// Open MPI's point-to-point layer and communicators, as a test holds them in its hands. Messages
// between two ranks stay in order by tag; all else is the test's to choose. Open MPI is not
// initialised.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll::fake {

// opal_progress() works from now on. It frees nothing of before.
void start_progress();

class OpenMpi {
 public:
  // Puts itself in the place of Open MPI's layer; one at a time.
  explicit OpenMpi(int ranks);
  ~OpenMpi();
  OpenMpi(const OpenMpi&) = delete;
  OpenMpi& operator=(const OpenMpi&) = delete;

  ompi_communicator_t* communicator(int rank) { return ranks_[static_cast<size_t>(rank)].get(); }
  // Messages that may arrive now: the oldest of each sender, receiver and tag.
  std::vector<size_t> deliverable() const;
  int receiver(size_t index) const { return messages_[index]->peer; }
  // Lets one arrive. What is sent is read only now.
  void deliver(size_t index);
  // Messages that nobody has received.
  size_t under_way() const { return messages_.size(); }
  size_t receives() const { return receives_.size(); }
  size_t sent_bytes(int rank) const { return sent_bytes_[static_cast<size_t>(rank)]; }
  // By tag: the length of every message sent there from now on, instead of its own.
  std::map<int, size_t> wrong_lengths;

 private:
  struct Request : ompi_request_t {
    int rank;
    int peer;
    int tag;
    void* memory;
    size_t size;
    std::vector<std::byte> forged;  // of another length than the sender's memory
  };
  friend struct Calls;
  static Request* make(int rank, int peer, int tag, void* memory, size_t size);
  static void complete(Request& request, int from, size_t bytes, int error);
  std::deque<Request*>::iterator receive_for(const Request& send);

  std::vector<std::unique_ptr<ompi_communicator_t, void (*)(void*)>> ranks_;
  std::vector<std::unique_ptr<ompi_group_t, void (*)(void*)>> groups_;
  std::vector<size_t> sent_bytes_;
  std::deque<Request*> messages_;  // sends that are not complete
  std::deque<Request*> receives_;
};

}  // namespace cepheus::coll::fake
