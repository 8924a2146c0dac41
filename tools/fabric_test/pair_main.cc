// One queue pair towards a group, for `cepheus fabric-test`: plain verbs, as any program uses them.
//
// Takes a command a line on standard input, and answers each with a line: "ok ..." or "failed ...".
//
//   open DEVICE              a queue pair in INIT; answers ADDRESS GID_INDEX MTU QPN DEVICE
//   connect GROUP PSN MTU TIMEOUT RNR_TIMER TOS    to RTR and RTS towards QPN 1 of that address; codes of IBTA
//   receive BYTES COUNT      posts receives
//   send BYTES COUNT         sends messages, one after the other; answers microseconds
//   wait COUNT SECONDS       until so many messages have come; answers wrong bytes, microseconds
//   psns                     answers the PSNs of the send and the receive queue
//   reset                    to RESET and INIT
//   counters                 answers NAME VALUE ... of an emulated NIC
//
// For the emulated NIC, which has no kernel interface (emulated_nic.h):
//
//   socket TOS               answers NUMBER PORT of a new UDP socket
//   put NUMBER ADDRESS PORT HEX    sends a UDP datagram
//   take MILLISECONDS        answers NUMBER ADDRESS PORT HEX of the next one, or nothing
//   datagram ADDRESS TOS HEX sends an unreliable datagram of RoCE
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/fabric_test/emulated_nic.h"

namespace {

using cepheus::fabric_test::EmulatedNic;
using cepheus::fabric_test::from_hex;
using cepheus::fabric_test::Payload;

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBuffer = 8 << 20;
constexpr int kDepth = 256;
constexpr std::uint32_t kVirtualQpn = 1;
constexpr std::uint32_t kQkey = 0x80010000;
constexpr auto kSendLimit = std::chrono::seconds(60);

void answer(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::putchar('\n');
  std::fflush(stdout);
}

// Whether the call succeeded, by its errno. Answers if it failed.
bool is_done(int error, const char* call) {
  if (error != 0) answer("failed %s: %s", call, std::strerror(error));
  return error == 0;
}

long microseconds(Clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - since).count();
}

// A message's byte: of its place, so that a packet at another place is noticed.
std::uint8_t pattern(std::size_t at) { return static_cast<std::uint8_t>(at ^ at >> 8 ^ at >> 16); }

