// Random reductions, barriers and gathers among broadcasts and other collectives, blocking and not,
// checked bit by bit. Plain MPI.
//
//   mpirun ... reductions_check [--count N] [--seed S] [--first I] [--threads T] [--pairwise BYTES]
//                               [--long BYTES] [--comm any|world] [--until FILE] [--show 1]
//
// Case i depends on (seed, i) alone, so `--seed S --first I --count 1` repeats it. A case is up to
// eight calls on one or two communicators. Each rank completes their requests in an order of its own.
// Communicators: the world, duplicates, reversed, halves, without rank 0, of one rank; some are freed
// before their calls have completed. --threads: in every fourth case, T threads (2 to 4) each have a
// case of their own.
// --pairwise: if the blocks of all ranks have up to BYTES together, a reduction must have the bits of
// one that is pairwise by rank, with any operation. Those of MPI's operations on integers, floats and
// doubles are in arithmetic/reference.h, all others are MPI_Reduce_local's. All other reductions, and
// all without it, have operations and values that give one result in any order and with any MPI library.
// --long: in a third of the reductions a rank has up to BYTES.
// --until: continues after N cases until FILE exists. Rank 0 prints "started" after the first case,
// and each rank its process id before it. --show: prints each call on stderr. Exit 0 and a line
// "ok: ..."; else 1, the case and the first wrong byte.
#include <unistd.h>

#include <memory>
#include <thread>

#include "tests/mpi/other_calls.h"
#include "tests/mpi/reduce_call.h"
#include "tests/mpi/variables.h"

namespace {

using namespace reductions;

// A preloaded library leaves non-blocking calls before the first blocking one to MPI. With --pairwise
// each communicator begins by a barrier.
bool begins_by_barrier = false;

constexpr long kMostGathered = 32768;  // bytes of all ranks in an allgather that is not MPI's own
constexpr int kMostCalls = 8, kRenewal = 100, kMostThreads = kMostCounters / kMostCalls;

Place place_of(const char* name, MPI_Comm comm) {
  Place place = {name, comm, MPI_COMM_NULL, 0, 0};
  if (comm == MPI_COMM_NULL) return place;
  if (begins_by_barrier) MPI_Barrier(comm);
  MPI_Comm_dup(comm, &place.talk);
  MPI_Comm_rank(comm, &place.rank);
  MPI_Comm_size(comm, &place.size);
  return place;
}

Place duplicate(const char* name) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return place_of(name, comm);
}

Place part(const char* name, int color, int key) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  return place_of(name, comm);
}

void free_comms(Place& place) {
  const bool is_predefined = place.comm == MPI_COMM_WORLD || place.comm == MPI_COMM_SELF;
  if (place.comm != MPI_COMM_NULL && !is_predefined) MPI_Comm_free(&place.comm);
  if (place.talk != MPI_COMM_NULL) MPI_Comm_free(&place.talk);
}

// The communicators of a thread's cases.
class Places {
 public:
  Places(int rank, bool world_only) : rank_(rank), world_only_(world_only) { make(); }
  ~Places() {
    for (Place& place : all_) free_comms(place);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  void renew() {
    for (Place& place : all_) free_comms(place);
    all_.clear();
    make();
  }
  const Place& draw(Random& random) const {
    return all_[static_cast<std::size_t>(random.below(static_cast<int>(all_.size())))];
  }

 private:
  void make() {
    all_.push_back(place_of("the world", MPI_COMM_WORLD));
    if (world_only_) return;
    all_.push_back(duplicate("a duplicate"));
    all_.push_back(part("the reversed world", 0, -rank_));
    all_.push_back(part("a half", rank_ % 2, rank_));
    all_.push_back(part("all but rank 0", rank_ == 0 ? MPI_UNDEFINED : 0, rank_));
    all_.push_back(place_of("one rank", MPI_COMM_SELF));
  }

  const int rank_;
  const bool world_only_;
  std::vector<Place> all_;
};

struct Started {
  std::unique_ptr<Call> call;
  const char* place;
};

class Case {
 public:
  Case(std::uint64_t key, int rank, const Settings& settings, int thread)
      : random_(key),
        own_(key + 1 + static_cast<std::uint64_t>(rank)),
        settings_(settings),
        rank_(rank),
        thread_(thread) {}

  // On two communicators, which may be one.
  void run(const Place& first, const Place& second) {
    const int calls = random_.between(1, kMostCalls);
    for (int i = 0; i < calls; i++) {
      const bool is_second = random_.one_in(3);
      start_one(is_second ? second : first, is_second ? 0 : most_bytes_);
    }
  }
  // On the first communicator the network serves all calls: they have at most `most_bytes` of all
  // ranks.
  void limit(long most_bytes) { most_bytes_ = most_bytes; }

