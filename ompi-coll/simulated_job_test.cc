// Multicast, Session, TeamLane and TearDown of all ranks of a job over an imitation of Open MPI's
// messages and of a fabric, in random order on virtual time: whatever breaks, is refused or is lost
// whenever, no rank is told success without its bytes, none waits for ever, and all agree on who
// takes the saved module.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <map>
#include <random>

#include "ompi-coll/fake_abort.h"
#include "ompi-coll/fake_clock.h"
#include "ompi-coll/fake_fabric.h"
#include "ompi-coll/fake_job.h"
#include "ompi-coll/fake_open_mpi.h"
#include "ompi-coll/multicast.h"
#include "ompi-coll/parameters.h"
#include "ompi-coll/team_broadcast.h"
#include "ompi-coll/transport.h"

namespace cepheus::coll {
namespace {

using std::chrono::milliseconds;

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

class World {
 public:
  World(unsigned seed, int size, std::size_t steps, Fault fault)
      : random_(seed), attended_(pick(2) == 0), fault_(fault), open_mpi_(size) {
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t bytes = pick(3) == 0 ? 300 + static_cast<std::size_t>(pick(700))
                                             : 1 + static_cast<std::size_t>(pick(256));
      program_.push_back({pick(size), bytes});
    }
    fault_step_ = static_cast<std::size_t>(pick(static_cast<int>(steps)));
    for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<Rank>(r, open_mpi_));
    if (fault == Fault::kTaken) fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_OK};
    if (fault == Fault::kRefused)
      fabric_.outcomes = {MCAST_ERR_ID_IN_USE, MCAST_ERR_TIMED_OUT, MCAST_OK, MCAST_ERR_REJECTED,
                          MCAST_OK};
  }

  // To the end; false if nobody can go on.
  bool run() {
    constexpr std::size_t kMost = 400'000;  // events
    constexpr std::size_t kDying = 1000;  // events until all processes of an aborted job have ended
    std::size_t dying = 0;
    for (std::size_t event = 0; !is_over(); ++event) {
      if (!aborts_.empty() && ++dying > kDying) return true;
      if (event == kMost || testing::Test::HasFailure()) return false;
      fake::now() += milliseconds(1);
      if (struck_at_ == 0 && furthest() >= fault_step_ && strike()) struck_at_ = event + 1;
      if (event == struck_at_ + 4000 && fault_ != Fault::kCutForLong) fabric_.mend();
      idle_ = act() ? 0 : idle_ + 1;
      if (idle_ > 40 * ranks_.size() && aborts_.empty()) bark();
    }
    return true;
  }

  struct Rank {
    Rank(int r, fake::OpenMpi& open_mpi)
        : rank(r),
          team(Team::all(open_mpi.communicator(r), reserve_tags(open_mpi.communicator(r)))),
          multicast(std::make_unique<Multicast>(team, [] {})) {}
    int rank;
    Team team;
    std::unique_ptr<Multicast> multicast;
    std::size_t at = 0;  // step
    std::uint64_t unit = 0;
    bool is_saved = false;  // waits in the saved module
    bool closed = false;
    std::vector<std::byte> memory;
    std::unique_ptr<Payload> payload;
    std::unique_ptr<TeamBroadcast> broadcast;
    std::string how;    // by step: multicast, tree, saved module, error
    std::string saved;  // by step: whether the saved module served it
  };
  const std::vector<std::unique_ptr<Rank>>& ranks() const { return ranks_; }
  const std::vector<fake::Aborted>& aborts() const { return aborts_; }
  // Receives that the component has left on the communicator.
  std::size_t receives() const { return open_mpi_.receives(); }

  // An identifier that is in use is drawn again.
  bool is_healthy() const { return fault_ == Fault::kNone || fault_ == Fault::kTaken; }
  // All agree on the saved module.
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

  // False: there is nothing to break yet.
  bool strike() {
    const std::vector<std::uint32_t> ends = fabric_.ends();
    if (ends.empty() || pick(20) != 0) return false;
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
    fake::now() += milliseconds(500);
    const std::vector<std::uint32_t> stalled = fabric_.stalled();
    if (!stalled.empty() && pick(4) == 0 && !is_healthy())
      fabric_.fail(one_of(stalled), MCAST_CAUSE_WATCHDOG, "nobody answers");
    idle_ = 20 * ranks_.size();
  }

  // True if that changed anything.
  bool act() {
    switch (pick(4)) {
      case 0: {
        const auto messages = open_mpi_.deliverable();
        if (messages.empty()) return false;
        open_mpi_.deliver(one_of(messages));
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
    } catch (const fake::Aborted& abort) {
      aborts_.push_back(abort);
      rank.closed = true;
      return true;
    }
  }
  Rank* one_of_ranks() {
    return ranks_[static_cast<std::size_t>(pick(static_cast<int>(ranks_.size())))].get();
  }

  bool step(Rank& rank) {
    if (rank.closed) return false;
    fabric_.caller = rank.rank;
    if (rank.at == program_.size()) return close(rank);
    if (rank.is_saved) return serve_saved(rank);
    if (rank.broadcast == nullptr) {
      if (pick(3) != 0) return false;  // the program computes
      begin(rank);
    }
    if (pick(2) == 0) fabric_.progress(rank.rank);  // later completions come with the next look
    int rc = rank.broadcast->progress();
    if (rc == OMPI_SUCCESS) rc = rank.payload->error();
    rank.multicast->look_after();
    if (rc == OMPI_ERR_WOULD_BLOCK) return false;
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
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
    rank.payload = std::make_unique<Payload>(rank.memory.data(), now.bytes, &ompi_mpi_byte.dt);
    rank.broadcast = std::make_unique<TeamBroadcast>(
        rank.team, rank.multicast.get(), "", *rank.payload, now.root, attended_,
        attended_ ? TeamBroadcast::Otherwise::kSavedModule : TeamBroadcast::Otherwise::kTree);
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

  void end(Rank& rank, int rc) {
    if (rc == OMPI_SUCCESS) {
      for (std::size_t i = 0; i < rank.memory.size(); ++i) {
        ASSERT_EQ(rank.memory[i], byte_of(rank.at, i))
            << "rank " << rank.rank << " has success without byte " << i << " of step " << rank.at;
      }
      const bool is_tree = rank.broadcast->route() == Route::kTree;
      rank.how += rank.is_saved ? 's' : is_tree ? 't' : 'm';
    } else {
      ASSERT_TRUE(rc == OMPI_ERROR && has_lost_a_unit(rank))
          << "rank " << rank.rank << " step " << rank.at << " ends in " << rc << ": "
          << program_[rank.at].bytes << " bytes from " << program_[rank.at].root
          << (attended_ ? "" : ", unattended");
      rank.how += 'e';
    }
    rank.unit += units_of(program_[rank.at].bytes);
    rank.saved += rank.is_saved ? 's' : '-';
    rank.is_saved = false;
    rank.broadcast.reset();
    rank.payload.reset();
    ++rank.at;
  }

  // Open MPI's own algorithm, in which all ranks meet.
  bool serve_saved(Rank& rank) {
    const bool is_root = program_[rank.at].root == rank.rank;
    if (!is_root && !saved_.contains(rank.at)) {
      rank.multicast->look_after();
      return false;
    }
    saved_.insert(rank.at);
    fill(rank);
    end(rank, OMPI_SUCCESS);
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
  const Fault fault_;
  std::size_t fault_step_, struck_at_ = 0, idle_ = 0;
  fake::OpenMpi open_mpi_;
  fake::Fabric fabric_;
  std::vector<Step> program_;
  std::vector<fake::Aborted> aborts_;
  std::set<std::size_t> saved_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

class SimulatedJob : public testing::Test {
 protected:
  void SetUp() override {
    fake::use_small_sizes();
    if (const char* const first = std::getenv("CEPHEUS_SEED")) {
      const char* const count = std::getenv("CEPHEUS_SEEDS");
      first_ = std::stoul(first);
      last_ = first_ + (count != nullptr ? std::stoul(count) : 1) - 1;
    }
    if (first_ == last_) {
      output_stream() = opal_output_open(nullptr);
      opal_output_set_verbosity(output_stream(), 2);
    }
  }
  unsigned long first_ = 1, last_ = 700;
  std::map<char, int> how_;         // steps of all ranks
  std::map<Fault, int> come_back_;  // jobs
};

// CEPHEUS_SEED=N runs that one, with CEPHEUS_SEEDS=M all from N to N + M - 1.
TEST_F(SimulatedJob, EndsRightWhateverBreaksWhenever) {
  for (unsigned long seed = first_; seed <= last_; ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    const auto fault = static_cast<Fault>(seed % static_cast<unsigned>(Fault::kCount));
    World world(static_cast<unsigned>(seed), 2 + static_cast<int>(seed % 4), 60, fault);
    ASSERT_TRUE(world.run()) << "nobody can go on";
    world.check_paths();
    ASSERT_EQ(world.receives(), 0u);
    ASSERT_FALSE(HasFailure());
    if (world.has_come_back()) ++come_back_[fault];
    for (const auto& rank : world.ranks()) {
      for (const char how : rank->how) ++how_[how];
      if (world.is_healthy()) {
        ASSERT_EQ(rank->how, std::string(60, 'm'));
      }
    }
  }
  if (first_ == last_) return;
  for (const char how : {'m', 't', 's', 'e'}) EXPECT_GT(how_[how], 20) << how;
  for (const Fault fault : {Fault::kCut, Fault::kFailed, Fault::kRefused})
    EXPECT_GT(come_back_[fault], 20) << static_cast<int>(fault);
}

// A job that requires multicast is aborted by one rank, whose message says that the fabric lost
// data. No call returns an error.
TEST_F(SimulatedJob, ThatRequiresMulticastIsAbortedOnceIfAUnitIsLost) {
  parameters().mode = static_cast<int>(Mode::kRequire);
  int aborted = 0;
  for (unsigned long seed = first_; seed <= last_; ++seed) {
    SCOPED_TRACE("CEPHEUS_SEED=" + std::to_string(seed));
    World world(static_cast<unsigned>(seed), 2 + static_cast<int>(seed % 4), 60, Fault::kDeaf);
    ASSERT_TRUE(world.run()) << "nobody can go on";
    ASSERT_LE(world.aborts().size(), 1u);
    for (const fake::Aborted& abort : world.aborts()) {
      ++aborted;
      ASSERT_THAT(abort.reason, testing::HasSubstr("lost"));
    }
    for (const auto& rank : world.ranks())
      ASSERT_EQ(rank->how, std::string(rank->how.size(), 'm')) << "rank " << rank->rank;
  }
  EXPECT_TRUE(first_ == last_ || aborted > 20) << aborted;
}

// A call that broadcasts meanwhile goes on without multicast.
TEST(OpeningAgain, MakesNobodyWait) {
  parameters().carrier = static_cast<int>(Carrier::kDirect);
  Transport& transport = Transport::instance();
  fake::Fabric fabric;
  std::string why;
  fabric.is_port_up = false;
  fabric.on_open = [] { return MCAST_ERR_TIMED_OUT; };
  while (transport.open(why, true) == MCAST_ERR_AGAIN) {
  }
  ASSERT_EQ(transport.open(why, false), MCAST_ERR_TIMED_OUT);

  std::promise<mcast_status_t> answer;
  fabric.is_port_up = true;
  fabric.on_open = [outcome = answer.get_future().share()] { return outcome.get(); };
  EXPECT_EQ(transport.open(why, true), MCAST_ERR_AGAIN);
  EXPECT_EQ(transport.open(why, false), MCAST_ERR_AGAIN);
  EXPECT_THAT(why, testing::HasSubstr("has not answered yet"));
  EXPECT_EQ(transport.host_address(), 0u);
  answer.set_value(MCAST_OK);
  mcast_status_t status = MCAST_ERR_AGAIN;
  while (status == MCAST_ERR_AGAIN) status = transport.open(why, false);
  EXPECT_EQ(status, MCAST_OK);
  transport.close();
}

// A job that can go on by other means gives a silent fabric up soon, and waits for a busy one as long
// as a job that can't.
TEST(Opening, LimitsTheFabricsSilenceOnlyIfThereIsAnotherWay) {
  fake::use_small_sizes();
  fake::Fabric fabric;
  fabric.is_port_up = false;  // it is opened anew each time
  const auto limits = [&fabric] {
    std::string why;
    while (Transport::instance().open(why, true) != MCAST_OK) {
    }
    const mcast_context_params_t& params = fabric.context_params;
    return std::pair(params.register_timeout_ms, params.register_silence_ms);
  };
  EXPECT_EQ(limits(), std::pair(20'000u, 1000u));
  parameters().mode = static_cast<int>(Mode::kRequire);
  EXPECT_EQ(limits(), std::pair(20'000u, 0u));
  parameters().register_timeout_ms = 3000;
  EXPECT_EQ(limits(), std::pair(3000u, 0u));
  parameters().mode = static_cast<int>(Mode::kTry);
  EXPECT_EQ(limits(), std::pair(3000u, 0u));
}

TEST(Messages, AreSentThoughTheirSenderIsGone) {
  fake::OpenMpi open_mpi(2);
  const Team sender = Team::all(open_mpi.communicator(0), -10);
  const Team receiver = Team::all(open_mpi.communicator(1), -10);
  std::uint64_t value = 42, heard = 0;
  {
    Messages messages;
    ASSERT_EQ(messages.send(&value, sizeof value, 1, Tag::kReady, sender), OMPI_SUCCESS);
  }
  value = 7;
  Messages messages;
  ASSERT_EQ(messages.receive(&heard, sizeof heard, 0, Tag::kReady, receiver), OMPI_SUCCESS);
  open_mpi.deliver(open_mpi.deliverable().at(0));
  int error = MPI_SUCCESS;
  EXPECT_TRUE(messages.test(error));
  EXPECT_EQ(error, MPI_SUCCESS);
  EXPECT_EQ(heard, 42u);
}

}  // namespace
}  // namespace cepheus::coll