class Pair {
 public:
  void open(const char* wanted) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context_ == nullptr; ++i) {
      const bool is_it =
          std::strcmp(wanted, "-") == 0 || std::strcmp(ibv_get_device_name(list[i]), wanted) == 0;
      if (is_it) context_ = ibv_open_device(list[i]);
    }
    if (context_ == nullptr) return answer("failed no device %s", wanted);
    if (ibv_query_port(context_, 1, &port_) != 0 || port_.state != IBV_PORT_ACTIVE) {
      return answer("failed the port is not active");
    }
    if (!find_gid()) return answer("failed no RoCE v2 GID over IPv4");
    domain_ = ibv_alloc_pd(context_);
    memory_.resize(kBuffer);
    if (domain_ != nullptr) {
      region_ = ibv_reg_mr(domain_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
    }
    queue_ = ibv_create_cq(context_, 2 * kDepth, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = queue_;
    init.cap = {kDepth, kDepth, 1, 1, 0};
    if (region_ != nullptr && queue_ != nullptr) pair_ = ibv_create_qp(domain_, &init);
    if (pair_ == nullptr) return answer("failed no queue pair or memory: %s", std::strerror(errno));
    if (!is_done(initialise(), "INIT")) return;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, gid_.raw + 12, text, sizeof text);
    answer("ok %s %d %d %u %s", text, gid_index_, 128 << port_.active_mtu, pair_->qp_num,
           ibv_get_device_name(context_->device));
  }

  void connect(const char* group, unsigned psn, unsigned mtu, int timeout, int rnr_timer,
               unsigned tos) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = static_cast<ibv_mtu>(std::countr_zero(mtu) - 7);  // 256 is 1
    a.dest_qp_num = kVirtualQpn;
    a.rq_psn = psn;
    a.min_rnr_timer = static_cast<std::uint8_t>(rnr_timer);
    a.ah_attr = way_to(group, tos);
    constexpr int kToReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (!is_done(ibv_modify_qp(pair_, &a, kToReceive), "RTR")) return;
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = psn;
    a.timeout = static_cast<std::uint8_t>(timeout);
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    constexpr int kToSend = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    if (!is_done(ibv_modify_qp(pair_, &a, kToSend), "RTS")) return;
    answer("ok");
  }

  void receive(std::size_t bytes, int count) {
    for (int i = 0; i < count; ++i) {
      ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data()),
                    static_cast<std::uint32_t>(bytes), region_->lkey};
      ibv_recv_wr wr{};
      wr.sg_list = &piece;
      wr.num_sge = 1;
      ibv_recv_wr* bad = nullptr;
      if (ibv_post_recv(pair_, &wr, &bad) != 0) return answer("failed post_recv");
    }
    std::memset(memory_.data(), 0, bytes);
    answer("ok");
  }

  void send(std::size_t bytes, int count) {
    for (std::size_t at = 0; at < bytes; ++at) memory_[at] = pattern(at);
    const auto began = Clock::now();
    for (int i = 0; i < count; ++i) {
      ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data()),
                    static_cast<std::uint32_t>(bytes), region_->lkey};
      ibv_send_wr wr{};
      wr.sg_list = &piece;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(pair_, &wr, &bad) != 0) return answer("failed post_send");
      ibv_wc done{};
      if (!poll(done, kSendLimit)) return answer("failed no completion within 60 s");
      if (done.status != IBV_WC_SUCCESS) {
        return answer("failed %s after %ld us", ibv_wc_status_str(done.status),
                      microseconds(began));
      }
    }
    answer("ok %ld", microseconds(began));
  }

  void wait(int count, int seconds) {
    const auto began = Clock::now();
    std::size_t wrong = 0;
    for (int i = 0; i < count; ++i) {
      ibv_wc done{};
      if (!poll(done, std::chrono::seconds(seconds))) return answer("failed nothing came");
      if (done.status != IBV_WC_SUCCESS) {
        return answer("failed %s", ibv_wc_status_str(done.status));
      }
      for (std::size_t at = 0; at < done.byte_len; ++at) wrong += memory_[at] != pattern(at);
    }
    answer("ok %zu %ld", wrong, microseconds(began));
  }

  void psns() {
    ibv_qp_attr now{};
    ibv_qp_init_attr unused{};
    if (ibv_query_qp(pair_, &now, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &unused) != 0) {
      return answer("failed query_qp: %s", std::strerror(errno));
    }
    answer("ok %u %u", now.sq_psn, now.rq_psn);
  }

  void reset() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    if (!is_done(ibv_modify_qp(pair_, &a, IBV_QP_STATE), "RESET")) return;
    if (!is_done(initialise(), "INIT")) return;
    answer("ok");
  }

  void counters() { answer("ok %s", nic_.counters().c_str()); }

  void open_socket(unsigned tos) {
    if (!is_done(nic_.open_socket(context_, static_cast<std::uint8_t>(tos)), "socket")) return;
    answer("ok %zu %u", nic_.newest(), nic_.port_of_newest());
  }

  void put(std::size_t number, const char* to, unsigned port, const Payload& payload) {
    in_addr address{};
    inet_pton(AF_INET, to, &address);
    const int error = nic_.send(number, address, static_cast<std::uint16_t>(port), payload);
    if (is_done(error, "put")) answer("ok");
  }

  void take(int milliseconds) {
    const auto found = nic_.receive(std::chrono::milliseconds(milliseconds));
    if (!found) return answer("ok");
    char from[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &found->from, from, sizeof from);
    answer("ok %zu %s %u %s", found->socket, from, found->port, found->hex.c_str());
  }

  // As PROBE does it: from any queue pair of the service, to QPN 1.
  void send_datagram(const char* to, unsigned tos, const Payload& payload) {
    if (datagrams_ == nullptr && !make_datagram_pair()) {
      return answer("failed UD: %s", std::strerror(errno));
    }
    ibv_ah_attr way = way_to(to, tos);
    ibv_ah* const handle = ibv_create_ah(domain_, &way);
    if (handle == nullptr) return answer("failed address handle: %s", std::strerror(errno));
    std::memcpy(memory_.data(), payload.data(), std::min(payload.size(), memory_.size()));
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data()),
                  static_cast<std::uint32_t>(payload.size()), region_->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {handle, kVirtualQpn, kQkey};
    ibv_send_wr* bad = nullptr;
    ibv_wc done{};
    const bool is_sent = ibv_post_send(datagrams_, &wr, &bad) == 0 && poll(done, kSendLimit) &&
                         done.status == IBV_WC_SUCCESS;
    ibv_destroy_ah(handle);
    answer(is_sent ? "ok" : "failed the datagram is not sent");
  }

  bool is_open() const { return pair_ != nullptr; }

 private:
  bool find_gid() {
    for (int i = 0; i < port_.gid_tbl_len; ++i) {
      ibv_gid_entry entry{};
      if (ibv_query_gid_ex(context_, 1, static_cast<std::uint32_t>(i), &entry, 0) != 0) continue;
      constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
      if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || std::memcmp(entry.gid.raw, kMapped, 12) != 0) {
        continue;
      }
      gid_index_ = i;
      gid_ = entry.gid;
      return true;
    }
    return false;
  }

  ibv_ah_attr way_to(const char* to, unsigned tos) const {
    ibv_ah_attr way{};
    way.is_global = 1;
    way.port_num = 1;
    way.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    way.grh.hop_limit = 64;
    way.grh.traffic_class = static_cast<std::uint8_t>(tos);
    way.grh.dgid.raw[10] = way.grh.dgid.raw[11] = 0xFF;
    inet_pton(AF_INET, to, way.grh.dgid.raw + 12);
    return way;
  }

  bool make_datagram_pair() {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_UD;
    init.send_cq = init.recv_cq = queue_;
    init.cap = {1, 1, 1, 1, 0};
    datagrams_ = ibv_create_qp(domain_, &init);
    if (datagrams_ == nullptr) return false;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQkey;
    constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    errno = ibv_modify_qp(datagrams_, &a, kToInit);
    a.qp_state = IBV_QPS_RTR;
    if (errno == 0) errno = ibv_modify_qp(datagrams_, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    if (errno == 0) errno = ibv_modify_qp(datagrams_, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return errno == 0;
  }

  int initialise() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
    return ibv_modify_qp(pair_, &a,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }

  bool poll(ibv_wc& done, Clock::duration limit) {
    const auto give_up = Clock::now() + limit;
    while (ibv_poll_cq(queue_, 1, &done) == 0) {
      if (Clock::now() > give_up) return false;
    }
    return true;
  }

  ibv_context* context_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid gid_{};
  int gid_index_ = 0;
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
  ibv_qp* datagrams_ = nullptr;  // UD, once it is needed
  EmulatedNic nic_;
  std::vector<std::uint8_t> memory_;
};

using Words = std::vector<std::string>;

// The words behind the command's name.
using Act = void (*)(Pair&, const Words&);
struct Command {
  const char* name;
  std::size_t words;
  Act act;
};

std::size_t bytes_of(const std::string& word) {
  const std::size_t bytes = std::stoul(word);
  if (bytes > kBuffer) throw std::out_of_range("a message has at most 8388608 bytes");
  return bytes;
}
unsigned number(const std::string& word) { return static_cast<unsigned>(std::stoul(word)); }
int integer(const std::string& word) { return std::stoi(word); }

constexpr Command kCommands[] = {
    {"connect", 6,
     [](Pair& p, const Words& w) {
       p.connect(w[0].c_str(), number(w[1]), number(w[2]), integer(w[3]), integer(w[4]),
                 number(w[5]));
     }},
    {"receive", 2, [](Pair& p, const Words& w) { p.receive(bytes_of(w[0]), integer(w[1])); }},
    {"send", 2, [](Pair& p, const Words& w) { p.send(bytes_of(w[0]), integer(w[1])); }},
    {"wait", 2, [](Pair& p, const Words& w) { p.wait(integer(w[0]), integer(w[1])); }},
    {"psns", 0, [](Pair& p, const Words&) { p.psns(); }},
    {"reset", 0, [](Pair& p, const Words&) { p.reset(); }},
    {"counters", 0, [](Pair& p, const Words&) { p.counters(); }},
    {"socket", 1, [](Pair& p, const Words& w) { p.open_socket(number(w[0])); }},
    {"take", 1, [](Pair& p, const Words& w) { p.take(integer(w[0])); }},
    {"put", 4,
     [](Pair& p, const Words& w) {
       p.put(std::stoul(w[0]), w[1].c_str(), number(w[2]), from_hex(w[3]));
     }},
    {"datagram", 3,
     [](Pair& p, const Words& w) { p.send_datagram(w[0].c_str(), number(w[1]), from_hex(w[2])); }},
};

void obey(Pair& pair, const std::string& line) {
  std::istringstream stream(line);
  std::string name;
  stream >> name;
  const Words words{std::istream_iterator<std::string>(stream), {}};
  if (name == "open" && words.size() == 1 && !pair.is_open()) return pair.open(words[0].c_str());
  if (!pair.is_open()) return answer("failed nothing is open");
  for (const Command& command : kCommands) {
    if (name == command.name && words.size() == command.words) return command.act(pair, words);
  }
  answer("failed unknown command");
}

}  // namespace

int main() {
  Pair pair;
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      obey(pair, line);
    } catch (const std::exception& error) {  // a word that is no number
      answer("failed %s", error.what());
    }
  }
  return 0;
}