  // Completes all calls. A reason, if one is wrong.
  std::string finish() {
    complete_all();
    std::string why;
    for (std::size_t i = 0; i < started_.size(); i++) {
      const Started& it = started_[i];
      const std::string wrong = it.call->wrong();
      if (!wrong.empty() && why.empty())
        why =
            "call " + std::to_string(i) + ", " + it.call->text() + " on " + it.place + ": " + wrong;
    }
    return why;
  }

 private:
  std::unique_ptr<Call> make(const Place& place, int kind, bool blocking, std::uint64_t key,
                             long most) const {
    const int counter = thread_ * kMostCalls + static_cast<int>(started_.size());
    if (kind < 3)
      return std::make_unique<ReduceCall>(place, true, key, settings_, blocking, counter);
    if (kind < 5)
      return std::make_unique<ReduceCall>(place, false, key, settings_, blocking, counter);
    if (kind < 7) return std::make_unique<AllgatherCall>(place, key, most);
    if (kind < 9) return std::make_unique<BarrierCall>(place, key);
    if (kind < 10) return std::make_unique<BroadcastCall>(place, key);
    return std::make_unique<AlltoallCall>(place, key);
  }

  void show(const Started& it, bool blocking) const {
    if (settings_.shows)
      fprintf(stderr, "reductions_check: rank %d, thread %d: %s, %sblocking, on %s\n", rank_,
              thread_, it.call->text().c_str(), blocking ? "" : "non-", it.place);
  }

  void start_one(const Place& place, long most_bytes) {
    const int drawn = random_.below(11), kind = most_bytes > 0 ? 5 + drawn % 5 : drawn;
    const bool blocking = random_.one_in(3);
    const std::uint64_t key = random_.next();
    if (place.comm == MPI_COMM_NULL) return;
    started_.push_back({make(place, kind, blocking, key, most_bytes), place.name});
    requests_.push_back(MPI_REQUEST_NULL);
    show(started_.back(), blocking);
    started_.back().call->start(blocking ? nullptr : &requests_.back());
    if (requests_.back() == MPI_REQUEST_NULL) started_.back().call->completed();
    if (own_.one_in(4)) complete_one(false);
  }

  std::vector<std::size_t> under_way() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < requests_.size(); i++)
      if (requests_[i] != MPI_REQUEST_NULL) found.push_back(i);
    return found;
  }

  void complete_one(bool by_tests) {
    const std::vector<std::size_t> left = under_way();
    if (left.empty()) return;
    const std::size_t it =
        left[static_cast<std::size_t>(own_.below(static_cast<int>(left.size())))];
    int is_complete = 0;
    if (!by_tests) MPI_Wait(&requests_[it], MPI_STATUS_IGNORE);
    while (by_tests && !is_complete) {
      MPI_Test(&requests_[it], &is_complete, MPI_STATUS_IGNORE);
      sched_yield();
    }
    started_[it].call->completed();
  }

  void complete_all() {
    const int n = static_cast<int>(requests_.size());
    const int way = own_.below(6);
    int which = 0, found = 0;
    std::vector<int> indices(requests_.size());
    for (std::vector<std::size_t> left; !(left = under_way()).empty();) {
      switch (way) {
        case 0:
          MPI_Waitall(n, requests_.data(), MPI_STATUSES_IGNORE);
          break;
        case 1:
          MPI_Waitany(n, requests_.data(), &which, MPI_STATUS_IGNORE);
          break;
        case 2:
          MPI_Testall(n, requests_.data(), &found, MPI_STATUSES_IGNORE);
          break;
        case 3:
          MPI_Waitsome(n, requests_.data(), &found, indices.data(), MPI_STATUSES_IGNORE);
          break;
        default:
          complete_one(way == 4);
          continue;
      }
      for (const std::size_t it : left)
        if (requests_[it] == MPI_REQUEST_NULL) started_[it].call->completed();
    }
  }

  Random random_, own_;  // alike on all ranks; of this rank
  const Settings& settings_;
  const int rank_, thread_;
  long most_bytes_ = 0;
  std::vector<Started> started_;
  std::vector<MPI_Request> requests_;
};

struct Program {
  int rank = 0, size = 0, threads = 0;
  long count = 0, first = 0;
  std::uint64_t seed = 1;
  const char* until = nullptr;
  Settings settings{};
  double longest = 0;
  bool is_wrong = false;

  std::uint64_t key(long index) const {
    return mix(seed * 1000003u + static_cast<std::uint64_t>(index));
  }

