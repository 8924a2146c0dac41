// A RoCE device under the control of a test: it defines the verbs and the datagram calls that
// libmcast makes, so that no network, NIC or switch is needed. Posted work stays in the queue pair
// until the test completes it. Datagrams to the registration port stay until the test reads them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "wire/mrp.h"
#include "wire/publication.h"
#include "wire/sender_group.h"

namespace cepheus::mcast::fake {

struct Posted {
  std::uint64_t wr_id = 0;
  void* address = nullptr;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
  std::uint32_t imm = 0;  // of a send, in host byte order
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint64_t remote_address = 0;  // of a WRITE
  std::uint32_t rkey = 0;
  bool is_signaled = true;
};

struct Pair {
  ibv_qp verbs{};  // the library's handle
  std::vector<ibv_qp_state> states;
  std::uint32_t send_psn = 0, receive_psn = 0;          // they move with messages
  std::uint32_t set_send_psn = 0, set_receive_psn = 0;  // as the library set them
  wire::Ipv4 remote;
  std::uint32_t remote_qpn = 0;
  ibv_ah_attr path{};  // as last set
  ibv_mtu mtu = IBV_MTU_256;
  std::deque<Posted> sends, receives;
};

class Device {
 public:
  // The one of this program, as new.
  static Device& fresh();
  static Device& instance();

  // --- The devices.
  wire::Ipv4 address{10, 0, 0, 1};
  bool is_there = true;
  std::vector<std::string> names{"fake0"};  // as listed; each stands for this device
  struct GidEntry {
    std::string device;
    std::uint8_t port = 1;
    wire::Ipv4 address;
    unsigned interface = 0;
  };
  // Of several devices or ports, in the order of their tables; none: one GID, of `address`.
  std::vector<GidEntry> gids;
  std::uint8_t ports = 1;    // of each device
  std::string without_port;  // the name of a device without an active port
  bool is_up = true;
  bool is_ethernet = true;
  bool is_emulated = true;  // else datagrams go through the kernel, from `address`
  ibv_mtu mtu = IBV_MTU_1024;
  std::size_t max_message = std::size_t{1} << 30;
  int refuse_modify = 0;  // errno of the next change to `refused_state`
  ibv_qp_state refused_state = IBV_QPS_RTR;
  int sends_left = -1;            // taken before one is refused; -1: all are
  int receives_left = -1;         // likewise
  int flushes_left = -1;          // receives that a queue pair in ERR returns; -1: all
  bool has_channels = true;       // completion channels
  bool has_frozen_psns = false;   // queries show those that were set, whatever is sent
  bool comes_back = true;         // a queue pair can leave ERR
  std::function<void()> on_open;  // in ibv_open_device()
  // Before each call of these, by its name or the new state's: "port" (queried), "memory"
  // (registered or not), "create", "destroy", "INIT", "RTR", "RTS", "ERR", "RESET". It may block.
  std::function<void(const std::string& call)> on_call;
  // Of an emulated NIC with the manners of another make, in microseconds; -1: the NIC's own.
  std::int64_t latest_repeat = -1;
  std::int64_t window = 0;              // packets that a queue pair has under way; 0: any number
  int opened = 0;                       // contexts that are open
  std::size_t regions = 0;              // registered
  std::vector<unsigned> registrations;  // access of each, whether it still is or not
  int refuse_chosen_keys = 0;           // errno
  bool is_memory_read_only = false;     // of all that is registered
  std::vector<std::pair<std::uint64_t, std::uint32_t>> chosen;  // address and key, so far

  std::uint32_t next_qpn = 0x100;

  // --- Queue pairs, in the order they were made; null once destroyed.
  std::vector<std::unique_ptr<Pair>> pairs;
  Pair& pair(std::size_t index) { return *pairs.at(index); }
  // The oldest send or receive of `pair` ends.
  void complete_send(Pair& pair, ibv_wc_status status = IBV_WC_SUCCESS);
  void deliver(Pair& pair, const std::string& data, std::uint32_t imm);
  void flush(Pair& pair);  // as a queue pair in ERR
  // A completion without posted work.
  void complete(Pair& pair, const ibv_wc& wc);

  // --- Device events.
  void raise(ibv_event_type type, std::uint8_t port);
  void raise(ibv_event_type type, Pair& pair);

  // --- Registration. The library's datagrams since the last call, oldest first.
  std::vector<wire::MrpMessage> sent() {
    const std::lock_guard lock(datagrams_mutex);
    return std::exchange(sent_, {});
  }
  std::vector<wire::SenderGroupMessage> sent_of_sender_groups() {
    const std::lock_guard lock(datagrams_mutex);
    return std::exchange(sent_of_sender_groups_, {});
  }
  // MrpMessage or SenderGroupMessage.
  template <typename Message>
  void inject(wire::Ipv4 from, const Message& message) {
    std::vector<std::uint8_t> bytes(wire::MrpMessage::kMaxSize);
    bytes.resize(message.emit(bytes));
    const std::lock_guard lock(datagrams_mutex);
    incoming_.emplace_back(from, std::move(bytes));
  }
  void note(const wire::MrpMessage& message) {  // to be read again
    const std::lock_guard lock(datagrams_mutex);
    sent_.push_back(message);
  }
  std::vector<wire::Publication> published;          // so far
  std::vector<std::vector<std::uint8_t>> datagrams;  // all datagrams so far
  // Contexts of one process, each with a keep-alive thread, share the device.
  std::mutex datagrams_mutex;
  void note_call(const std::string& call) {
    if (on_call) on_call(call);
  }
  // The library calls from several threads.
  std::recursive_mutex calls_mutex;

 private:
  friend struct Calls;
  std::uint32_t packets_of(std::size_t length) const;

  std::deque<std::pair<ibv_cq*, ibv_wc>> completions_;
  std::vector<ibv_cq*> armed_;
  std::deque<ibv_cq*> fired_;  // events not fetched; the descriptor counts them
  std::deque<ibv_async_event> events_;
  std::vector<wire::MrpMessage> sent_;
  std::vector<wire::SenderGroupMessage> sent_of_sender_groups_;
  std::deque<std::pair<wire::Ipv4, std::vector<std::uint8_t>>> incoming_;
};

}  // namespace cepheus::mcast::fake
