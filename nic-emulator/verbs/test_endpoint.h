// For tests that run as plain verbs programs with the library preloaded: a fabric, this process as
// one of its hosts, a forked process as another.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cepheus::verbs {

inline constexpr std::uint32_t kQkey = 0x11111111;
inline constexpr std::chrono::seconds kTimeLimit{20};  // more than the slowest machine needs

// cepheus-switch with `hosts` hosts in a process of its own, and CEPHEUS_FABRIC pointing at it.
class SwitchProcess {
 public:
  explicit SwitchProcess(int hosts, const std::string& topology = {});
  ~SwitchProcess() { kill(); }
  SwitchProcess(const SwitchProcess&) = delete;
  SwitchProcess& operator=(const SwitchProcess&) = delete;
  void kill();  // without a message to its clients

 private:
  pid_t pid_ = -1;
};

// This process is host h0, a Peer another one.
class TwoHosts : public ::testing::Test {
 protected:
  SwitchProcess fabric_{2};
};

void be_host(const std::string& name);
ibv_context* open_device();

// A queue pair with all it needs. Every failure is a fatal gtest failure, or an exception in the
// peer.
struct Endpoint {
  struct Options {
    int cqe = 64;
    bool with_channel = false;
    std::uint32_t send_wr = 16;
    std::uint32_t recv_wr = 16;
    std::uint32_t max_inline = 64;
    std::size_t buffer = 1 << 20;
    bool extended = false;  // by ibv_create_cq_ex and ibv_create_qp_ex
    ibv_qp_type type = IBV_QPT_RC;
    bool shared_receives = false;
  };
  struct Name {  // for the other side
    std::uint32_t qpn = 0;
    std::uint32_t psn = 0;
    ibv_gid gid{};
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
  };

  Endpoint() : Endpoint(Options{}) {}
  explicit Endpoint(const Options& options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Name name() const;
  void connect(const Name& peer, std::uint8_t retries = 7, std::uint8_t rnr_retries = 7) {
    connect(qp, peer, retries, rnr_retries);
  }
  static ibv_ah_attr address_of(const Name& peer);
  // Makes a datagram QP ready to send.
  void start_datagrams();
  // Another QP like the first, in INIT; the caller destroys it. Null with errno.
  ibv_qp* create_qp();
  void connect(ibv_qp* which, const Name& peer, std::uint8_t retries, std::uint8_t rnr_retries);
  int modify_to_error();

  ibv_sge sge(std::size_t offset, std::size_t length) const;
  int post_recv(std::uint64_t id, std::size_t offset, std::size_t length, ibv_qp* to = nullptr);
  int post_send(std::uint64_t id, std::size_t offset, std::size_t length,
                const std::function<void(ibv_send_wr&)>& change = {}, ibv_qp* by = nullptr);
  // The next completion, or nothing within kTimeLimit.
  std::optional<ibv_wc> wait();
  // The next asynchronous event, acknowledged; nothing within kTimeLimit.
  std::optional<ibv_event_type> wait_async();

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::uint8_t> memory;

 private:
  const Options options_;
};

// A forked process that is another host. Both ends meet by names and signals; receiving blocks.
class Peer {
 public:
  // Runs `program` in the child; its exceptions and gtest failures make join() fail.
  explicit Peer(const std::function<void(Peer&)>& program, const std::string& host = "h1");
  ~Peer();
  void send_name(const Endpoint::Name& name) { send_bytes(&name, sizeof name); }
  Endpoint::Name receive_name();
  void signal() { send_bytes("!", 1); }
  void wait();
  void join();
  void kill();

  // Exchanges names and connects; returns the other's.
  Endpoint::Name meet(Endpoint& endpoint, std::uint8_t retries = 7, std::uint8_t rnr_retries = 7);
  // The same for another queue pair of the endpoint.
  void meet(Endpoint& endpoint, ibv_qp* qp);

 private:
  void send_bytes(const void* data, std::size_t size);
  void receive_bytes(void* data, std::size_t size);
  int socket_ = -1;
  pid_t child_ = -1;
};

// The library's own counter of this process's NIC.
std::uint64_t nic_counter(const std::string& name);
std::string last_error();

// Requests to memory of the other side, for post_send().
inline auto remote(ibv_wr_opcode opcode, const Endpoint::Name& target, std::size_t offset = 0) {
  return [=](ibv_send_wr& wr) {
    wr.opcode = opcode;
    wr.wr.rdma = {target.address + offset, target.rkey};
  };
}
inline auto atomic(ibv_wr_opcode opcode, const Endpoint::Name& target, std::uint64_t compare_add,
                   std::uint64_t swap = 0) {
  return [=](ibv_send_wr& wr) {
    wr.opcode = opcode;
    wr.wr.atomic = {target.address, compare_add, swap, target.rkey};
  };
}

// Expects a completion with that status, or a successful one of that kind.
void expect_status(const std::optional<ibv_wc>& wc, ibv_wc_status status);
void expect_success(const std::optional<ibv_wc>& wc, ibv_wc_opcode opcode);

// Waits for a child. True: it exited with 0.
bool ended_well(pid_t child);

}  // namespace cepheus::verbs
