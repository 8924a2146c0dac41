// volume_user: a program that uses a volume and verifies it. It first compares every block with the
// ledger. Then it writes, reads and flushes at random until a file exists, and reads all again. If
// it shall flush once more before that, it waits for another file, and does not flush its own
// writes until then.
//
// It prints a line for each step, {"event": ...}; an error ends it with 1.
#include <cepheus/volume.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "replica/e2e/ledger.h"

namespace {

using Clock = std::chrono::steady_clock;
using cepheus::replica::e2e::Ledger;
using nlohmann::json;

struct Settings {
  std::string volume, replicas, ledger, until, status, flush_when, idle_until, linger_until;
  std::string multicast = "cepheus";
  unsigned depth = 8;
  std::uint64_t seed = 1, copy_rate = 0, most_writes = 0;
  bool verify_only = false;
};

constexpr double kLongGapMs = 20;

// Comparable with Python's time.monotonic().
double seconds_of(Clock::time_point t) {
  return std::chrono::duration<double>(t.time_since_epoch()).count();
}

// The test that starts this program bounds the wait.
template <typename Meanwhile>
void await_file(const std::string& file, Meanwhile meanwhile) {
  while (!std::filesystem::exists(file)) {
    meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

enum class What { kRead, kWrite, kFlush };

struct Task {
  What what = What::kFlush;
  std::uint64_t first = 0, count = 0;
  std::vector<std::uint8_t> buffer;
  class User* user = nullptr;
  int error = 0;
};

class User {
 public:
  User(const Settings& settings, cepheus_volume_h volume)
      : settings_(settings),
        volume_(volume),
        block_(cepheus_volume_block_size(volume)),
        blocks_(cepheus_volume_size(volume) / block_),
        ledger_(settings.ledger, blocks_),
        is_busy_(blocks_),
        may_flush_(settings.flush_when.empty()),
        random_(settings.seed),
        tasks_(settings.depth) {
    for (Task& task : tasks_) {
      task.user = this;
      free_.push_back(&task);
    }
  }

  // 0, or 1 after an error.
  int run() {
    if (const int error = read_all()) return error;
    print({{"event", "verified"}, {"blocks", blocks_}});
    if (settings_.verify_only) return 0;
    if (!may_flush_ && !flush()) return 1;  // other users' writes are on disks
    if (!settings_.idle_until.empty()) {
      print({{"event", "idle"}});
      await_file(settings_.idle_until, [] {});
    }
    last_ack_ = Clock::now();
    while (!is_enough()) {
      Task* task = next_free();
      if (task == nullptr) return 1;
      choose(*task);
      if (!start(*task)) return 1;
    }
    if (!drain()) return 1;
    if (!settings_.flush_when.empty() && !flush_on_file()) return 1;
    print({{"event", "done"}, {"writes", writes_}, {"reads", reads_}, {"longest_gap_ms", gap_ms_}});
    return read_all();
  }

  json status() {
    std::vector<char> text(64 << 10);
    const int n = cepheus_volume_status(volume_, text.data(), text.size());
    return n > 0 ? json::parse(text.data(), nullptr, false) : json();
  }

 private:
  static void print(const json& line) { std::cout << line << std::endl; }

  // The loop and its waits check it. The first check that sees the file sets the flag for all.
  bool is_enough() {
    if (is_enough_) return true;
    if (settings_.most_writes != 0 && writes_ >= settings_.most_writes) return is_enough_ = true;
    const auto now = Clock::now();
    if (now < look_at_) return false;
    look_at_ = now + std::chrono::milliseconds(50);
    print_status(now);
    return is_enough_ = !settings_.until.empty() && std::filesystem::exists(settings_.until);
  }

  void print_status(Clock::time_point now) {
    if (settings_.status.empty() || now < status_at_) return;
    status_at_ = now + std::chrono::milliseconds(200);
    print({{"event", "running"},
           {"writes", writes_},
           {"longest_gap_ms", gap_ms_},
           {"volume", status()}});
  }

  bool flush_on_file() {
    print({{"event", "written"}});
    await_file(settings_.flush_when, [this] { print_status(Clock::now()); });
    return flush();
  }

  // False: this flush failed, or an earlier request.
  bool flush() {
    Task* task = next_free();
    if (task == nullptr) return false;
    task->what = What::kFlush;
    task->count = 0;
    return start(*task) && drain();
  }

  // Checks and frees ended tasks; null: a check failed.
  Task* next_free() {
    for (;;) {
      std::unique_lock lock(mutex_);
      while (ended_.empty() && free_.empty()) {
        // Status lines continue without other events.
        changed_.wait_for(lock, std::chrono::milliseconds(200));
        lock.unlock();
        is_enough();
        lock.lock();
      }
      if (ended_.empty()) {
        Task* task = free_.front();
        free_.pop_front();
        return task;
      }
      Task* task = ended_.front();
      ended_.pop_front();
      lock.unlock();
      if (!finish(*task)) return nullptr;
      lock.lock();
      free_.push_back(task);
    }
  }

  // Waits for all requests in flight.
  bool drain() {
    std::unique_lock lock(mutex_);
    while (free_.size() < tasks_.size()) {
      changed_.wait(lock, [this] { return !ended_.empty(); });
      Task* task = ended_.front();
      ended_.pop_front();
      lock.unlock();
      if (!finish(*task)) return false;
      lock.lock();
      free_.push_back(task);
    }
    return true;
  }

  void choose(Task& task) {
    const auto dice = random_() % 100;
    task.what = dice < 70 ? What::kWrite : dice < 98 ? What::kRead : What::kFlush;
    if (task.what == What::kFlush && !may_flush_) task.what = What::kWrite;
    task.count = 0;
    if (task.what == What::kFlush) return;
    std::uint64_t most = 1 + random_() % (random_() % 8 == 0 ? 64 : 4);
    do {
      task.first = random_() % blocks_;
    } while (is_busy_[task.first]);
    while (task.count < most && task.first + task.count < blocks_ &&
           !is_busy_[task.first + task.count]) {
      ++task.count;
    }
  }

  bool start(Task& task) {
    task.buffer.resize(task.count * block_);
    const std::uint64_t write = task.what == What::kWrite ? ledger_.next_write() : 0;
    for (std::uint64_t b = 0; b < task.count; ++b) {
      is_busy_[task.first + b] = true;
      if (write == 0) continue;
      Ledger::fill(task.first + b, write, std::span(task.buffer).subspan(b * block_, block_));
      ledger_.begin(task.first + b, write);
    }
    const bool is_fua = random_() % 16 == 0 && write != 0 && may_flush_;
    const unsigned flags = is_fua ? CEPHEUS_VOLUME_FUA : 0;
    const std::uint64_t offset = task.first * block_;
    int taken = 0;
    switch (task.what) {
      case What::kRead:
        taken = cepheus_volume_read(volume_, task.buffer.data(), task.buffer.size(), offset, 0,
                                    &on_done, &task);
        break;
      case What::kWrite:
        taken = cepheus_volume_write(volume_, task.buffer.data(), task.buffer.size(), offset, flags,
                                     &on_done, &task);
        break;
      case What::kFlush:
        taken = cepheus_volume_flush(volume_, 0, &on_done, &task);
        break;
    }
    if (taken != 0) print({{"event", "refused"}, {"error", taken}});
    return taken == 0;
  }

  static void on_done(void* arg, int error) {
    Task& task = *static_cast<Task*>(arg);
    User& user = *task.user;
    task.error = error;
    {
      const std::lock_guard lock(user.mutex_);
      user.ended_.push_back(&task);
    }
    user.changed_.notify_one();
  }

  bool finish(Task& task) {
    for (std::uint64_t b = 0; b < task.count; ++b) is_busy_[task.first + b] = false;
    if (task.error != 0) {
      print({{"event", "failed"}, {"error", task.error}});
      return false;
    }
    if (task.what == What::kRead) return look(task);
    if (task.what != What::kWrite) return true;
    for (std::uint64_t b = 0; b < task.count; ++b) ledger_.acknowledge(task.first + b);
    ++writes_;
    const auto now = Clock::now();
    const double gap = std::chrono::duration<double, std::milli>(now - last_ack_).count();
    gap_ms_ = std::max(gap_ms_, gap);
    if (gap > kLongGapMs) print({{"event", "gap"}, {"ms", gap}, {"ended", seconds_of(now)}});
    last_ack_ = now;
    return true;
  }

  bool look(const Task& task) {
    ++reads_;
    for (std::uint64_t b = 0; b < task.count; ++b) {
      const auto wrong = ledger_.see(
          task.first + b, std::span<const std::uint8_t>(task.buffer).subspan(b * block_, block_));
      if (!wrong) continue;
      print({{"event", "wrong"}, {"what", *wrong}});
      return false;
    }
    return true;
  }

  int read_all() {
    constexpr std::uint64_t kAtOnce = 64;
    for (std::uint64_t first = 0; first < blocks_; first += kAtOnce) {
      Task* task = next_free();
      if (task == nullptr) return 1;
      task->what = What::kRead;
      task->first = first;
      task->count = std::min(kAtOnce, blocks_ - first);
      if (!start(*task)) return 1;
    }
    return drain() ? 0 : 1;
  }

  const Settings& settings_;
  cepheus_volume_h volume_;
  const std::uint32_t block_;
  const std::uint64_t blocks_;
  Ledger ledger_;
  std::vector<bool> is_busy_;
  const bool may_flush_;  // any time
  std::mt19937_64 random_;
  std::vector<Task> tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task*> free_, ended_;
  std::uint64_t writes_ = 0, reads_ = 0;
  double gap_ms_ = 0;
  Clock::time_point last_ack_, look_at_{}, status_at_{};
  bool is_enough_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::uint32_t time_limit_ms = 60000;
  CLI::App app{"Uses a volume, and compares its reads with its ledger."};
  app.option_defaults()->take_last();
  app.add_option("--volume", settings.volume)->required();
  app.add_option("--replicas", settings.replicas)->required();
  app.add_option("--ledger", settings.ledger)->required();
  app.add_option("--until", settings.until, "ends when this file exists");
  app.add_option("--writes", settings.most_writes, "ends after this many writes");
  app.add_option("--flush-when", settings.flush_when,
                 "flushes once, after the writes, when this file exists");
  app.add_option("--idle-until", settings.idle_until, "waits first until this file exists");
  app.add_option("--linger-until", settings.linger_until,
                 "waits at the end until this file exists");
  app.add_option("--depth", settings.depth);
  app.add_option("--seed", settings.seed);
  app.add_option("--copy-rate", settings.copy_rate);
  app.add_option("--time-limit-ms", time_limit_ms);
  app.add_option("--multicast", settings.multicast);
  app.add_flag("--verify", settings.verify_only, "reads all and ends");
  app.add_flag_callback(
      "--status", [&] { settings.status = "yes"; }, "prints the volume's status");
  CLI11_PARSE(app, argc, argv);

  cepheus_volume_params_t params = CEPHEUS_VOLUME_PARAMS_INIT;
  params.volume = settings.volume.c_str();
  params.replicas = settings.replicas.c_str();
  params.depth = settings.depth;
  params.copy_rate = settings.copy_rate;
  params.open_timeout_ms = time_limit_ms;
  params.multicast = settings.multicast.c_str();
  cepheus_volume_h volume = nullptr;
  char error[512];
  if (const int failed = cepheus_volume_open(&params, &volume, error, sizeof error)) {
    std::cout << json{{"event", "not opened"}, {"error", failed}, {"text", error}} << std::endl;
    return 3;
  }
  std::cout << json{{"event", "open"}} << std::endl;
  User user(settings, volume);
  const int result = user.run();
  if (result != 0) {
    std::cout << json{{"event", "ended"}, {"volume", user.status()}} << std::endl;
  }
  if (!settings.linger_until.empty()) {
    std::cout << json{{"event", "lingers"}} << std::endl;
    await_file(settings.linger_until, [] {});
  }
  cepheus_volume_close(volume);  // it may call back until here
  return result;
}
