// The group's work on its queue pair: what is posted and under way, how much may be, and the PSNs of
// the pair, where switches leave them to the hosts (mrp::PsnSync).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "controller/psn_sync.h"
#include "libmcast/engine/failure.h"
#include "libmcast/engine/remote_end.h"
#include "libmcast/engine/send_window.h"

namespace cepheus::mcast {

// Receives that a halted queue pair does not have, by the names that they complete with; in the
// order of posting.
using KeptReceives = std::vector<std::uint64_t>;

class PairSync {
 public:
  using Step = mrp::PsnSync::Step;
  struct Psns {  // the queue pair's next ones
    wire::Psn send, receive;
  };

  void connect(wire::Psn start) { start_ = start; }
  void enable() { sync_.enable(); }
  bool is_enabled() const { return sync_.is_enabled(); }
  void end() { has_ended_ = true; }  // the group has failed

  // --- Packets.
  // AGAIN: this number of packets needs synchronised PSNs first.
  Expected<void> check_send(std::uint64_t packets);
  void sent(std::uint64_t packets) { sync_.sent(packets); }
  void on_delivered() { check_moves(&Psns::send); }
  void on_received() {
    sync_.received();
    check_moves(&Psns::receive);
  }
  // GroupEngine::on_psns() needs the queue pair's PSNs: before check_send(), or because data was
  // the first to move them.
  bool wants_psns() const { return !has_ended_ && (moved_ != nullptr || sync_.has_to_look()); }
  // False: data has not moved them.
  bool on_psns(const Psns& now);

  // --- Steps. `outstanding`: sends.
  bool is_due(unsigned outstanding) const {
    return !has_ended_ && !step_ && sync_.due(outstanding) != Step::kNone;
  }
  Step begin_step(unsigned outstanding);
  Step end_step() { return *std::exchange(step_, std::nullopt); }
  bool is_stepping() const { return step_.has_value(); }
  void done() { sync_.done(); }
  bool is_halted() const { return sync_.is_stopped() && !has_ended_; }
  void drained() { sync_.drained(); }  // all that was posted before the halt came back

  // --- Receives of a halted queue pair.
  // A receive is to be posted. True: it waits for the queue pair.
  bool keeps(std::uint64_t receive) { return keep(posted_meanwhile_, receive); }
  // A receive came back flushed. True: it waits to be posted again, and has not ended.
  bool keeps_flushed(std::uint64_t receive) { return keep(flushed_, receive); }
  // Those of a group that has failed end with it, because the device does not know them.
  KeptReceives take_kept();
  // The device has refused these.
  void put_back(KeptReceives kept) { flushed_ = std::move(kept); }
  bool has_kept() const { return !flushed_.empty() || !posted_meanwhile_.empty(); }

 private:
  bool keep(KeptReceives& list, std::uint64_t receive) {
    if (is_halted()) list.push_back(receive);
    return is_halted();
  }
  // A device may complete work and yet report the PSNs of the driver, which don't move: hosts can't
  // synchronise them. The first message shows it, before a wrong PSN is set.
  void check_moves(wire::Psn Psns::*psn) {
    if (is_enabled() && !psns_move_) moved_ = psn;
  }

  mrp::PsnSync sync_;
  std::optional<Step> step_;  // under way
  wire::Psn start_;           // of the queue pair, when it was connected
  // The PSN that the first message should have moved; null: nothing to check.
  wire::Psn Psns::*moved_ = nullptr;
  bool psns_move_ = false;  // as this group has seen
  bool has_ended_ = false;
  KeptReceives flushed_, posted_meanwhile_;
};

// Counts of the group's data here.
struct Flow {
  std::uint64_t messages_sent = 0, messages_received = 0, sends_completed = 0;
  unsigned sends_outstanding = 0, receives_posted = 0;

  // Of a reduction lane: this member has contributed to these units, and lacks their results.
  std::uint64_t results_awaited() const { return messages_sent - messages_received; }
};

class PostedWork {
 public:
  // `nic_window`: see SendWindow.
  PostedWork(std::uint32_t path_mtu, std::uint32_t nic_window)
      : path_mtu_(path_mtu), window_(nic_window) {}

  // Payload bytes of a packet: the group's once it is connected, before that the device's. Of a
  // reduction group at most its leader's unit.
  std::uint32_t path_mtu() const { return path_mtu_; }
  const Flow& flow() const { return flow_; }
  const SendWindow& window() const { return window_; }
  PairSync& sync() { return sync_; }
  const PairSync& sync() const { return sync_; }
  bool is_sync_due() const { return sync_.is_due(flow_.sends_outstanding); }

  void connect(const RemoteEnd& remote) {
    sync_.connect(remote.start);
    path_mtu_ = remote.unit == 0 ? remote.path_mtu : std::min(remote.path_mtu, remote.unit);
  }
  void open(std::uint32_t packets) { window_.open(packets); }
  void renew(std::uint32_t packets) { window_.renew(packets); }

  // `sends`: one, or a list that ends at once.
  void on_send_posted(std::uint64_t packets, unsigned sends = 1) {
    sync_.sent(packets);
    window_.posted(packets);
    flow_.messages_sent += sends;
    flow_.sends_outstanding += sends;
  }
  // `packets` and `sends` as posted. Then PairSync::wants_psns().
  void on_send_ended(std::uint64_t packets, bool is_delivered, unsigned sends = 1) {
    window_.ended(packets);
    flow_.sends_outstanding -= sends;
    flow_.sends_completed += sends;
    if (is_delivered) sync_.on_delivered();
  }
  void on_receive_posted(unsigned receives = 1) { flow_.receives_posted += receives; }
  void on_receive_ended(bool has_data) {
    --flow_.receives_posted;
    if (!has_data) return;
    ++flow_.messages_received;
    sync_.on_received();
  }
  // The queue pair is gone, with all posted work.
  void drop() {
    flow_.sends_outstanding = flow_.receives_posted = 0;
    window_.drop();
  }

 private:
  std::uint32_t path_mtu_;
  Flow flow_;
  SendWindow window_;
  PairSync sync_;
};

}  // namespace cepheus::mcast
