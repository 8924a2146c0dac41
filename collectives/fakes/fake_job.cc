#include "collectives/fakes/fake_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/fakes/fake_clock.h"

namespace cepheus::coll::fake {

namespace {

std::byte byte_of(std::size_t bytes, std::size_t index) {
  return static_cast<std::byte>(bytes * 131 + index * 7 + 1);
}

}  // namespace

Job::Job(int size, int ranks_per_host) : mpi(size), ranks_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) {
    at(rank).caller = std::make_unique<Caller>(mpi.communicator(rank), ranks_per_host);
  }
}

void Job::fill(Rank& rank) {
  const std::size_t bytes = rank.memory.size();
  for (std::size_t i = 0; i < bytes; ++i) rank.memory[i] = byte_of(bytes, i);
}

void Job::begin(int rank, int root, std::size_t bytes, bool blocking, bool has_gaps) {
  Rank& self = at(rank);
  self.shape = {Collective::kBcast, 0};
  self.memory.assign(bytes, std::byte{0xEE});
  if (rank == root) fill(self);
  self.caller->begin(self.memory, root, blocking, has_gaps);
  self.result = Code::kPending;
}

void Job::begin_all(int root, std::size_t bytes, bool blocking) {
  for (int rank = 0; rank < size(); ++rank) begin(rank, root, bytes, blocking);
}

void Job::reduce(int rank, const ReductionShape& shape, Code data, bool blocking) {
  Rank& self = at(rank);
  self.shape = shape;
  self.memory = memory_before(shape, size(), rank, self.calls, library);
  self.caller->begin(shape, self.memory, blocking, data, library);
  self.result = Code::kPending;
}

void Job::reduce_all(const ReductionShape& shape, bool blocking) {
  for (int rank = 0; rank < size(); ++rank) reduce(rank, shape, Code::kDone, blocking);
}

void Job::serve_saved(int rank) {
  Rank& self = at(rank);
  now() += std::chrono::milliseconds(1);
  if (self.shape.collective == Collective::kBcast) return fill(self);
  self.memory = memory_after(self.shape, size(), rank, self.calls, library);
}

bool Job::all_have_results() const {
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& self = at(rank);
    if (self.memory != memory_after(self.shape, size(), rank, self.calls - 1, library))
      return false;
  }
  return true;
}

bool Job::have_equal_results() const {
  return std::ranges::all_of(ranks_,
                             [&](const Rank& each) { return each.memory == ranks_[0].memory; });
}

void Job::look(int rank, bool at_nic) {
  Rank& self = at(rank);
  fabric.caller = rank;
  if (at_nic) fabric.progress(rank);
  if (self.result == Code::kPending) end(rank, self.caller->progress());
  self.caller->look_after();
}

void Job::end(int rank, Code rc) {
  if (rc == Code::kPending) return;
  Rank& self = at(rank);
  const bool is_saved = rc == Code::kNotServed;
  if (is_saved) serve_saved(rank);
  self.caller->finish(rc);
  self.result = is_saved ? Code::kDone : rc;
  const std::size_t call = self.calls++;
  // Ranks with different arguments may part.
  if (rc == Code::kCountsDiffer || rc == Code::kTruncated || rc == Code::kRootsDiffer) return;
  EXPECT_EQ(is_saved, is_saved_.emplace(call, is_saved).first->second)
      << "rank " << rank << (is_saved ? " takes" : " does not take")
      << " the saved function for call " << call << ", another rank does the opposite";
}

bool Job::is_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.result != Code::kPending; });
}

void Job::move() {
  const auto next = [this] {
    std::vector<std::size_t> messages = mpi.deliverable();
    std::erase_if(messages, [this](std::size_t i) { return mpi.receiver(i) == unheard; });
    return messages;
  };
  for (auto messages = next(); !messages.empty(); messages = next()) mpi.deliver(messages.front());
  fabric.move_all();
}

void Job::pass_moment() {
  move();
  for (int rank = 0; rank < size(); ++rank) look(rank);
  now() += std::chrono::milliseconds(1);
}

void Job::pass(std::chrono::milliseconds time) {
  for (const auto end = now() + time; now() < end;) pass_moment();
}

bool Job::run(std::chrono::milliseconds most) {
  for (const auto end = now() + most; !is_over() && now() < end;) pass_moment();
  return is_over();
}

bool Job::close() {
  std::vector<Rank*> left;
  for (Rank& rank : ranks_) left.push_back(&rank);
  for (int moments = 0; moments < 1000 && !left.empty(); ++moments) {
    move();
    std::erase_if(left, [](Rank* rank) { return rank->caller->close(); });
  }
  return left.empty();
}

std::vector<Code> Job::results() const {
  std::vector<Code> all;
  for (const Rank& rank : ranks_) all.push_back(rank.result);
  return all;
}

bool Job::has_data(int rank) const {
  const std::vector<std::byte>& memory = at(rank).memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != byte_of(memory.size(), i)) return false;
  }
  return true;
}

bool Job::all_have_data() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (!has_data(rank)) return false;
  }
  return true;
}

std::uint32_t Job::last_end(int rank) const {
  std::uint32_t last = 0;
  for (const std::uint32_t end : fabric.ends()) {
    if (fabric.rank_of(end) == rank) last = end;
  }
  return last;
}

}  // namespace cepheus::coll::fake
