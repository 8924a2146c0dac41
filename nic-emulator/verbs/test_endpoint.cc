#include "nic-emulator/verbs/test_endpoint.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace cepheus::verbs {
namespace {

constexpr int kRemoteAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

std::string unique_path(const char* what) {
  static int count = 0;
  return "/tmp/cepheus-" + std::string(what) + "-" + std::to_string(::getpid()) + "-" +
         std::to_string(++count);
}

}  // namespace

SwitchProcess::SwitchProcess(int hosts, const std::string& topology) {
  const std::string socket = unique_path("fabric");
  std::string file;
  if (!topology.empty()) {
    file = unique_path("topology");
    std::ofstream(file) << topology;
  }
  std::array<int, 2> ready{};
  require(::pipe(ready.data()) == 0, "pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(ready[0]);
    ::unsetenv("LD_PRELOAD");
    const std::string fd = std::to_string(ready[1]);
    const std::string count = std::to_string(hosts);
    ::execl(std::getenv("CEPHEUS_SWITCH"), "cepheus-switch",
            file.empty() ? "--hosts" : "--topology", file.empty() ? count.c_str() : file.c_str(),
            "--fabric", socket.c_str(), "--ready-fd", fd.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ready[1]);
  char byte = 0;
  const bool is_ready = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  if (!file.empty()) ::unlink(file.c_str());
  require(is_ready, "cepheus-switch does not start");
  ::setenv("CEPHEUS_FABRIC", socket.c_str(), 1);
  be_host("h0");
}

void SwitchProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  const std::string socket = std::getenv("CEPHEUS_FABRIC");
  for (const char* suffix : {"", ".ctl", ".lock"}) ::unlink((socket + suffix).c_str());
}

void be_host(const std::string& name) { ::setenv("CEPHEUS_HOST", name.c_str(), 1); }

ibv_context* open_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  require(list != nullptr && count > 0, "no device");
  ibv_context* context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  require(context != nullptr, "ibv_open_device");
  return context;
}

Endpoint::Endpoint(const Options& o) : memory(o.buffer), options_(o) {
  context = open_device();
  require((pd = ibv_alloc_pd(context)) != nullptr, "ibv_alloc_pd");
  if (o.with_channel) {
    require((channel = ibv_create_comp_channel(context)) != nullptr, "ibv_create_comp_channel");
  }
  if (o.extended) {
    ibv_cq_init_attr_ex cq_init{};
    cq_init.cqe = static_cast<std::uint32_t>(o.cqe);
    cq_init.channel = channel;
    cq_init.wc_flags = IBV_WC_STANDARD_FLAGS;
    cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &cq_init));
    require(cq != nullptr, "ibv_create_cq_ex");
  } else {
    require((cq = ibv_create_cq(context, o.cqe, this, channel, 0)) != nullptr, "ibv_create_cq");
  }
  if (o.shared_receives) {
    ibv_srq_init_attr init{};
    init.attr = {o.recv_wr, 4, 0};
    require((srq = ibv_create_srq(pd, &init)) != nullptr, "ibv_create_srq");
  }
  mr = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | kRemoteAccess);
  require(mr != nullptr, "ibv_reg_mr");
  require((qp = create_qp()) != nullptr, "ibv_create_qp");
}

ibv_qp* Endpoint::create_qp() {
  const Options& o = options_;
  ibv_qp_init_attr_ex init{};
  init.cap = {o.send_wr, o.recv_wr, 4, 4, o.max_inline};
  init.qp_type = o.type;
  init.send_cq = init.recv_cq = cq;
  init.srq = srq;
  ibv_qp* made = nullptr;
  if (o.extended) {
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd;
    init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (o.type != IBV_QPT_UD) {
      init.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    }
    if (o.type == IBV_QPT_RC) {
      init.send_ops_flags |= IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
                             IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
    made = ibv_create_qp_ex(context, &init);
  } else {
    // The extended structure begins with the plain one.
    made = ibv_create_qp(pd, reinterpret_cast<ibv_qp_init_attr*>(&init));
  }
  if (made == nullptr) return nullptr;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qkey = kQkey;
  attributes.qp_access_flags = kRemoteAccess;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  const int rest = o.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  require(ibv_modify_qp(made, &attributes, mask | rest) == 0, "to init");
  return made;
}

Endpoint::~Endpoint() {
  const auto destroy = [](auto* object, auto&& function) {
    if (object != nullptr) {
      EXPECT_EQ(function(object), 0);
    }
  };
  destroy(qp, ibv_destroy_qp);
  destroy(srq, ibv_destroy_srq);
  destroy(cq, ibv_destroy_cq);
  destroy(channel, ibv_destroy_comp_channel);
  destroy(mr, ibv_dereg_mr);
  destroy(pd, ibv_dealloc_pd);
  destroy(context, ibv_close_device);
}

Endpoint::Name Endpoint::name() const {
  Name name;
  name.qpn = qp->qp_num;
  name.psn = 0xFFFFFE;  // wraps at the third packet
  require(ibv_query_gid(context, 1, 0, &name.gid) == 0, "ibv_query_gid");
  name.address = reinterpret_cast<std::uint64_t>(memory.data());
  name.rkey = mr->rkey;
  return name;
}

void Endpoint::connect(ibv_qp* which, const Name& peer, std::uint8_t retries,
                       std::uint8_t rnr_retries) {
  const bool reliable = options_.type == IBV_QPT_RC;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = peer.qpn;
  a.rq_psn = peer.psn;
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 1;
  a.ah_attr = address_of(peer);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  require(ibv_modify_qp(which, &a, mask) == 0, "to rtr");
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 14;
  a.retry_cnt = retries;
  a.rnr_retry = rnr_retries;
  a.sq_psn = name().psn;
  a.max_rd_atomic = 4;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  require(ibv_modify_qp(which, &a, mask) == 0, "to rts");
}

void Endpoint::start_datagrams() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  require(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0, "to rtr");
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = name().psn;
  require(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "to rts");
}

