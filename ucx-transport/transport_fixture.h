// The common part of rc_mcast's tests: a fake libmcast in the test program (transport_fixture.cc;
// the transport finds its calls first), and UCT as UCX loads it.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mcast/mcast.h>
#include <mcast/query.h>
#include <mcast/uct.h>
#include <mcast/write.h>
#include <uct/api/uct.h>
// uct.h first: the next one insists on it.
#include <ucs/async/async_fwd.h>

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace cepheus::uct {

struct Sent {
  std::string data;
  std::uint32_t imm;
};

struct Written {
  std::string data;
  std::uint16_t region;
  std::uint64_t offset;
  bool notifies;  // members have a receive completed
};

struct Context {
  std::string device, key_file;
  mcast_context_params_t params;
};

// One group, and the transport's calls on it.
struct FakeLibrary {
  std::deque<Context> contexts;  // in being
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  bool exists = false;
  mcast_status_t creation = MCAST_OK, opening = MCAST_OK, leading = MCAST_OK;
  std::vector<std::uint32_t> led;  // QPNs
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  mcast_status_t test = MCAST_OK, send = MCAST_OK, recv = MCAST_INPROGRESS;
  unsigned outstanding = 0;
  unsigned progressed = 0;
  mcast_recv_cb_t recv_cb = nullptr;
  void* recv_arg = nullptr;
  std::vector<Sent> sent;
  std::vector<Written> written;
  std::deque<mcast_op_t*> ops;
  std::vector<mcast_mem_h> mems;  // the operations' memory handles
  std::vector<void*> released;
  mcast_status_t registration = MCAST_OK;
  int registered = 0;
};
extern FakeLibrary lib;

// The version of UCX that libucp reports.
extern unsigned ucx_major, ucx_minor;

constexpr mcast_member_t kMember{0x0A000001, 17, 0, 0, 0};
const auto kGroup = reinterpret_cast<mcast_group_h>(&lib.attr);
const auto kMem = reinterpret_cast<mcast_mem_h>(&lib.registered);

using testing::ElementsAre;
using testing::IsEmpty;

// UCX 1.18 wants a variable's name with its prefix, and UCX 1.13 without.
inline ucs_status_t set_variable(void* config, std::string name, const char* prefix,
                                 const char* value) {
  if (UCT_API >= UCT_VERSION(1, 18)) name.insert(0, prefix);
  return uct_config_modify(config, name.c_str(), value);
}

// The transport as UCX has it: component, domain, worker.
class Ucx {
 public:
  static Ucx& instance() {
    static Ucx ucx;
    return ucx;
  }
  rc_mcast_group_t group_of = nullptr;
  rc_mcast_context_t context_of = nullptr;
  uct_component_h component = nullptr;
  ucs_async_context_t* async = nullptr;
  uct_worker_h worker = nullptr;

  uct_md_h open(const char* device) const {
    uct_md_config_t* config = nullptr;
    EXPECT_EQ(uct_md_config_read(component, nullptr, nullptr, &config), UCS_OK);
    EXPECT_EQ(set_variable(config, "DEVICES", "MCAST_", device), UCS_OK);
    uct_md_h md = nullptr;
    EXPECT_EQ(uct_md_open(component, "mcast", config, &md), UCS_OK);
    uct_config_release(config);
    return md;
  }

 private:
  Ucx() {
    void* const module = dlopen(RC_MCAST, RTLD_NOW);
    if (module == nullptr) ADD_FAILURE() << dlerror();
    group_of = reinterpret_cast<rc_mcast_group_t>(dlsym(module, RC_MCAST_GROUP));
    context_of = reinterpret_cast<rc_mcast_context_t>(dlsym(module, RC_MCAST_CONTEXT));
    uct_component_h* components = nullptr;
    unsigned count = 0;
    EXPECT_EQ(uct_query_components(&components, &count), UCS_OK);
    for (unsigned i = 0; i < count; ++i) {
      uct_component_attr_t attr;
      attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
      EXPECT_EQ(uct_component_query(components[i], &attr), UCS_OK);
      if (std::strcmp(attr.name, "mcast") == 0) component = components[i];
    }
    uct_release_component_list(components);
    EXPECT_EQ(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async), UCS_OK);
    EXPECT_EQ(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), UCS_OK);
  }
};

