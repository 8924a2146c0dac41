// A group over the fake device, and messages of its leader or its members.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <mcast/mcast.h>
#include <mcast/query.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libmcast/api.h"
#include "libmcast/fake_device.h"

namespace cepheus::mcast {

// A bulk operation, and how it ended.
struct Op : mcast_op_t {
  Op() : mcast_op_t{end, this} {}
  mcast_status_t status = MCAST_INPROGRESS;
  size_t length = 0;
  std::uint32_t imm = 0;
  int calls = 0;
  int place = 0;  // among all operations that have ended

 private:
  static void end(mcast_op_t* op, mcast_status_t how, size_t bytes, std::uint32_t immediate) {
    Op& self = *static_cast<Op*>(op);
    self.status = how;
    self.length = bytes;
    self.imm = immediate;
    ++self.calls;
    self.place = ++ended_;
  }
  static inline int ended_ = 0;
};

class FakeGroup : public testing::Test {
 protected:
  static constexpr unsigned kDepth = 4;
  static constexpr wire::Ipv4 kLeader{10, 0, 0, 2};
  static constexpr wire::McstId kId{198, 18, 3, 4};
  static constexpr std::uint16_t kEpoch = 9;
  static constexpr std::uint32_t kInstance = 77;
  static constexpr const char* kData = "datadata";

  struct Options {
    std::uint32_t time_limit_ms = 0;
    size_t max_eager_memory = 0;
    std::uint32_t path_mtu = 0;
  };

  FakeGroup() { open({}); }
  ~FakeGroup() override {
    drop();
    mcast_context_destroy(context_);
  }

  void open(const Options& options) {
    if (context_ != nullptr) mcast_context_destroy(context_);
    mcast_context_params_t params = MCAST_CONTEXT_PARAMS_INIT;
    params.progress_timeout_ms = options.time_limit_ms;
    params.max_eager_memory = options.max_eager_memory;
    params.path_mtu = options.path_mtu;
    ASSERT_EQ(mcast_context_create(&params, &context_), MCAST_OK) << mcast_last_error();
  }
  void make(mcast_lane_t lane) { make(lane, on_eager); }
  void make(mcast_lane_t lane, mcast_recv_cb_t callback, bool same_key = false,
            bool per_request = false) {
    mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
    params.same_key = same_key;
    params.per_request = per_request;
    params.lane = lane;
    params.max_eager = 64;
    params.recv_cb = callback;
    params.recv_arg = this;
    make(params);
  }
  void make(mcast_group_params_t params) {
    params.recv_depth = params.send_depth = kDepth;
    ASSERT_EQ(mcast_group_create(context_, &params, &group_), MCAST_OK) << mcast_last_error();
    pair_ = device_.pairs.size() - 1;
    mcast_member_t name;
    ASSERT_EQ(mcast_group_member(group_, &name), MCAST_OK);
    own_ = name;
  }
  // A group of this lane, registered by its leader.
  void make_active(mcast_lane_t lane, std::uint32_t window = 0) {
    make(lane);
    become_active(window);
  }
  void drop() {
    if (group_ != nullptr) mcast_group_destroy(group_);
    group_ = nullptr;
  }
  fake::Pair& pair() { return device_.pair(pair_); }
  // Often enough that the control channel is looked at, and timers. Calls of the device that the
  // library makes on a thread of its own have ended then.
  void progress() {
    for (int i = 0; i < 130; ++i) {
      mcast_progress(context_);
      from(context_)->wait_for_calls();
    }
  }
  // The oldest send ends, or a message comes; the library has learned of it.
  void complete_send(ibv_wc_status status = IBV_WC_SUCCESS) {
    device_.complete_send(pair(), status);
    progress();
  }
  void deliver(const std::string& data, std::uint32_t imm) {
    device_.deliver(pair(), data, imm);
    progress();
  }
  mcast_group_attr_t attr() {
    mcast_group_attr_t out = MCAST_GROUP_ATTR_INIT;
    EXPECT_EQ(mcast_group_query(group_, &out), MCAST_OK);
    return out;
  }
  // Messages to the registration port: "confirm activate 10.0.0.1", "register 10.0.0.1 ...". Those
  // of a leader without their repeats, which come by the clock.
  std::vector<std::string> sent() {
    std::vector<std::string> all;
    for (const wire::MrpMessage& m : device_.sent()) {
      std::string text = to_string(m.header.type);
      if (m.header.type == wire::MrpType::kConfirm) {
        text += std::string(" ") + to_string(static_cast<wire::MrpType>(m.header.flags & 0xFF));
      } else if (m.header.type == wire::MrpType::kReject) {
        text += std::string(" ") + to_string(static_cast<wire::MrpReject>(m.header.flags));
      }
      for (const wire::MrpMember& member : m.list()) text += " " + member.host.to_string();
      const bool is_step =
          m.header.type == wire::MrpType::kRegister || m.header.type == wire::MrpType::kConnect ||
          m.header.type == wire::MrpType::kActivate ||
          m.header.type == wire::MrpType::kUnregister || m.header.type == wire::MrpType::kGiveUp;
      if (is_step && !steps_.insert(text).second) continue;
      all.push_back(text);
    }
    return all;
  }

