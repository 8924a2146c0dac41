// One member process of the end-to-end tests: an application of <mcast/mcast.h> that does what it
// is told, command by command, over a socket (JSON, one datagram each way), and calls
// mcast_progress() in between.
#include <endian.h>
#include <mcast/mcast.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libmcast/e2e/guarded_memory.h"
#include "libmcast/e2e/pattern.h"
#include "libmcast/e2e/region_names.h"

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using cepheus::mcast::e2e::pattern;

json answer(mcast_status_t status) {
  json out = {{"status", status}};
  if (status < 0) out["text"] = mcast_last_error();
  return out;
}

// Over what callbacks write: with "threads" they run on any of them.
std::mutex callback_mutex;

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
  std::map<int, std::unique_ptr<cepheus::mcast::e2e::GuardedMemory>> regions;
};

class Member {
 public:
  ~Member() { stop_threads(); }

  json run(const json& command);
  void progress() {
    if (context_ != nullptr) mcast_progress(context_);
  }

 private:
  // `done` is asked with callbacks held off.
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
  json settle(Group& g);
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
  json release(Group& g);
  json close_while_another_opens(Group& g);
  json fork_and_use();
  json start_threads(const json& c);
  void stop_threads();

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

mcast_status_t Member::on_receive(void* arg, void* data, std::size_t length, std::uint32_t imm) {
  const std::lock_guard lock(callback_mutex);
  Group& g = *static_cast<Group*>(arg);
  auto* bytes = static_cast<std::uint8_t*>(data);
  std::memset(bytes - MCAST_RECV_HEADROOM, 0x5A, MCAST_RECV_HEADROOM);  // it is ours
  g.arrived.push_back({{bytes, bytes + length}, imm});
  if (!g.keep) return MCAST_OK;
  g.kept.push_back(data);
  return MCAST_INPROGRESS;
}

void Member::on_done(mcast_op_t* op, mcast_status_t status, std::size_t length, std::uint32_t imm) {
  const std::lock_guard lock(callback_mutex);
  Bulk& bulk = *static_cast<Bulk*>(op->user);
  if (bulk.status) std::abort();  // exactly once
  bulk.status = status;
  bulk.length = length;
  bulk.imm = imm;
}

json Member::open(const json& c) {
  mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
  params.register_timeout_ms = c.value("timeout_ms", 0u);
  params.max_eager_memory = c.value("max_eager_memory", std::size_t{0});
  params.progress_timeout_ms = c.value("progress_timeout_ms", 0u);
  const mcast_status_t status = mcast_context_create(&params, &context_);
  json out = answer(status);
  if (status == MCAST_OK) {
    mcast_context_attr_t attr;
    mcast_context_query(context_, &attr);
    out["ipv4"] = attr.ipv4;
    out["path_mtu"] = attr.path_mtu;
    out["max_message"] = attr.max_message;
  }
  return out;
}

json Member::create(const json& c) {
  Group& g = groups_[c.at("group")];
  g.is_eager = c.at("lane") == "eager";
  g.keep = c.value("keep", false);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = g.is_eager ? MCAST_LANE_EAGER : MCAST_LANE_BULK;
  params.max_eager = c.value("max_eager", std::size_t{0});
  params.recv_depth = c.value("recv_depth", 0u);
  params.send_depth = c.value("send_depth", 0u);
  params.same_key = c.value("same_key", 0);
  params.per_request = c.value("per_request", 0);
  params.sender_group = c.value("sender_group", 0);
  const mcast_status_t status = mcast_group_create(context_, &params, &g.handle);
  json out = answer(status);
  if (status != MCAST_OK) {
    groups_.erase(c.at("group").get<std::string>());
    return out;
  }
  if (g.is_eager) mcast_group_set_recv(g.handle, on_receive, &g);
  mcast_member_t member;
  mcast_group_member(g.handle, &member);
  out["member"] = {member.ipv4, member.qpn, member.control_port, member.token};
  return out;
}

json Member::lead(Group& g, const json& c) {
  std::vector<mcast_member_t> members;
  for (const json& m : c.at("members")) members.push_back({m.at(0), m.at(1), m.at(2), 0, m.at(3)});
  const auto regions = cepheus::mcast::e2e::regions_of(c.value("regions", json::array()));
  return answer(mcast_group_lead_regions(g.handle, members.data(), members.size(), regions.data(),
                                         regions.size()));
}

json Member::settle(Group& g) {
  wait([&] { return mcast_group_test(g.handle) != MCAST_INPROGRESS; });
  return answer(mcast_group_test(g.handle));
}

json Member::query(Group& g) {
  mcast_group_attr_t attr;
  json out = answer(mcast_group_query(g.handle, &attr));
  out["state"] = attr.state;
  out["group_status"] = attr.status;
  out["cause"] = attr.cause;
  out["reason"] = attr.reason;
  out["mcst_id"] = attr.mcst_id;
  out["epoch"] = attr.epoch;
  out["is_leader"] = attr.is_leader;
  out["members"] = attr.members;
  out["messages_sent"] = attr.messages_sent;
  out["messages_received"] = attr.messages_received;
  out["bytes_received"] = attr.bytes_received;
  out["sends_outstanding"] = attr.sends_outstanding;
  out["recvs_posted"] = attr.recvs_posted;
  out["found_by_id"] = mcast_group_by_id(attr.id) == g.handle;
  return out;
}

// Starts a send; an eager one is copied and done with, a bulk one is awaited with "await_send".
json Member::start_send(Group& g, const json& c) {
  auto data = pattern(c.at("seed"), c.at("size"));
  const std::uint32_t imm = c.value("imm", 0u);
  mcast_status_t status = MCAST_OK;
  if (g.is_eager) {
    const bool once = c.value("once", false);
    wait([&] {
      status = mcast_send_eager(g.handle, data.data(), data.size(), imm);
      return once || status != MCAST_ERR_AGAIN;
    });
    return answer(status);
  }
  auto bulk = std::make_unique<Bulk>();
  bulk->buffer = std::move(data);
  bulk->op = {on_done, bulk.get()};
  if (c.value("register", false) && !bulk->buffer.empty()) {
    mcast_mem_register(context_, bulk->buffer.data(), bulk->buffer.size(), &bulk->memory);
  }
  status =
      mcast_send(g.handle, bulk->buffer.data(), bulk->buffer.size(), bulk->memory, imm, &bulk->op);
  if (status == MCAST_INPROGRESS) g.sends.push_back(std::move(bulk));
  return answer(status);
}

// `size` bytes of the region's memory, `memory` of which there are (or as many).
json Member::publish(Group& g, const json& c) {
  const int number = c.at("region");
  const std::size_t size = c.at("size");
  auto& region = g.regions[number];
  if (!region) {
    region = std::make_unique<cepheus::mcast::e2e::GuardedMemory>(c.value("memory", size));
  }
  return answer(mcast_region_publish(g.handle, static_cast<std::uint16_t>(number),
                                     region->bytes().data(), size));
}

// The same memory under that number, for whoever is told of it: its target is answered.
json Member::open_memory(Group& g, const json& c) {
  auto& region = g.regions[c.at("region").get<int>()];
  region = std::make_unique<cepheus::mcast::e2e::GuardedMemory>(c.at("memory"));
  const auto bytes = region->bytes();
  mcast_mem_h memory = nullptr;
  mcast_target_t t{};
  mcast_status_t status = mcast_mem_register_writable(context_, bytes.data(),
                                                      c.value("registered", bytes.size()), &memory);
  if (status == MCAST_OK) status = mcast_mem_target(memory, bytes.data(), c.at("size"), &t);
  opened_.emplace_back(memory);
  json out = answer(status);
  out["target"] = {t.ipv4, t.rkey, t.address, t.length};
  return out;
}

// What lies `offset` behind the beginning of each target.
std::vector<mcast_target_t> Member::parts_of(const json& targets, std::uint64_t offset) {
  std::vector<mcast_target_t> parts;
  for (const json& t : targets) {
    const mcast_target_t whole{t.at(0), t.at(1), t.at(2), t.at(3)};
    const std::uint64_t length = be64toh(whole.length);
    mcast_target_t part = whole;
    mcast_target_part(&whole, offset, length > offset ? length - offset : 0, &part);
    parts.push_back(part);
  }
  return parts;
}

// What the sender of a sender group is to be told.
json Member::regions(Group& g) {
  std::vector<mcast_region_t> list(40);
  size_t count = list.size();
  json out = answer(mcast_group_regions(g.handle, list.data(), &count));
  list.resize(std::min(count, list.size()));
  out["regions"] = cepheus::mcast::e2e::json_of(list);
  return out;
}

json Member::await_regions(Group& g) {
  wait([&] { return mcast_region_test(g.handle) != MCAST_INPROGRESS; });
  return answer(mcast_region_test(g.handle));
}

// A bulk send into regions; "await_send" ends it.
json Member::start_write(Group& g, const json& c) {
  auto bulk = std::make_unique<Bulk>();
  bulk->buffer = pattern(c.at("seed"), c.at("size"));
  bulk->op = {on_done, bulk.get()};
  const std::uint32_t imm = c.value("imm", 0u);
  const std::uint32_t* const told = c.contains("imm") ? &imm : nullptr;
  mcast_status_t status = MCAST_OK;
  if (c.contains("targets")) {
    const auto targets = parts_of(c.at("targets"), c.at("offset"));
    status = mcast_write_to(g.handle, bulk->buffer.data(), bulk->buffer.size(), nullptr,
                            targets.data(), targets.size(), told, &bulk->op);
  } else {
    status = mcast_write(g.handle, bulk->buffer.data(), bulk->buffer.size(), nullptr,
                         c.at("region"), c.at("offset"), told, &bulk->op);
  }
  if (status == MCAST_INPROGRESS) g.sends.push_back(std::move(bulk));
  return answer(status);
}

// Is the region's memory exactly what these WRITEs make of it, all that it has?
json Member::holds(Group& g, const json& c) {
  const auto memory = g.regions.at(c.at("region"))->bytes();
  std::vector<std::uint8_t> wanted(memory.size(), cepheus::mcast::e2e::GuardedMemory::kUntouched);
  for (const json& w : c.at("writes")) {
    const auto data = pattern(w.at("seed"), w.at("size"));
    std::copy(data.begin(), data.end(), wanted.begin() + w.at("offset").get<std::ptrdiff_t>());
  }
  const auto [there, expected] = std::mismatch(memory.begin(), memory.end(), wanted.begin());
  return {{"match", there == memory.end()}, {"differs_at", there - memory.begin()}};
}

json Member::await_send(Group& g) {
  if (g.is_eager) {
    wait([&] {
      return mcast_group_outstanding(g.handle) == 0 || mcast_group_test(g.handle) != MCAST_OK;
    });
    json out = answer(mcast_group_test(g.handle));
    out["outstanding"] = mcast_group_outstanding(g.handle);
    return out;
  }
  const auto bulk = std::move(g.sends.front());
  g.sends.pop_front();
  wait([&] { return bulk->status.has_value(); });
  if (!bulk->status) std::abort();  // the operation still owns the memory
  return {{"status", *bulk->status}, {"length", bulk->length}};
}

json Member::post(Group& g, const json& c) {
  auto bulk = std::make_unique<Bulk>();
  bulk->buffer.assign(c.at("size"), 0xEE);
  bulk->op = {on_done, bulk.get()};
  const mcast_status_t status =
      mcast_recv(g.handle, bulk->buffer.data(), bulk->buffer.size(), nullptr, &bulk->op);
  if (status == MCAST_INPROGRESS) g.receives.push_back(std::move(bulk));
  return answer(status);
}

// The next message, whole and unaltered: {"match": true}, or what it was instead.
json Member::expect(Group& g, const json& c) {
  const auto wanted = pattern(c.at("seed"), c.at("size"));
  const std::uint32_t imm = c.value("imm", 0u);
  if (g.is_eager) {
    if (!wait([&] { return !g.arrived.empty(); }))
      return {{"match", false}, {"why", "nothing came"}};
    const std::lock_guard lock(callback_mutex);
    const Arrived got = std::move(g.arrived.front());
    g.arrived.pop_front();
    return {{"match", got.data == wanted && got.imm == imm}, {"length", got.data.size()}};
  }
  const auto bulk = std::move(g.receives.front());
  g.receives.pop_front();
  if (!wait([&] { return bulk->status.has_value(); })) std::abort();
  const bool match = bulk->status == MCAST_OK && bulk->length == wanted.size() &&
                     bulk->imm == imm &&
                     std::equal(wanted.begin(), wanted.end(), bulk->buffer.begin());
  return {{"match", match}, {"status", *bulk->status}, {"length", bulk->length}};
}

json Member::await_failure(Group& g) {
  wait([&] { return mcast_group_test(g.handle) < 0; });
  return answer(mcast_group_test(g.handle));
}

// How many messages a failed group keeps, and whether they are those of `seed`, one after the
// other.
json Member::unacknowledged(Group& g, const json& c) {
  const void* data = nullptr;
  std::size_t length = 0;
  std::uint32_t imm = 0;
  unsigned count = 0;
  bool match = true;
  for (; mcast_group_unacknowledged(g.handle, count, &data, &length, &imm) == MCAST_OK; ++count) {
    const auto wanted = pattern(c.at("seed").get<std::uint64_t>() + count, c.at("size"));
    match &= length == wanted.size() && std::memcmp(data, wanted.data(), length) == 0;
  }
  return {{"count", count}, {"match", match}};
}

json Member::release(Group& g) {
  std::deque<void*> kept;
  {
    const std::lock_guard lock(callback_mutex);
    kept.swap(g.kept);
  }
  for (void* data : kept) mcast_recv_release(g.handle, data);
  return {{"released", kept.size()}};
}

// The last user closes the context, and before its groups are gone, in a callback of theirs,
// somebody opens it again and makes a group.
json Member::close_while_another_opens(Group& g) {
  struct Newcomer {
    mcast_op_t op{};
    mcast_context_h context = nullptr;
    std::uint32_t group_id = 0;
    std::array<std::uint8_t, 64> buffer{};
  } newcomer;
  newcomer.op.user = &newcomer;
  newcomer.op.done = [](mcast_op_t* op, mcast_status_t, std::size_t, std::uint32_t) {
    auto& self = *static_cast<Newcomer*>(op->user);
    mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
    params.register_timeout_ms = 20'000;
    if (mcast_context_create(&params, &self.context) != MCAST_OK) return;
    mcast_group_params_t group_params = MCAST_GROUP_PARAMS_INIT;
    group_params.lane = MCAST_LANE_BULK;
    mcast_group_h group = nullptr;
    mcast_group_attr_t attr{};
    if (mcast_group_create(self.context, &group_params, &group) != MCAST_OK) return;
    mcast_group_query(group, &attr);
    self.group_id = attr.id;
  };
  const mcast_status_t posted =
      mcast_recv(g.handle, newcomer.buffer.data(), newcomer.buffer.size(), nullptr, &newcomer.op);
  if (posted != MCAST_INPROGRESS) return answer(posted);
  mcast_context_destroy(context_);
  groups_.clear();
  context_ = newcomer.context;
  return {{"status", MCAST_OK},
          {"opened", newcomer.group_id != 0},
          {"kept", mcast_group_by_id(newcomer.group_id) != nullptr}};
}

// What a program that forks might do by accident: use and destroy the parent's objects in the
// child.
json Member::fork_and_use() {
  const pid_t child = fork();
  if (child == 0) {
    int refused = 0;
    for (auto& [name, g] : groups_) {
      refused += mcast_group_test(g.handle) == MCAST_ERR_INVALID;
      mcast_group_destroy(g.handle);
    }
    refused += mcast_progress(context_) == 0;
    mcast_context_destroy(context_);
    _exit(refused == static_cast<int>(groups_.size()) + 1 ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return {{"child_exit", WIFEXITED(state) ? WEXITSTATUS(state) : -1}};
}

// Threads that do nothing but progress, beside the one that works.
json Member::start_threads(const json& c) {
  for (int i = 0; i < c.at("count").get<int>(); ++i) {
    threads_.emplace_back([this] {
      while (!stop_) {
        mcast_progress(context_);
        std::this_thread::yield();
      }
    });
  }
  return {{"status", MCAST_OK}};
}

void Member::stop_threads() {
  stop_ = true;
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

json Member::run(const json& c) {
  const std::string what = c.at("do");
  if (what == "open") return open(c);
  if (what == "create") return create(c);
  if (what == "fork") return fork_and_use();
  if (what == "threads") return start_threads(c);
  if (what == "close") {
    stop_threads();
    opened_.clear();
    mcast_context_destroy(context_);
    context_ = nullptr;
    groups_.clear();
    return {{"status", MCAST_OK}};
  }
  const std::string name = c.at("group");
  const auto at = groups_.find(name);
  if (at == groups_.end()) return {{"status", MCAST_ERR_INVALID}, {"text", "no group " + name}};
  Group& g = at->second;
  if (what == "lead") return lead(g, c);
  if (what == "settle") return settle(g);
  if (what == "query") return query(g);
  if (what == "start_send") return start_send(g, c);
  if (what == "await_send") return await_send(g);
  if (what == "post") return post(g, c);
  if (what == "publish") return publish(g, c);
  if (what == "open_memory") return open_memory(g, c);
  if (what == "close_memory") {  // what was opened last; its bytes stay
    opened_.pop_back();
    return answer(MCAST_OK);
  }
  if (what == "revoke") return answer(mcast_region_revoke(g.handle, c.at("region")));
  if (what == "regions") return regions(g);
  if (what == "await_regions") return await_regions(g);
  if (what == "start_write") return start_write(g, c);
  if (what == "holds") return holds(g, c);
  if (what == "expect") return expect(g, c);
  if (what == "await_failure") return await_failure(g);
  if (what == "release") return release(g);
  if (what == "close_while_another_opens") return close_while_another_opens(g);
  if (what == "unacknowledged") return unacknowledged(g, c);
  if (what == "stop") return answer(mcast_group_stop(g.handle, "told to"));
  if (what == "await_drained") {
    const bool drained = wait([&] {
      mcast_group_attr_t attr;
      mcast_group_query(g.handle, &attr);
      return attr.recvs_posted == 0 && attr.sends_outstanding == 0;
    });
    return {{"status", drained ? MCAST_OK : MCAST_ERR_TIMED_OUT}};
  }
  if (what == "destroy") {
    mcast_group_destroy(g.handle);
    json out = {{"status", MCAST_OK}, {"canceled", 0}};
    for (const auto* list : {&g.receives, &g.sends}) {
      for (const auto& bulk : *list) {
        if (bulk->status == MCAST_ERR_CANCELED) out["canceled"] = out["canceled"].get<int>() + 1;
      }
    }
    groups_.erase(at);
    return out;
  }
  return {{"status", MCAST_ERR_INVALID}, {"text", "unknown command " + what}};
}

}  // namespace

// The socket is descriptor 3.
int main() {
  constexpr int kSocket = 3;
  constexpr int kIdleMs = 1;  // how long progress may wait for a command
  Member member;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    member.progress();
    pollfd fd{kSocket, POLLIN, 0};
    if (poll(&fd, 1, kIdleMs) <= 0) continue;
    const ssize_t n = recv(kSocket, buffer.data(), buffer.size(), 0);
    if (n <= 0) return 0;  // the test has ended
    json reply;
    try {
      reply = member.run(json::parse(buffer.data(), buffer.data() + n));
    } catch (const json::exception& e) {
      reply = {{"status", MCAST_ERR_INVALID}, {"text", e.what()}};
    }
    const std::string text = reply.dump();
    if (send(kSocket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return 0;
  }
}