  void report(long index, const std::string& why) {
    if (why.empty()) return;
    fprintf(stderr, "reductions_check: seed %llu, case %ld, rank %d: %s\n",
            static_cast<unsigned long long>(seed), index, rank, why.c_str());
    is_wrong = true;  // continue: others are in the next call already
  }

  void run_one(long index, const Places& places) {
    Random random(key(index));
    Case one(random.next(), rank, settings, 0);
    if (until == nullptr && random.one_in(40)) {
      Place fresh = duplicate("a freed duplicate");
      // Open MPI 4.1 crashes if a communicator is freed while its own non-blocking functions use it.
      const bool is_served = settings.pairwise_bytes > 0;
      if (kOpenMpi && is_served) one.limit(std::min(settings.pairwise_bytes, kMostGathered));
      one.run(fresh, places.draw(random));
      if (!kOpenMpi || is_served) MPI_Comm_free(&fresh.comm);
      report(index, one.finish());
      free_comms(fresh);
      return;
    }
    const Place &a = places.draw(random), &b = places.draw(random);
    one.run(a, b);
    report(index, one.finish());
  }

  void run_threads(long index, std::vector<Place>& own) {
    std::vector<std::string> reasons(own.size());
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < own.size(); i++) {
      running.emplace_back([&, i] {
        Case one(key(index) + i, rank, settings, static_cast<int>(i));
        one.run(own[i], own[i]);
        reasons[i] = one.finish();
      });
    }
    for (std::thread& thread : running) thread.join();
    for (const std::string& why : reasons) report(index, why);
  }

  bool shall_stop(long index) const {
    int stop = index + 1 >= first + count;
    if (until == nullptr) return stop;
    if (index == first && rank == 0) {
      puts("started");
      fflush(stdout);
    }
    stop = stop && access(until, F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return stop;
  }

  long run(bool world_only) {
    Places places(rank, world_only);
    std::vector<Place> of_threads;
    for (int i = 0; i < threads; i++) of_threads.push_back(duplicate("a thread's duplicate"));
    long index = first;
    for (bool stop = count == 0; !stop; index++) {
      const double before = MPI_Wtime();
      if (settings.shows) fprintf(stderr, "reductions_check: rank %d: case %ld\n", rank, index);
      if (threads > 0 && index % 4 == 3) {
        run_threads(index, of_threads);
      } else {
        run_one(index, places);
      }
      longest = std::max(longest, MPI_Wtime() - before);
      if (index % kRenewal == kRenewal - 1) places.renew();
      stop = shall_stop(index);
    }
    for (Place& place : of_threads) free_comms(place);
    return index - first;
  }
};

}  // namespace

int main(int argc, char** argv) {
  Program program;
  int provided = 0;
  program.threads = atoi(option(argc, argv, "--threads", "0"));
  MPI_Init_thread(&argc, &argv, program.threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  if (program.threads > kMostThreads || (program.threads > 0 && provided != MPI_THREAD_MULTIPLE)) {
    fprintf(stderr, "reductions_check: --threads takes up to %d, and MPI_THREAD_MULTIPLE\n",
            kMostThreads);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  watch_variables();
  MPI_Comm_rank(MPI_COMM_WORLD, &program.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &program.size);
  program.count = atol(option(argc, argv, "--count", "100"));
  program.first = atol(option(argc, argv, "--first", "0"));
  program.seed = strtoull(option(argc, argv, "--seed", "1"), nullptr, 0);
  program.until = option(argc, argv, "--until", nullptr);
  program.settings.shows = atoi(option(argc, argv, "--show", "0")) != 0;
  program.settings.pairwise_bytes = atol(option(argc, argv, "--pairwise", "-1"));
  program.settings.long_bytes = atol(option(argc, argv, "--long", "0"));
  begins_by_barrier = program.settings.pairwise_bytes > 0;
  if (program.until != nullptr) {
    printf("pid %d %d\n", program.rank, static_cast<int>(getpid()));
    fflush(stdout);
  }
  for (const Numbers& numbers : all_numbers()) {
    static std::vector<std::unique_ptr<Map>> maps;
    maps.push_back(std::make_unique<Map>(numbers.map()));
    Layouts::add(numbers.type, maps.back().get());
  }
  const long cases = program.run(strcmp(option(argc, argv, "--comm", "any"), "world") == 0);
  double longest = 0;
  MPI_Reduce(&program.longest, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const int code = conclude(program.is_wrong, "cases of random reductions", cases);
  if (program.rank == 0) {
    printf("longest %.3f s\n", longest);
    print_variables();
  }
  MPI_T_finalize();  // first: Open MPI 4.1 crashes the other way round
  MPI_Finalize();
  return code;
}
