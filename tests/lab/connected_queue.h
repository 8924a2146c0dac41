// A queue pair of a device that is connected to the other process's, by plain verbs. Both processes
// meet over TCP. Every error ends the process's turn by an exception.
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cepheus::lab {

using Clock = std::chrono::steady_clock;

inline constexpr std::size_t kBuffer = 1 << 20;
inline constexpr std::uint32_t kQkey = 0x11111111;
inline constexpr std::size_t kGrh = 40;
inline constexpr auto kTimeLimit = std::chrono::seconds(60);

inline void require(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

// The two processes in step: fixed-size messages over TCP.
class Line {
 public:
  Line(bool server, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (server) {
      require(bind(fd_, at, sizeof address) == 0 && listen(fd_, 1) == 0, "can't listen");
      std::puts("listening");
      std::fflush(stdout);
      fd_ = accept(fd_, nullptr, nullptr);
      require(fd_ >= 0, "no client connected");
    } else {
      require(connect(fd_, at, sizeof address) == 0, "the server is not there");
    }
    const timeval limit{120, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  template <typename T>
  T exchange(const T& mine) {
    send_value(mine);
    return receive_value<T>();
  }
  void meet() { exchange(char{1}); }
  template <typename T>
  void send_value(const T& value) {
    require(send(fd_, &value, sizeof value, MSG_NOSIGNAL) == sizeof value, "the peer went away");
  }
  template <typename T>
  T receive_value() {
    T value{};
    require(recv(fd_, &value, sizeof value, MSG_WAITALL) == sizeof value, "the peer went away");
    return value;
  }

 private:
  int fd_ = -1;
};

struct Name {
  std::uint32_t qpn, psn, rkey;
  std::uint64_t address;
  ibv_gid gid;
};

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* mr = nullptr;
  int gid_index = -1;
  ibv_gid gid{};
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint8_t traffic_class = 0;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kBuffer);

  explicit Device(const std::string& name) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context == nullptr; ++i) {
      if (ibv_get_device_name(list[i]) == name) context = ibv_open_device(list[i]);
    }
    require(context != nullptr, "no device " + name);
    ibv_port_attr port{};
    require(ibv_query_port(context, 1, &port) == 0, "no port");
    mtu = port.active_mtu;
    for (int i = 0; i < port.gid_tbl_len && gid_index < 0; ++i) {
      ibv_gid_entry entry{};
      if (ibv_query_gid_ex(context, 1, static_cast<std::uint32_t>(i), &entry, 0) != 0) continue;
      const bool ipv4 = entry.gid.raw[10] == 0xFF && entry.gid.raw[11] == 0xFF;
      if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || !ipv4) continue;
      gid_index = i;
      gid = entry.gid;
    }
    require(gid_index >= 0, "no RoCE v2 address over IPv4");
    pd = ibv_alloc_pd(context);
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC;
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), all);
    require(mr != nullptr, "no memory region");
  }
};

inline std::uint8_t pattern(std::size_t i, std::size_t seed) {
  return static_cast<std::uint8_t>(i * 131 + i / 251 + seed * 17 + 1);
}

// One queue pair on a device, connected to the peer's.
class Queue {
 public:
  Queue(Device& device, Line& line, ibv_qp_type type, std::uint32_t psn) : device_(device) {
    std::memset(device.memory.data(), 0, kBuffer);
    cq_ = ibv_create_cq(device.context, 256, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = cq_;
    init.cap = {64, 64, 1, 1, 0};
    qp_ = cq_ != nullptr ? ibv_create_qp(device.pd, &init) : nullptr;
    require(qp_ != nullptr, "no queue pair");
    peer = line.exchange(Name{qp_->qp_num, psn, device.mr->rkey, address_of(0), device.gid});
    type == IBV_QPT_RC ? connect_rc(psn) : connect_ud(psn);
    line.meet();
  }
  ~Queue() {
    if (handle_ != nullptr) ibv_destroy_ah(handle_);
    ibv_destroy_qp(qp_);
    ibv_destroy_cq(cq_);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::uint8_t* at(std::size_t offset) { return device_.memory.data() + offset; }
  std::uint64_t address_of(std::size_t offset) {
    return reinterpret_cast<std::uint64_t>(at(offset));
  }
  void fill(std::size_t offset, std::size_t length, std::size_t seed) {
    for (std::size_t i = 0; i < length; ++i) at(offset)[i] = pattern(i, seed);
  }
  void expect(std::size_t offset, std::size_t length, std::size_t seed) {
    for (std::size_t i = 0; i < length; ++i) {
      require(at(offset)[i] == pattern(i, seed),
              "byte " + std::to_string(i) + " of " + std::to_string(length) + " is wrong");
    }
  }
  void post_receive(std::size_t offset, std::size_t length) {
    ibv_sge sge{address_of(offset), static_cast<std::uint32_t>(length), device_.mr->lkey};
    ibv_recv_wr wr{1, nullptr, &sge, 1}, *bad = nullptr;
    require(ibv_post_recv(qp_, &wr, &bad) == 0, "a receive was refused");
  }
  void post(ibv_wr_opcode opcode, std::size_t offset, std::size_t length,
            const std::function<void(ibv_send_wr&)>& more = {}) {
    ibv_sge sge{address_of(offset), static_cast<std::uint32_t>(length), device_.mr->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = 2;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = peer.address + offset;
    wr.wr.rdma.rkey = peer.rkey;
    if (handle_ != nullptr) wr.wr.ud = {handle_, peer.qpn, kQkey};
    if (more) more(wr);
    require(ibv_post_send(qp_, &wr, &bad) == 0, "a send was refused");
  }
  bool poll_for(std::chrono::milliseconds time_limit, ibv_wc& wc) {
    const auto limit = Clock::now() + time_limit;
    do {
      if (ibv_poll_cq(cq_, 1, &wc) == 1) return true;
    } while (Clock::now() < limit);
    return false;
  }
  ibv_wc complete() {
    ibv_wc wc{};
    require(poll_for(kTimeLimit, wc), "nothing completed");
    require(wc.status == IBV_WC_SUCCESS,
            std::string("completed with ") + ibv_wc_status_str(wc.status));
    return wc;
  }

  Name peer{};

 private:
  void modify(ibv_qp_attr& attributes, int mask, const char* state) {
    require(ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | mask) == 0,
            std::string("can't go to ") + state);
  }
  ibv_ah_attr path() const {
    ibv_ah_attr ah{};
    ah.is_global = 1;
    ah.port_num = 1;
    ah.grh.dgid = peer.gid;
    ah.grh.sgid_index = static_cast<std::uint8_t>(device_.gid_index);
    ah.grh.hop_limit = 64;
    ah.grh.traffic_class = device_.traffic_class;
    return ah;
  }
  void connect_rc(std::uint32_t psn) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    modify(a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = device_.mtu;
    a.dest_qp_num = peer.qpn;
    a.rq_psn = peer.psn;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    a.ah_attr = path();
    modify(a,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "RTR");
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = psn;
    a.timeout = 17;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 4;
    modify(a,
           IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
  }
  void connect_ud(std::uint32_t psn) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQkey;
    modify(a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, "INIT");
    a = {};
    a.qp_state = IBV_QPS_RTR;
    modify(a, 0, "RTR");
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = psn;
    modify(a, IBV_QP_SQ_PSN, "RTS");
    ibv_ah_attr ah = path();
    handle_ = ibv_create_ah(device_.pd, &ah);
    require(handle_ != nullptr, "no address handle");
  }

  Device& device_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_ah* handle_ = nullptr;
};

}  // namespace cepheus::lab
