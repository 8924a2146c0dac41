// Writes to a replicated volume through the library that programs use (<cepheus/volume.h>).
//
//   volume_bench --volume NAME --replicas HOST:PORT,... [--pid PID]... [--seconds S] SIZE:DEPTH ...
//
// Rounds and what is printed of them are as storage_bench's; the CPU time is this process's and that of the processes
// named. Places are random within kSpan, which is written whole before: a chunk's first write waits for its mark, and that
// comes once in a while, not with each write. What was written last is read back.
#include <cepheus/volume.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>

#include "bench/storage/measurement.h"

namespace {

using namespace cepheus::bench;

constexpr std::size_t kSpan = 4 << 20;  // one request of the largest size
constexpr unsigned kMostDepth = 64;

struct Options {
  std::string volume, replicas;
  std::vector<pid_t> processes;
  double seconds = 0.3;
  std::vector<std::string> cases;
};

// Keeps `depth` writes under way: each callback starts the next write.
class Load {
 public:
  Load(cepheus_volume_h volume, const Case& of)
      : volume_(volume), of_(of), data_(of.size), places_(kSpan / of.size), random_(of.depth) {}

  void fill(std::uint64_t seed) {
    for (std::size_t at = 0; at < of_.size; at += 8) {
      const std::uint64_t word = (seed + at) * 0x9E3779B97F4A7C15u;
      std::memcpy(data_.data() + at, &word, 8);
    }
  }
  // By the largest number, for all measurements.
  void write_all_once() {
    next_in_order_ = 0;
    run(kMostDepth, [&] { return next_in_order_ < places_; });
    next_in_order_ = kRandomly;
  }
  // Of WRITEs that ended within `seconds`: the latencies in microseconds.
  std::vector<double> write_for(double seconds) {
    latencies_.clear();
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
    run(of_.depth, [&] { return Clock::now() < end || latencies_.size() < 5; });
    return latencies_;
  }
  void verify() {
    std::vector<std::uint8_t> found(kSpan);
    std::unique_lock lock(mutex_);
    under_way_ = 1;
    const auto done = [](void* arg, int error) { static_cast<Load*>(arg)->was_read(error); };
    require(cepheus_volume_read(volume_, found.data(), places_ * of_.size, 0, 0, done, this) == 0,
            "a read was refused");
    idle_.wait(lock, [&] { return under_way_ == 0; });
    require(error_ == 0, std::string("a read failed: ") + std::strerror(-error_));
    for (std::size_t place = 0; place < places_; ++place) {
      require(std::memcmp(found.data() + place * of_.size, data_.data(), of_.size) == 0,
              "the volume has other data than was written to it");
    }
  }

 private:
  static constexpr std::size_t kRandomly = ~std::size_t{0};
  struct Slot {
    Load* load = nullptr;
    Clock::time_point start;
  };

  // Until `goes_on` returns false and no write is under way.
  void run(unsigned depth, const std::function<bool()>& goes_on) {
    std::unique_lock lock(mutex_);
    goes_on_ = goes_on;
    for (unsigned i = 0; i < depth && goes_on_(); ++i) {
      slots_[i].load = this;
      start(slots_[i]);
    }
    idle_.wait(lock, [&] { return under_way_ == 0; });
    require(error_ == 0, std::string("a write failed: ") + std::strerror(-error_));
  }
  void start(Slot& slot) {
    const std::size_t place = next_in_order_ == kRandomly ? random_() % places_ : next_in_order_++;
    slot.start = Clock::now();
    ++under_way_;
    const auto done = [](void* arg, int error) {
      Slot& slot_of = *static_cast<Slot*>(arg);
      slot_of.load->written(slot_of, error);
    };
    error_ =
        cepheus_volume_write(volume_, data_.data(), of_.size, place * of_.size, 0, done, &slot);
    if (error_ != 0) --under_way_;
  }
  void written(Slot& slot, int error) {
    const std::lock_guard lock(mutex_);
    latencies_.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - slot.start).count());
    if (error != 0) error_ = error;
    --under_way_;
    if (error_ == 0 && goes_on_()) start(slot);
    if (under_way_ == 0) idle_.notify_one();
  }
  void was_read(int error) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    under_way_ = 0;
    idle_.notify_one();
  }

  const cepheus_volume_h volume_;
  const Case of_;
  std::vector<std::uint8_t> data_;
  const std::size_t places_;
  std::minstd_rand random_;
  std::mutex mutex_;  // the library's thread, and the one that waits
  std::condition_variable idle_;
  std::function<bool()> goes_on_;
  Slot slots_[kMostDepth];
  unsigned under_way_ = 0;
  int error_ = 0;
  std::size_t next_in_order_ = kRandomly;
  std::vector<double> latencies_;
};

void run(Options& options) {
  cepheus_volume_params_t params = CEPHEUS_VOLUME_PARAMS_INIT;
  params.volume = options.volume.c_str();
  params.replicas = options.replicas.c_str();
  params.depth = kMostDepth;
  cepheus_volume_h volume = nullptr;
  char error[512];
  require(cepheus_volume_open(&params, &volume, error, sizeof error) == 0, error);
  require(cepheus_volume_size(volume) >= kSpan, "the volume is smaller than what is written to");
  options.processes.push_back(getpid());
  std::uint64_t seed = 0;
  run_rounds([&](unsigned) {
    for (const std::string& one : options.cases) {
      const Case of = Case::parse(one, kMostDepth, kSpan);
      Load load(volume, of);
      load.fill(++seed);
      load.write_all_once();
      const CpuTime before = CpuTime::now(options.processes);
      const auto begin = Clock::now();
      auto latencies = load.write_for(options.seconds);
      const std::chrono::duration<double> time = Clock::now() - begin;
      const CpuTime cpu = CpuTime::now(options.processes).of_each(before, latencies.size());
      load.verify();
      print_row("volume", of, std::move(latencies), time.count(), cpu);
    }
  });
  cepheus_volume_close(volume);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Writes to a replicated volume through its library (./run bench storage)"};
  app.add_option("--volume", options.volume)->required();
  app.add_option("--replicas", options.replicas, "host:port,host:port,...")->required();
  app.add_option("--pid", options.processes, "whose CPU time counts as well");
  app.add_option("--seconds", options.seconds, "for each case and round");
  app.add_option("cases", options.cases, "SIZE:DEPTH");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "volume_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
