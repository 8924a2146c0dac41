#include "ompi-coll/fake_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ompi-coll/fake_clock.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll::fake {

namespace {

std::byte byte_of(std::size_t bytes, std::size_t index) {
  return static_cast<std::byte>(bytes * 131 + index * 7 + 1);
}

}  // namespace

void use_small_sizes() {
  Parameters& p = parameters();
  p = {};
  p.carrier = static_cast<int>(Carrier::kDirect);
  p.eager_limit = 256;
  p.eager_message = 64;
  p.slow_fallback = 0;
  p.bulk_unit = 400;
  p.bulk_piece = 50;
  p.tree_segment = 100;
}

Job::Job(int size, int ranks_per_host) : open_mpi(size), ranks_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) {
    ompi_communicator_t* const comm = open_mpi.communicator(rank);
    at(rank).all = std::make_unique<Team>(Team::all(comm, reserve_tags(comm)));
    if (ranks_per_host > 1) place(rank, ranks_per_host);
    const auto& hosts = at(rank).hosts;
    const Team& team = hosts != nullptr ? hosts->leaders : *at(rank).all;
    if (team.self() >= 0) at(rank).multicast = std::make_unique<Multicast>(team, [] {});
  }
}

void Job::place(int rank, int ranks_per_host) {
  std::vector<int> leaders, inside, host_of;
  for (int each = 0; each < size(); ++each) {
    const int host = each / ranks_per_host;
    host_of.push_back(host);
    if (each % ranks_per_host == 0) leaders.push_back(each);
    if (host == rank / ranks_per_host) inside.push_back(each);
  }
  const Team& all = *at(rank).all;
  at(rank).hosts = std::make_unique<Hosts>(
      Hosts{all.part(std::move(leaders)), all.part(std::move(inside)), std::move(host_of)});
}

void Job::fill(Rank& rank) {
  const std::size_t bytes = rank.memory.size();
  for (std::size_t i = 0; i < bytes; ++i) rank.memory[i] = byte_of(bytes, i);
}

void Job::begin(int rank, int root, std::size_t bytes, bool attended, ompi_datatype_t* type) {
  Rank& self = at(rank);
  self.memory.assign(bytes, std::byte{0xEE});
  if (rank == root) fill(self);
  self.course.reset();
  self.payload = std::make_unique<Payload>(self.memory.data(), bytes, type);
  if (self.hosts != nullptr) {
    self.course = std::make_unique<HostsBroadcast>(*self.hosts, self.multicast.get(), *self.payload,
                                                   root, attended);
  } else {
    using Otherwise = TeamBroadcast::Otherwise;
    self.course = std::make_unique<TeamBroadcast>(
        *self.all, self.multicast.get(), "", *self.payload, root, attended,
        attended ? Otherwise::kSavedModule : Otherwise::kTree);
  }
  self.result = OMPI_ERR_WOULD_BLOCK;
}

void Job::begin_all(int root, std::size_t bytes, bool attended) {
  for (int rank = 0; rank < size(); ++rank) begin(rank, root, bytes, attended);
}

void Job::look(int rank, bool at_nic) {
  Rank& self = at(rank);
  fabric.caller = rank;
  if (at_nic) fabric.progress(rank);
  if (self.result == OMPI_ERR_WOULD_BLOCK) {
    const int rc = self.course->progress();
    end(rank, rc == OMPI_SUCCESS ? self.payload->error() : rc);
  }
  if (self.multicast != nullptr) self.multicast->look_after();
}

void Job::end(int rank, int rc) {
  if (rc == OMPI_ERR_WOULD_BLOCK) return;
  Rank& self = at(rank);
  const bool is_saved = rc == OMPI_ERR_NOT_AVAILABLE;
  self.result = is_saved ? OMPI_SUCCESS : rc;
  if (is_saved) fill(self);
  const std::size_t call = self.calls++;
  // Ranks with different arguments may part.
  if (rc == MPI_ERR_COUNT || rc == MPI_ERR_TRUNCATE || rc == MPI_ERR_ROOT) return;
  EXPECT_EQ(is_saved, is_saved_.emplace(call, is_saved).first->second)
      << "rank " << rank << (is_saved ? " takes" : " does not take")
      << " the saved module for broadcast " << call << ", another rank does the opposite";
}

bool Job::is_over() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.result != OMPI_ERR_WOULD_BLOCK; });
}

void Job::move() {
  const auto next = [this] {
    std::vector<std::size_t> messages = open_mpi.deliverable();
    std::erase_if(messages, [this](std::size_t i) { return open_mpi.receiver(i) == unheard; });
    return messages;
  };
  for (auto messages = next(); !messages.empty(); messages = next())
    open_mpi.deliver(messages.front());
  for (const std::uint32_t end : fabric.registering()) fabric.conclude(end);
  for (auto ends = fabric.deliverable(); !ends.empty(); ends = fabric.deliverable())
    fabric.deliver(ends.front());
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

std::vector<int> Job::results() const {
  std::vector<int> all;
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

void Job::close(int rank) {
  at(rank).course.reset();
  if (at(rank).multicast == nullptr) return;
  at(rank).multicast->destroy_groups();
  at(rank).multicast->detach();
}

}  // namespace cepheus::coll::fake
