// An application of <mcast/mcast.h> that executes commands, and calls mcast_progress() in between.
// member.cc has the commands for groups and messages, member_writes.cc those for WRITEs,
// member_reductions.cc those for reductions.
#pragma once

#include <mcast/mcast.h>
#include <mcast/write.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libmcast/e2e/guarded_memory.h"

namespace cepheus::mcast::e2e {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// {"status": ...}, and libmcast's own words with an error.
json answer(mcast_status_t status);

// Protects the results of callbacks: with "threads" they run on any thread.
inline std::mutex callback_mutex;

struct Arrived {
  std::vector<std::uint8_t> data;
  std::uint32_t imm;
};

// A bulk operation and its memory.
struct Bulk {
  mcast_op_t op{};
  std::vector<std::uint8_t> buffer;
  mcast_mem_h memory = nullptr;
  std::optional<mcast_status_t> status;
  std::size_t length = 0;
  std::uint32_t imm = 0;

  ~Bulk() { mcast_mem_deregister(memory); }
};

struct Group {
  mcast_group_h handle = nullptr;
  bool is_eager = true;
  bool keep = false;  // the callback keeps its buffers
  std::deque<void*> kept;
  std::deque<Arrived> arrived;                 // eager, not yet expected
  std::deque<std::unique_ptr<Bulk>> receives;  // bulk, in the order posted
  std::deque<std::unique_ptr<Bulk>> sends;     // bulk, started and not yet awaited
  std::map<int, std::unique_ptr<GuardedMemory>> regions;
};

class Member {
 public:
  ~Member() { close(); }

  json run(const json& command);
  void progress() {
    if (context_ != nullptr) mcast_progress(context_);
  }

 private:
  // `done` runs while no callback does.
  template <typename Done>
  bool wait(Done&& done) {
    const auto limit = Clock::now() + std::chrono::seconds(30);
    for (;;) {
      {
        const std::lock_guard lock(callback_mutex);
        if (done()) return true;
      }
      if (Clock::now() > limit) return false;
      progress();
    }
  }

  json open(const json& c);
  json create(const json& c);
  json lead(Group& g, const json& c);
  json await_outcome(Group& g);
  json query(Group& g);
  json start_send(Group& g, const json& c);
  json await_send(Group& g);
  json post(Group& g, const json& c);
  json expect(Group& g, const json& c);
  json await_failure(Group& g);
  json unacknowledged(Group& g, const json& c);
  json publish(Group& g, const json& c);
  json open_memory(Group& g, const json& c);
  static std::vector<mcast_target_t> parts_of(const json& targets, std::uint64_t offset);
  static json regions(Group& g);
  json await_regions(Group& g);
  json start_write(Group& g, const json& c);
  json holds(Group& g, const json& c);
  json gather(Group& g, const json& c);
  json reduce(Group& g, const json& c);
  json release(Group& g);
  json close_while_another_opens(Group& g);
  json fork_and_use();
  json start_threads(const json& c);
  void stop_threads();
  void close();

  static mcast_status_t on_receive(void* arg, void* data, std::size_t length, std::uint32_t imm);
  static void on_done(mcast_op_t* op, mcast_status_t status, std::size_t length, std::uint32_t imm);

  mcast_context_h context_ = nullptr;
  std::map<std::string, Group> groups_;
  struct Deregister {
    void operator()(mcast_mem* memory) const { mcast_mem_deregister(memory); }
  };
  std::vector<std::unique_ptr<mcast_mem, Deregister>> opened_;  // for others to write to
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
};

}  // namespace cepheus::mcast::e2e