// Calls back with `result`, and counts.
struct Completion : uct_completion_t {
  Completion() : uct_completion_t{} {
    func = [](uct_completion_t* self) { ++static_cast<Completion*>(self)->calls; };
    count = 1;
    status = UCS_OK;
  }
  int calls = 0;
};

struct Receive : uct_tag_context_t {
  Receive() : uct_tag_context_t{} {
    tag_consumed_cb = [](uct_tag_context_t* self) { ++static_cast<Receive*>(self)->consumed; };
    completed_cb = [](uct_tag_context_t* self, uct_tag_t tag, uint64_t, size_t bytes, void*,
                      ucs_status_t status) {
      auto& receive = *static_cast<Receive*>(self);
      receive.sender_tag = tag;
      receive.length = bytes;
      receive.result = status;
    };
  }
  int consumed = 0;
  uct_tag_t sender_tag = 0;
  size_t length = 0;
  ucs_status_t result = UCS_INPROGRESS;
};

class RcMcast : public testing::Test {
 protected:
  RcMcast() {
    lib = {};
    lib.attr.state = MCAST_GROUP_ACTIVE;
    md_ = Ucx::instance().open("fake0");
  }
  ~RcMcast() override {
    close();
    uct_md_close(md_);
  }
  void close() {
    if (ep_ != nullptr) uct_ep_destroy(ep_);
    if (iface_ != nullptr) uct_iface_close(iface_);
    ep_ = nullptr;
    iface_ = nullptr;
  }

  using Variables = std::vector<std::pair<const char*, const char*>>;
  uct_iface_config_t* config(const Variables& variables = {}) const {
    uct_iface_config_t* out = nullptr;
    EXPECT_EQ(uct_md_iface_config_read(md_, "rc_mcast", nullptr, nullptr, &out), UCS_OK);
    for (const auto& [name, value] : variables) {
      EXPECT_EQ(set_variable(out, name, "RC_MCAST_", value), UCS_OK) << name;
    }
    return out;
  }
  ucs_status_t open(const Variables& variables = {}) {
    uct_iface_config_t* const own = config(variables);
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = "rc_mcast";
    params.mode.device.dev_name = "fake0";
    if (rx_headroom_ != 0) params.field_mask |= UCT_IFACE_PARAM_FIELD_RX_HEADROOM;
    params.rx_headroom = rx_headroom_;
    const ucs_status_t status = uct_iface_open(md_, Ucx::instance().worker, &params, own, &iface_);
    uct_config_release(own);
    return status;
  }
  // The address of the group of these members, as a program makes it of theirs.
  static std::string list(const std::vector<std::uint32_t>& qpns) {
    const auto count = static_cast<std::uint32_t>(qpns.size());
    std::string out(reinterpret_cast<const char*>(&count), sizeof count);
    for (const std::uint32_t qpn : qpns) {
      rc_mcast_record_t record{RC_MCAST_RECORD_MAGIC, kMember};
      record.member.qpn = qpn;
      out.append(reinterpret_cast<const char*>(&record), sizeof record);
    }
    return out;
  }
  static const uct_iface_addr_t* as_address(const std::string& bytes) {
    return reinterpret_cast<const uct_iface_addr_t*>(bytes.data());
  }
  ucs_status_t connect(const std::string& list, uct_ep_h* out) const {
    uct_ep_params_t params{};
    params.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = iface_;
    params.iface_addr = as_address(list);
    return uct_ep_create(&params, out);
  }
  void make(const char* lane, size_t max_message) {
    lib.attr.max_message = max_message;
    ASSERT_EQ(open({{"LANE", lane}}), UCS_OK);
    ASSERT_EQ(connect(list({kMember.qpn, 18}), &ep_), UCS_OK);
  }
  uct_iface_attr_t attr() {
    uct_iface_attr_t out;
    EXPECT_EQ(uct_iface_query(iface_, &out), UCS_OK);
    return out;
  }
  // An operation of the bulk lane ends.
  void end(mcast_status_t status, size_t length = 0, std::uint32_t imm = 0) {
    mcast_op_t* op = lib.ops.front();
    lib.ops.pop_front();
    op->done(op, status, length, imm);
  }

  size_t rx_headroom_ = 0;  // of the next interface
  uct_md_h md_ = nullptr;
  uct_iface_h iface_ = nullptr;
  uct_ep_h ep_ = nullptr;
};

}  // namespace cepheus::uct
