#include "libmcast/e2e/member.h"

#include <mcast/query.h>
#include <mcast/recovery.h>
#include <mcast/senders.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "libmcast/e2e/pattern.h"
#include "libmcast/e2e/region_names.h"

namespace cepheus::mcast::e2e {

json answer(mcast_status_t status) {
  json out = {{"status", status}};
  if (status < 0) out["text"] = mcast_last_error();
  return out;
}

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
    mcast_context_attr_t attr = MCAST_CONTEXT_ATTR_INIT;
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
  const bool reduces = c.at("lane") == "reduction";
  g.keep = c.value("keep", false);
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = g.is_eager ? MCAST_LANE_EAGER : reduces ? MCAST_LANE_REDUCTION : MCAST_LANE_BULK;
  params.reduction_window = c.value("reduction_window", 0u);
  params.floating_sums = c.value("floating_sums", 0);
  params.max_eager = c.value("max_eager", std::size_t{0});
  params.recv_depth = c.value("recv_depth", 0u);
  params.send_depth = c.value("send_depth", 0u);
  params.same_key = c.value("same_key", 0);
  params.per_request = c.value("per_request", 0);
  params.sender_group = c.value("sender_group", 0);
  params.virtual_qpn = c.value("virtual_qpn", 0u);
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
  const auto regions = regions_of(c.value("regions", json::array()));
  return answer(mcast_group_lead_regions(g.handle, members.data(), members.size(), regions.data(),
                                         regions.size()));
}

json Member::await_outcome(Group& g) {
  wait([&] { return mcast_group_test(g.handle) != MCAST_INPROGRESS; });
  return answer(mcast_group_test(g.handle));
}

json Member::query(Group& g) {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  json out = answer(mcast_group_query(g.handle, &attr));
  out["state"] = attr.state;
  out["group_status"] = attr.status;
  out["cause"] = attr.cause;
  out["reason"] = attr.reason;
  out["mcst_id"] = attr.mcst_id;
  out["epoch"] = attr.epoch;
  out["is_leader"] = attr.is_leader;
  out["is_flat"] = attr.is_flat != 0;
  out["is_ascending"] = attr.is_ascending != 0;
  out["members"] = attr.members;
  out["messages_sent"] = attr.messages_sent;
  out["messages_received"] = attr.messages_received;
  out["bytes_received"] = attr.bytes_received;
  out["sends_outstanding"] = attr.sends_outstanding;
  out["recvs_posted"] = attr.recvs_posted;
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

// The next message: {"match": true} if it is whole and unaltered, else its content.
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

// The number of messages that a failed group keeps. True if they are those of `seed`, in their
// order.
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

// The last user closes the context. Before its groups are gone, a callback opens it again and makes
// a group.
json Member::close_while_another_opens(Group& g) {
  struct Newcomer {
    mcast_op_t op{};
    mcast_context_h context = nullptr;
    mcast_group_h group = nullptr;
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
    mcast_group_create(self.context, &group_params, &self.group);
  };
  const mcast_status_t posted =
      mcast_recv(g.handle, newcomer.buffer.data(), newcomer.buffer.size(), nullptr, &newcomer.op);
  if (posted != MCAST_INPROGRESS) return answer(posted);
  mcast_context_destroy(context_);
  groups_.clear();
  context_ = newcomer.context;
  return {{"status", MCAST_OK},
          {"opened", newcomer.group != nullptr},
          {"kept", mcast_group_test(newcomer.group) == MCAST_INPROGRESS}};
}

// A mistake of programs that fork: the child uses and destroys the parent's objects.
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

// Threads that only progress, beside the working one.
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

void Member::close() {
  stop_threads();
  opened_.clear();
  mcast_context_destroy(context_);
  context_ = nullptr;
  groups_.clear();
}

json Member::run(const json& c) {
  const std::string what = c.at("do");
  if (what == "open") return open(c);
  if (what == "create") return create(c);
  if (what == "fork") return fork_and_use();
  if (what == "threads") return start_threads(c);
  if (what == "close") {
    close();
    return {{"status", MCAST_OK}};
  }
  const std::string name = c.at("group");
  const auto at = groups_.find(name);
  if (at == groups_.end()) return {{"status", MCAST_ERR_INVALID}, {"text", "no group " + name}};
  Group& g = at->second;
  if (what == "lead") return lead(g, c);
  if (what == "await_outcome") return await_outcome(g);
  if (what == "query") return query(g);
  if (what == "start_send") return start_send(g, c);
  if (what == "await_send") return await_send(g);
  if (what == "post") return post(g, c);
  if (what == "publish") return publish(g, c);
  if (what == "open_memory") return open_memory(g, c);
  if (what == "close_memory") {  // the last opened one; its bytes stay
    opened_.pop_back();
    return answer(MCAST_OK);
  }
  if (what == "revoke") return answer(mcast_region_revoke(g.handle, c.at("region")));
  if (what == "regions") return regions(g);
  if (what == "await_regions") return await_regions(g);
  if (what == "start_write") return start_write(g, c);
  if (what == "holds") return holds(g, c);
  if (what == "gather") return gather(g, c);
  if (what == "reduce") return reduce(g, c);
  if (what == "expect") return expect(g, c);
  if (what == "await_failure") return await_failure(g);
  if (what == "release") return release(g);
  if (what == "close_while_another_opens") return close_while_another_opens(g);
  if (what == "unacknowledged") return unacknowledged(g, c);
  if (what == "stop") return answer(mcast_group_stop(g.handle, "told to"));
  if (what == "await_drained") {
    const bool drained = wait([&] {
      mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
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

}  // namespace cepheus::mcast::e2e
