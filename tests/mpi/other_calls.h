// Checked calls beside reductions: MPI_Barrier, MPI_Allgather, MPI_Bcast, MPI_Alltoall and their
// non-blocking forms.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/mpi/checked_call.h"

namespace reductions {

// One rank is late in some barriers: nobody may leave before it has entered. Others send it a message
// when they enter. In a blocking barrier they send another one once they have left, which must not
// come before the late rank enters. In a non-blocking one they test their requests meanwhile.
class BarrierCall : public Call {
 public:
  BarrierCall(const Place& place, std::uint64_t key) : place_(place) {
    Random random(key);
    is_watched_ = place.size > 1 && random.one_in(2);
    late_ = random.below(place.size);
  }

  void start(MPI_Request* request) override {
    is_blocking_ = request == nullptr;
    const bool waits = is_watched_ && place_.rank == late_;
    if (waits && is_blocking_) look_for_leavers();
    if (waits && !is_blocking_) let_others_test();
    if (is_watched_ && !waits && is_blocking_) send(kEnters, late_);
    if (is_blocking_) {
      MPI_Barrier(place_.comm);
    } else {
      MPI_Ibarrier(place_.comm, request);
    }
    if (!is_watched_) return;
    if (waits && is_blocking_) receive_from_all(kLeft);
    if (!waits && is_blocking_) send(kLeft, late_);
    if (!waits && !is_blocking_) test(request);
  }

  std::string wrong() override { return why_; }

  std::string text() const override {
    return std::string(is_blocking_ ? "" : "I") + "barrier" +
           (is_watched_ ? ", rank " + std::to_string(late_) + " is late" : "");
  }

 private:
  enum Tag { kEnters = 1, kLeft, kTest, kTested };
  static constexpr int kLooks = 50, kTests = 20;

  void send(Tag tag, int to) const { MPI_Send(nullptr, 0, MPI_BYTE, to, tag, place_.talk); }
  void receive(Tag tag, int from) const {
    MPI_Recv(nullptr, 0, MPI_BYTE, from, tag, place_.talk, MPI_STATUS_IGNORE);
  }
  void receive_from_all(Tag tag) const {
    for (int i = 1; i < place_.size; i++) receive(tag, MPI_ANY_SOURCE);
  }

  void look_for_leavers() {
    receive_from_all(kEnters);
    for (int i = 0; i < kLooks; i++) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, kLeft, place_.talk, &found, MPI_STATUS_IGNORE);
      if (found) why_ = "a rank has left it before this rank enters";
      sched_yield();
    }
  }
  void let_others_test() const {
    receive_from_all(kEnters);
    for (int rank = 0; rank < place_.size; rank++)
      if (rank != place_.rank) send(kTest, rank);
    receive_from_all(kTested);
  }
  void test(MPI_Request* request) {
    send(kEnters, late_);
    receive(kTest, late_);
    for (int i = 0; i < kTests; i++) {
      int is_complete = 0;
      if (*request != MPI_REQUEST_NULL) MPI_Test(request, &is_complete, MPI_STATUS_IGNORE);
      if (is_complete || *request == MPI_REQUEST_NULL)
        why_ = "it is complete before the late rank has entered";
    }
    send(kTested, late_);
  }

  const Place place_;
  bool is_watched_ = false, is_blocking_ = true;
  int late_ = 0;
  std::string why_;
};

// Each rank has types of its own, of one signature.
class AllgatherCall : public Call {
 public:
  // `most_bytes`: of all ranks, unless it is 0.
  AllgatherCall(const Place& place, std::uint64_t key, long most_bytes) : place_(place), key_(key) {
    Random random(key);
    in_place_ = random.one_in(3);
    frees_early_ = random.one_in(2);
    signature_ = make_signature(random);
    MPI_Aint bytes = 0;
    for (const Basic& basic : signature_) bytes += basic.size;
    in_a_row_ = random.one_in(2) ? 1 : random.between(2, 3);
    count_ = random_count(random, bytes * in_a_row_, place.size);
    while (most_bytes > 0 && count_ * bytes * in_a_row_ * place.size > most_bytes) count_ /= 2;
    Random own(key + 1 + static_cast<std::uint64_t>(place.rank));
    send_side_.emplace(side(own));
    receive_side_.emplace(side(own));
    send_map_ = send_side_->type.map();
    receive_map_ = receive_side_->type.map();
  }

  void start(MPI_Request* request) override {
    is_blocking_ = request == nullptr;
    const int send_count = send_side_->count, receive_count = receive_side_->count;
    send_.emplace(send_map_, send_count);
    put(*send_, send_map_, 0, place_.rank);
    expected_.emplace(receive_map_, MPI_Aint{receive_count} * place_.size);
    receive_.emplace(*expected_);
    block_extent_ = receive_count * receive_map_.extent();
    if (in_place_) put(*receive_, receive_map_, block_extent_ * place_.rank, place_.rank);
    const void* const from = in_place_ ? MPI_IN_PLACE : send_->origin();
    void* const to = receive_->origin();
    const MPI_Datatype send_type = send_side_->type.mpi(), receive_type = receive_side_->type.mpi();
    if (is_blocking_) {
      MPI_Allgather(from, send_count, send_type, to, receive_count, receive_type, place_.comm);
    } else {
      MPI_Iallgather(from, send_count, send_type, to, receive_count, receive_type, place_.comm,
                     request);
    }
    if (!frees_early_) return;
    send_side_.reset();
    receive_side_.reset();
  }