ibv_ah_attr Endpoint::address_of(const Name& peer) {
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  to.grh.dgid = peer.gid;
  to.grh.hop_limit = 64;
  return to;
}

int Endpoint::modify_to_error() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
}

ibv_sge Endpoint::sge(std::size_t offset, std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(memory.data() + offset),
          static_cast<std::uint32_t>(length), mr->lkey};
}

int Endpoint::post_recv(std::uint64_t id, std::size_t offset, std::size_t length, ibv_qp* to) {
  ibv_sge list = sge(offset, length);
  ibv_recv_wr wr{id, nullptr, &list, 1};
  ibv_recv_wr* bad = nullptr;
  if (srq != nullptr) return ibv_post_srq_recv(srq, &wr, &bad);
  return ibv_post_recv(to != nullptr ? to : qp, &wr, &bad);
}

int Endpoint::post_send(std::uint64_t id, std::size_t offset, std::size_t length,
                        const std::function<void(ibv_send_wr&)>& change, ibv_qp* by) {
  ibv_sge list = sge(offset, length);
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (change) change(wr);
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(by != nullptr ? by : qp, &wr, &bad);
}

std::optional<ibv_wc> Endpoint::wait() {
  const auto until = std::chrono::steady_clock::now() + kTimeLimit;
  ibv_wc wc{};
  do {
    const int polled = ibv_poll_cq(cq, 1, &wc);
    if (polled > 0) return wc;
    if (polled < 0) break;
  } while (std::chrono::steady_clock::now() < until);
  return std::nullopt;
}

std::optional<ibv_event_type> Endpoint::wait_async() {
  pollfd want{context->async_fd, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(kTimeLimit).count();
  if (::poll(&want, 1, static_cast<int>(ms)) != 1) return std::nullopt;
  ibv_async_event event{};
  if (ibv_get_async_event(context, &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event.event_type;
}

Peer::Peer(const std::function<void(Peer&)>& program, const std::string& host) {
  std::array<int, 2> pair{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0, "socketpair");
  child_ = ::fork();
  if (child_ != 0) {
    ::close(pair[1]);
    socket_ = pair[0];
    return;
  }
  ::close(pair[0]);
  socket_ = pair[1];
  be_host(host);
  ::alarm(300);  // ends a child that hangs
  int status = 0;
  try {
    program(*this);
    if (::testing::Test::HasFailure()) status = 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "peer: %s\n", e.what());
    status = 1;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

Peer::~Peer() {
  ::shutdown(socket_, SHUT_WR);  // a child that waits for a failed test waits no more
  if (child_ > 0) join();
  ::close(socket_);
}

void Peer::send_bytes(const void* data, std::size_t size) {
  require(::send(socket_, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "peer is gone");
}

void Peer::receive_bytes(void* data, std::size_t size) {
  require(::recv(socket_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size), "peer is gone");
}

Endpoint::Name Peer::receive_name() {
  Endpoint::Name name;
  receive_bytes(&name, sizeof name);
  return name;
}

void Peer::wait() {
  char byte = 0;
  receive_bytes(&byte, 1);
}

void Peer::join() {
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer failed: " << status;
}

void Peer::kill() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

Endpoint::Name Peer::meet(Endpoint& endpoint, std::uint8_t retries, std::uint8_t rnr_retries) {
  send_name(endpoint.name());
  const Endpoint::Name other = receive_name();
  endpoint.connect(other, retries, rnr_retries);
  signal();
  wait();
  return other;
}

void Peer::meet(Endpoint& endpoint, ibv_qp* qp) {
  Endpoint::Name name = endpoint.name();
  name.qpn = qp->qp_num;
  send_name(name);
  endpoint.connect(qp, receive_name(), 7, 7);
  signal();
  wait();
}

std::uint64_t nic_counter(const std::string& name) {
  using Counters = std::size_t(char*, std::size_t);
  auto* const counters =
      reinterpret_cast<Counters*>(::dlsym(RTLD_DEFAULT, "cepheus_roce_counters"));
  require(counters != nullptr, "the library is not preloaded");
  std::array<char, 8192> text{};
  counters(text.data(), text.size());
  std::istringstream lines(text.data());
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value) {
    if (key == name) return value;
  }
  throw std::runtime_error("no counter " + name);
}

std::string last_error() {
  using LastError = const char*();
  auto* const function =
      reinterpret_cast<LastError*>(::dlsym(RTLD_DEFAULT, "cepheus_roce_last_error"));
  require(function != nullptr, "the library is not preloaded");
  return function();
}

void expect_status(const std::optional<ibv_wc>& wc, ibv_wc_status status) {
  ASSERT_TRUE(wc) << "no completion";
  EXPECT_EQ(wc->status, status) << ibv_wc_status_str(wc->status);
}

void expect_success(const std::optional<ibv_wc>& wc, ibv_wc_opcode opcode) {
  ASSERT_NO_FATAL_FAILURE(expect_status(wc, IBV_WC_SUCCESS));
  EXPECT_EQ(wc->opcode, opcode);
}

bool ended_well(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace cepheus::verbs
