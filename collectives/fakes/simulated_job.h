// Multicast, Session, TeamLane and TearDown of all ranks of a job over an imitation of MPI's messages
// and of a fabric, in random order on virtual time. It fails the test if a rank is told success
// without its bytes, or an error that nothing explains.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collectives/core/parameters.h"
#include "collectives/fakes/fake_clock.h"
#include "collectives/fakes/fake_fabric.h"
#include "collectives/fakes/fake_mpi.h"
#include "collectives/multicast.h"
#include "collectives/team_broadcast.h"

namespace cepheus::coll::fake {

struct Step {
  int root;
  std::size_t bytes;
};

enum class Fault : std::uint8_t {
  kNone,
  kCut,
  kCutForLong,
  kFailed,
  kDeaf,
  kRefused,
  kTaken,
  kCount
};

// What befalls a job.
struct Plan {
  Fault fault;
  // The event behind which the fabric breaks; else at a random step.
  std::optional<std::size_t> event = {};
  int again = 0;             // so many times more, perhaps while the last breach is not over
  bool is_one_slow = false;  // a rank that looks at its broadcast and its NIC rarely
};

class SimulatedJob {
 public:
  SimulatedJob(unsigned seed, int size, std::size_t steps, const Plan& plan)
      : random_(seed), attended_(pick(2) == 0), fault_(plan.fault), plan_(plan), mpi_(size) {
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t bytes = pick(3) == 0 ? 300 + static_cast<std::size_t>(pick(700))
                                             : 1 + static_cast<std::size_t>(pick(256));
      program_.push_back({pick(size), bytes});
    }
    fault_step_ = static_cast<std::size_t>(pick(static_cast<int>(steps)));
    slow_rank_ = plan.is_one_slow ? pick(size) : -1;
    for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<Rank>(r, mpi_));
    if (fault_ == Fault::kTaken) fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_OK};
    if (fault_ == Fault::kRefused)
      fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_ERR_TIMED_OUT, MCAST_OK, MCAST_ERR_REJECTED,
                          MCAST_OK};
  }

  // To the end; false if that takes more than kMost events, because nobody can go on or because too
  // much has piled up.
  bool run() {
    constexpr std::size_t kMost = 400'000;  // events
    constexpr std::size_t kDying = 1000;  // events until all processes of an aborted job have ended
    std::size_t dying = 0;
    for (std::size_t event = 0; !is_over(); ++event) {
      if (!aborts_.empty() && ++dying > kDying) return true;
      if (event == kMost || testing::Test::HasFailure()) return false;
      now() += std::chrono::milliseconds(1);
      if (struck_at_ == 0 && is_due(event) && strike()) struck_at_ = event + 1;
      if (event == struck_at_ + 4000 && fault_ != Fault::kCutForLong) fabric_.mend();
      if (struck_at_ != 0 && plan_.again > 0 && pick(2000) == 0) strike_again();
      idle_ = act() ? 0 : idle_ + 1;
      if (idle_ > 40 * ranks_.size() && aborts_.empty()) bark();
    }
    return true;
  }

  struct Rank {
    Rank(int r, Mpi& mpi)
        : rank(r),
          team(Team::all(mpi.communicator(r), reserve_tags(mpi.communicator(r)))),
          multicast(std::make_unique<Multicast>(team, [] {})),
          broadcast(team) {}
    int rank;
    Team team;
    std::unique_ptr<Multicast> multicast;
    std::size_t at = 0;  // step
    std::uint64_t unit = 0;
    bool is_saved = false;  // waits in the saved function
    bool closed = false;
    std::vector<std::byte> memory;
    std::optional<Payload> payload;  // of the broadcast that has begun
    TeamBroadcast broadcast;
    std::string how;    // by step: multicast, tree, saved function, error
    std::string saved;  // by step: whether the saved function served it
  };
  const std::vector<std::unique_ptr<Rank>>& ranks() const { return ranks_; }
  const std::vector<Aborted>& aborts() const { return aborts_; }
  // Receives that the component has left on the communicator.
  std::size_t receives() const { return mpi_.receives(); }

  // An identifier that is in use is drawn again.
  bool is_healthy() const { return fault_ == Fault::kNone || fault_ == Fault::kTaken; }
  // All agree on the saved function.
  void check_paths() const {
    for (const auto& rank : ranks_) ASSERT_EQ(rank->saved, ranks_.front()->saved);
  }
  // Multicast served a broadcast behind one that it did not; of small ones or of large ones.
  bool has_come_back() const { return has_come_back(true) || has_come_back(false); }
  bool has_come_back(bool small) const {
    std::string how;
    for (std::size_t step = 0; step < program_.size(); ++step) {
      if (Multicast::is_small(program_[step].bytes) == small) how += ranks_.front()->how[step];
    }
    return how.find('m', how.find_first_of("st")) != std::string::npos;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
  }
  static std::byte byte_of(std::size_t step, std::size_t at) {
    return static_cast<std::byte>(step * 131 + at * 7 + 1);
  }
  bool is_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r->closed; });
  }

  std::size_t furthest() const {
    std::size_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->at);
    return most;
  }

  bool is_due(std::size_t event) {
    if (plan_.event) return event >= *plan_.event;
    return furthest() >= fault_step_ && pick(20) == 0;
  }

  void strike_again() {
    constexpr Fault kFaults[] = {Fault::kCut, Fault::kFailed, Fault::kDeaf};
    --plan_.again;
    fabric_.mend();
    fault_ = kFaults[pick(3)];
    plan_.event = 0;  // as soon as there is something to break
    struck_at_ = 0;
  }

  // False: there is nothing to break yet.
  bool strike() {
    const std::vector<std::uint32_t> ends = fabric_.ends();
    if (ends.empty()) return false;
    const std::uint32_t end = one_of(ends);
    switch (fault_) {
      case Fault::kCut:
      case Fault::kCutForLong:
        fabric_.cut_off(fabric_.rank_of(end));
        break;
      case Fault::kFailed:
        fabric_.fail(end, MCAST_CAUSE_DEVICE, "the port is gone");
        break;
      case Fault::kDeaf:
        fabric_.deafen(end);
        break;
      default:
        break;
    }
    return true;
  }

  // Nothing moves: time goes by, and watchdogs see to the sends that wait.
  void bark() {
    now() += std::chrono::milliseconds(500);
    const std::vector<std::uint32_t> stalled = fabric_.stalled();
    if (!stalled.empty() && pick(4) == 0 && !is_healthy())
      fabric_.fail(one_of(stalled), MCAST_CAUSE_WATCHDOG, "nobody answers");
    idle_ = 20 * ranks_.size();
  }

  // True if that changed anything.
  bool act() {
    switch (pick(4)) {
      case 0: {
        const auto messages = mpi_.deliverable();
        if (messages.empty()) return false;
        mpi_.deliver(one_of(messages));
        return true;
      }
      case 1: {
        const auto ends = fabric_.deliverable();
        if (ends.empty()) return false;
        fabric_.deliver(one_of(ends));
        return true;
      }
      case 2: {
        const auto leaders = fabric_.registering();
        if (leaders.empty()) return false;
        fabric_.conclude(one_of(leaders));
        return true;
      }
      default:
        return step_or_abort(*one_of_ranks());
    }
  }
  bool step_or_abort(Rank& rank) {
    try {
      return step(rank);
    } catch (const Aborted& abort) {
      aborts_.push_back(abort);
      rank.closed = true;
      return true;
    }
  }
  Rank* one_of_ranks() {
    return ranks_[static_cast<std::size_t>(pick(static_cast<int>(ranks_.size())))].get();
  }

  bool step(Rank& rank) {
    if (rank.closed || (rank.rank == slow_rank_ && pick(30) != 0)) return false;
    fabric_.caller = rank.rank;
    if (rank.at == program_.size()) return close(rank);
    if (rank.is_saved) return serve_saved(rank);
    if (!rank.payload) {
      if (pick(3) != 0) return false;  // the program computes
      begin(rank);
    }
    if (pick(2) == 0) fabric_.progress(rank.rank);  // later completions come with the next look
    Code rc = rank.broadcast.progress();
    if (rc == Code::kDone) rc = rank.payload->error();
    rank.multicast->look_after();
    if (rc == Code::kPending) return false;
    if (rc == Code::kNotServed) {
      rank.is_saved = true;
      return true;
    }
    end(rank, rc);
    return true;
  }

  void begin(Rank& rank) {
    const Step& now = program_[rank.at];
    rank.memory.assign(now.bytes, std::byte{0xEE});
    if (now.root == rank.rank) fill(rank);
    rank.payload.emplace(rank.memory.data(), now.bytes);
    rank.broadcast.begin(
        {rank.multicast.get(), "", *rank.payload, now.root, attended_,
         attended_ ? TeamBroadcast::Otherwise::kSavedFunction : TeamBroadcast::Otherwise::kTree});
  }
  void fill(Rank& rank) {
    for (std::size_t i = 0; i < rank.memory.size(); ++i) rank.memory[i] = byte_of(rank.at, i);
  }

  std::uint64_t units_of(std::size_t bytes) const {
    const std::size_t unit = Multicast::unit_bytes(Multicast::is_small(bytes));
    return (bytes + unit - 1) / unit;
  }

  // The fabric has lost one that every other rank's NIC has acknowledged, so that its root may have
  // returned from it.
  bool has_lost_a_unit(const Rank& rank) const {
    const std::size_t bytes = program_[rank.at].bytes;
    const bool small = Multicast::is_small(bytes);
    const std::size_t unit = Multicast::unit_bytes(small);
    const std::size_t piece = small ? unit : parameters().bulk_piece;
    for (std::uint64_t i = 0; i < units_of(bytes); ++i) {
      const std::size_t length = std::min(unit, bytes - i * unit);
      const std::size_t pieces = (length + piece - 1) / piece;
      if (fabric_.lost().contains({rank.rank, rank.unit + i}) &&
          fabric_.acknowledged(rank.unit + i) == pieces)
        return true;
    }
    return false;
  }

  void end(Rank& rank, Code rc) {
    if (rc == Code::kDone) {
      for (std::size_t i = 0; i < rank.memory.size(); ++i) {
        ASSERT_EQ(rank.memory[i], byte_of(rank.at, i))
            << "rank " << rank.rank << " has success without byte " << i << " of step " << rank.at;
      }
      const bool is_tree = rank.broadcast.route() == Route::kTree;
      rank.how += rank.is_saved ? 's' : is_tree ? 't' : 'm';
    } else {
      ASSERT_TRUE(rc == Code::kFailed && has_lost_a_unit(rank))
          << "rank " << rank.rank << " step " << rank.at << " ends in " << static_cast<int>(rc)
          << ": " << program_[rank.at].bytes << " bytes from " << program_[rank.at].root
          << (attended_ ? "" : ", unattended");
      rank.how += 'e';
    }
    rank.unit += units_of(program_[rank.at].bytes);
    rank.saved += rank.is_saved ? 's' : '-';
    rank.is_saved = false;
    rank.payload.reset();
    ++rank.at;
  }

  // The host's own algorithm, in which all ranks meet.
  bool serve_saved(Rank& rank) {
    const bool is_root = program_[rank.at].root == rank.rank;
    if (!is_root && !saved_.contains(rank.at)) {
      rank.multicast->look_after();
      return false;
    }
    saved_.insert(rank.at);
    fill(rank);
    end(rank, Code::kDone);
    return true;
  }

  bool close(Rank& rank) {
    fabric_.progress(rank.rank);
    if (rank.multicast->has_groups() && !rank.multicast->tear_down()) return false;
    rank.multicast->destroy_groups();
    rank.multicast->detach();
    return rank.closed = true;
  }

  std::mt19937 random_;
  const bool attended_;
  Fault fault_;
  Plan plan_;
  std::size_t fault_step_, struck_at_ = 0, idle_ = 0;
  int slow_rank_;
  Mpi mpi_;
  Fabric fabric_;
  std::vector<Step> program_;
  std::vector<Aborted> aborts_;
  std::set<std::size_t> saved_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace cepheus::coll::fake