  std::string wrong() override {
    for (int rank = 0; rank < place_.size; rank++)
      put(*expected_, receive_map_, block_extent_ * rank, rank);
    return first_difference(receive_->bytes(), expected_->bytes(), "the result");
  }

  std::string text() const override {
    return std::string(is_blocking_ ? "" : "I") + "allgather of " + std::to_string(count_) +
           " items a rank, here of extent " + std::to_string(receive_map_.extent()) +
           (in_place_ ? ", in place" : "");
  }

 private:
  // One of a type of some signatures in a row, or some of a type of one.
  Side side(Random& random) const {
    const bool is_long = random.one_in(2);
    Signature signature;
    for (int i = 0; i < (is_long ? in_a_row_ : 1); i++)
      signature.insert(signature.end(), signature_.begin(), signature_.end());
    Type type = TypeMaker(random, false).item(signature);
    MPI_Datatype committed = type.mpi();
    MPI_Type_commit(&committed);
    return {std::move(type), is_long ? count_ : count_ * in_a_row_};
  }

  // A rank's block.
  void put(Buffer& buffer, const Map& map, MPI_Aint at, int rank) const {
    Random random(key_ + 1000 + static_cast<std::uint64_t>(rank));
    Walk walk(map, buffer.origin() + at);
    for (int i = 0; i < count_ * in_a_row_; i++)
      for (const Basic& basic : signature_)
        fill(walk.next(), static_cast<std::size_t>(basic.size), random.next());
  }

  const Place place_;
  const std::uint64_t key_;
  bool in_place_ = false, frees_early_ = false, is_blocking_ = true;
  Signature signature_;
  int in_a_row_ = 1, count_ = 0;
  std::optional<Side> send_side_, receive_side_;
  Map send_map_, receive_map_;
  MPI_Aint block_extent_ = 0;
  std::optional<Buffer> send_, receive_, expected_;
};

class BroadcastCall : public Call {
 public:
  BroadcastCall(const Place& place, std::uint64_t key) : place_(place), key_(key) {
    Random random(key);
    root_ = random.below(place.size);
    memory_.resize(static_cast<std::size_t>(random.below(random.one_in(4) ? 40000 : 3000)));
  }
  void start(MPI_Request* request) override {
    is_blocking_ = request == nullptr;
    const int bytes = static_cast<int>(memory_.size());
    before_broadcast(memory_.data(), memory_.size(), key_, root_, place_.talk);
    if (is_blocking_) {
      MPI_Bcast(memory_.data(), bytes, MPI_BYTE, root_, place_.comm);
    } else {
      MPI_Ibcast(memory_.data(), bytes, MPI_BYTE, root_, place_.comm, request);
    }
  }
  std::string wrong() override {
    const std::size_t at = check(memory_.data(), memory_.size(), key_);
    return at == memory_.size() ? "" : "byte " + std::to_string(at) + " is wrong";
  }
  std::string text() const override {
    return std::string(is_blocking_ ? "" : "I") + "bcast of " + std::to_string(memory_.size()) +
           " bytes, root " + std::to_string(root_);
  }

 private:
  const Place place_;
  const std::uint64_t key_;
  int root_ = 0;
  bool is_blocking_ = true;
  std::vector<unsigned char> memory_;
};

// MPI's own function serves it always.
class AlltoallCall : public Call {
 public:
  AlltoallCall(const Place& place, std::uint64_t key) : place_(place), key_(key) {
    bytes_ = static_cast<std::size_t>(Random(key).below(2000));
    send_.resize(bytes_ * static_cast<std::size_t>(place.size));
    receive_.resize(send_.size());
  }
  void start(MPI_Request* request) override {
    is_blocking_ = request == nullptr;
    const int bytes = static_cast<int>(bytes_);
    for (int rank = 0; rank < place_.size; rank++)
      fill(block(send_, rank), bytes_, key_of(place_.rank, rank));
    if (is_blocking_) {
      MPI_Alltoall(send_.data(), bytes, MPI_BYTE, receive_.data(), bytes, MPI_BYTE, place_.comm);
    } else {
      MPI_Ialltoall(send_.data(), bytes, MPI_BYTE, receive_.data(), bytes, MPI_BYTE, place_.comm,
                    request);
    }
  }
  std::string wrong() override {
    for (int rank = 0; rank < place_.size; rank++) {
      const std::size_t at = check(block(receive_, rank), bytes_, key_of(rank, place_.rank));
      if (at != bytes_)
        return "byte " + std::to_string(at) + " from rank " + std::to_string(rank) + " is wrong";
    }
    return "";
  }
  std::string text() const override {
    return std::string(is_blocking_ ? "" : "I") + "alltoall of " + std::to_string(bytes_) +
           " bytes";
  }

 private:
  unsigned char* block(std::vector<unsigned char>& all, int rank) const {
    return all.data() + bytes_ * static_cast<std::size_t>(rank);
  }
  std::uint64_t key_of(int from, int to) const {
    return key_ + static_cast<std::uint64_t>(from) * 1000 + static_cast<std::uint64_t>(to);
  }

  const Place place_;
  const std::uint64_t key_;
  std::size_t bytes_ = 0;
  bool is_blocking_ = true;
  std::vector<unsigned char> send_, receive_;
};

}  // namespace reductions