  const mcast_member_t& own() const { return own_; }
  wire::MrpMember own_name() const {
    return {wire::Ipv4(ntohl(own_.ipv4)), wire::Qpn(ntohl(own_.qpn)), 0, ntohs(own_.control_port),
            ntohl(own_.token)};
  }

  // --- As a member of another's group.
  wire::MrpMessage about(wire::MrpType type) {
    wire::MrpMessage m;
    m.header.type = type;
    m.header.epoch = kEpoch;
    m.header.mcst_id = kId;
    m.header.instance = kInstance;
    if (type == wire::MrpType::kRegister) {
      m.add(own_name());
      m.reduction = reduction_;
    }
    if (type == wire::MrpType::kConnect) m.path.emplace();
    return m;
  }
  void inject(wire::MrpType type, std::uint16_t flags = 0) {
    wire::MrpMessage m = about(type);
    m.header.flags = flags;
    device_.inject(kLeader, m);
    progress();
  }
  // The switch confirms the newest publication, at the next progress().
  void confirm_regions() {
    ASSERT_FALSE(device_.published.empty());
    wire::MrpMessage m;
    m.header = device_.published.back().header;
    m.header.type = wire::MrpType::kConfirm;
    m.header.flags = static_cast<std::uint16_t>(wire::MrpType::kPublish);
    device_.inject(wire::Ipv4(10, 255, 0, 1), m);
  }
  // `window`: the number in ACTIVATE, or in a later REFRESH; 0: none.
  void inject_window(wire::MrpType type, std::uint32_t window) {
    wire::MrpMessage m = about(type);
    if (window > 0) m.path = wire::MrpPath{0, window};
    device_.inject(kLeader, m);
    progress();
  }
  // `flags` of REGISTER, `mtu` of CONNECT; 0: no limit is known.
  void join(std::uint16_t flags = 0, std::uint16_t mtu = 0) {
    inject(wire::MrpType::kRegister, flags);
    wire::MrpMessage m = about(wire::MrpType::kConnect);
    m.path->mtu = mtu;
    device_.inject(kLeader, m);
    progress();
  }
  void become_active(std::uint32_t window = 0, std::uint16_t mtu = 0) {
    join(0, mtu);
    inject_window(wire::MrpType::kActivate, window);
    sent();
    ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
  }

  // --- As the leader of 10.0.0.1, .2 and .3.
  void lead() {
    std::vector<mcast_member_t> names{own_, own_, own_};
    for (std::uint32_t i = 1; i < 3; ++i) {
      names[i].ipv4 = htonl(device_.address.value() + i);
      names[i].qpn = htonl(0x500 + i);
    }
    steps_.clear();
    ASSERT_EQ(mcast_group_lead(group_, names.data(), names.size()), MCAST_OK) << mcast_last_error();
    progress();
    const auto registered = device_.sent();
    ASSERT_FALSE(registered.empty());
    registered_ = registered.front();
    for (const auto& m : registered) device_.note(m);
  }
  void confirm(wire::MrpType step, std::optional<wire::MrpPath> path = {}) {
    wire::MrpMessage m;
    m.path = path;
    m.header = registered_.header;
    m.header.type = wire::MrpType::kConfirm;
    m.header.flags = static_cast<std::uint16_t>(step);
    for (const wire::MrpMember& member : registered_.list()) {
      if (member.host != device_.address) m.add({member.host, member.qpn});
    }
    device_.inject(wire::Ipv4(10, 255, 0, 1), m);
    progress();
  }
  const wire::MrpMessage& registered() const { return registered_; }
  void reject(wire::MrpReject why) {
    wire::MrpMessage m;
    m.header = registered_.header;
    m.header.type = wire::MrpType::kReject;
    m.header.flags = static_cast<std::uint16_t>(why);
    device_.inject(wire::Ipv4(10, 255, 0, 1), m);
    progress();
  }
  void become_active_leader() {
    lead();
    for (const auto step :
         {wire::MrpType::kRegister, wire::MrpType::kConnect, wire::MrpType::kActivate}) {
      confirm(step);
    }
    sent();
    ASSERT_EQ(mcast_group_test(group_), MCAST_OK) << attr().reason;
  }

  // The messages of the eager callback, and its answer.
  struct Received {
    std::string data;
    std::uint32_t imm;
    void* at;
  };
  std::vector<Received> received_;
  mcast_status_t answer_ = MCAST_OK;

  std::optional<wire::MrpReduction> reduction_;  // in REGISTER
  fake::Device& device_ = fake::Device::fresh();
  mcast_context_h context_ = nullptr;
  mcast_group_h group_ = nullptr;
  char buffer_[256] = {};

 private:
  static mcast_status_t on_eager(void* arg, void* data, size_t length, std::uint32_t imm) {
    auto& self = *static_cast<FakeGroup*>(arg);
    self.received_.push_back({std::string(static_cast<char*>(data), length), imm, data});
    return self.answer_;
  }
  std::size_t pair_ = 0;
  mcast_member_t own_{};
  wire::MrpMessage registered_;
  std::set<std::string> steps_;  // of the leader so far, as sent() lists them
};

}  // namespace cepheus::mcast
