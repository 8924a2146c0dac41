// One member's side of a group: its queue pair, its lane and its regions, around the engine that
// decides (engine/group_engine.h).
//
// Everything here is under the context's state lock and makes no callback, except that create() and
// the end are without the lock: the device may take long for them. Other calls of the device that
// may take long are made by the context's thread (Context::call_apart).
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "libmcast/bulk_lane.h"
#include "libmcast/eager_lane.h"
#include "libmcast/engine/group_engine.h"
#include "libmcast/published_regions.h"
#include "libmcast/reduction_lane.h"

namespace cepheus::mcast {

class Context;

struct GroupConfig {
  mcast_lane_t lane = MCAST_LANE_EAGER;
  std::size_t max_eager = 8192;
  QueueDepths depths{64, 64};
  std::uint16_t reduction_window = 0;  // units; 0: on other lanes
  std::uint8_t reduction_kind = wire::MrpReduction::kValues;
  bool same_key = false;      // of bulk lanes
  bool per_request = false;   // of bulk lanes
  bool sender_group = false;  // of bulk lanes
  wire::Qpn virtual_qpn;      // of sender groups, for the member that leads; 0: it never leads
  mrp::LostMember lost_member = mrp::LostMember::kEvicted;
  mcast_recv_cb_t recv_cb = nullptr;
  void* recv_arg = nullptr;
};

// The parts of a context that its groups use.
struct Facilities {
  Context& context;
  const Device& device;
  CompletionQueues& queues;
  MemoryBudget& eager_budget;
  Timers timers;
  wire::Duration sender_time_limit, receiver_time_limit;
  std::uint32_t nic_window;    // see SendWindow
  std::uint16_t control_port;  // where this process takes registration datagrams
};

class Group final {
 public:
  // `number` is its name in the context. The queue pair is in INIT, eager receives are posted.
  static Expected<std::unique_ptr<Group>> create(const Facilities& facilities, std::uint32_t number,
                                                 const GroupConfig& config);

  Context& context() const { return context_; }
  std::uint32_t number() const { return number_; }
  const GroupEngine& engine() const { return engine_; }
  const mrp::MrpMember& member() const { return engine_.group().member(); }
  mcast_group_state_t state() const { return engine_.group().state(); }
  mcast_status_t status() const { return engine_.group().status(); }
  const std::string& reason() const { return engine_.group().reason(); }
  bool is_of_sender_group() const { return engine_.group().settings().is_sender_group; }
  const PostedWork& work() const { return engine_.group().work(); }
  wire::Qpn virtual_qpn() const { return virtual_qpn_; }  // GroupConfig's
  mrp::LostMember lost_member() const { return lost_member_; }
  mcast_group_attr_t attributes() const;

  // An event for the engine, whose actions are performed here. Messages wait in the outbox until
  // the control plane sends them.
  template <typename Event, typename... Args>
  auto handle(Event event, const Args&... args) {
    if constexpr (std::is_void_v<decltype((engine_.*event)(args..., output_))>) {
      (engine_.*event)(args..., output_);
      carry_out();
    } else {
      auto outcome = (engine_.*event)(args..., output_);
      carry_out();
      return outcome;
    }
  }
  mrp::Outbox& outbox() { return output_; }
  Role::Registrations take_registration() { return engine_.take_registration(); }
  void set_watched(bool watched) { engine_.set_watched(watched); }
  void add_to_reason(const std::string& text) { engine_.add_to_reason(text); }

  Expected<void> set_receive(mcast_recv_cb_t callback, void* arg);
  // Messages may arrive: progress() may be inside the receive callback.
  bool has_receive_calls() const { return eager_ && was_connected_; }
  // For the engine and the regions.
  wire::Instant deadline() const;

  // --- Memory that others may write to.
  Expected<void> check_may_publish(std::uint16_t number) const;
  // Needs no lock; for publish().
  Expected<MrHandle> register_region(std::uint16_t number, void* address,
                                     std::size_t length) const {
    return regions_.register_region(number, address, length);
  }
  Expected<void> publish(wire::Instant now, std::uint16_t number, MrHandle& memory);
  Expected<void> publish_part(wire::Instant now, std::uint16_t number, const Memory& memory,
                              std::size_t offset, std::size_t length);
  // Memory for the caller to deregister now, without the state lock; may be null.
  Expected<MrHandle> revoke(wire::Instant now, std::uint16_t number);
  // This member's regions, for the sender of a sender group. INVALID: of other groups.
  Expected<std::vector<wire::MrpRegion::Record>> named_regions() const;
  // The address and key of a WRITE to `offset` of region `number`.
  RegionPlace place_in(std::uint16_t number, std::uint64_t offset) const {
    return {regions_.rkey_of(number), offset};
  }
  // The publication that is due.
  std::optional<wire::Publication> take_publication(wire::Instant now);

  // --- Data.
  EagerLane* eager() { return eager_.get(); }
  BulkLane* bulk() { return bulk_.get(); }
  ReductionLane* reduction() { return reduction_.get(); }
  Lane& lane();
  const Lane& lane() const;
  // OK while this member may send `length` bytes. AGAIN: its PSNs have to be synchronised first,
  // which Context::progress() does, or the window is full.
  // `kByUnits`: the lane keeps to the window by itself.
  enum class Sending : std::uint8_t { kEager, kWhole, kInParts, kByUnits };
  Expected<void> check_may_send(std::size_t length, Sending kind);
  void note_sent(std::size_t length) { engine_.work().on_send_posted(packets_of(length)); }
  // A step of PSN synchronisation is due, and this performs it. The completion queues must be
  // empty. A group that fails in the middle completes the flushed work.
  void synchronise(Events& out);
  void note_sync_due();
  void on_completion(const ibv_wc& wc, Events& out);
  mcast_status_t receive(void* data, std::size_t length, std::uint32_t imm) const {
    return recv_cb_(recv_arg_, data, length, imm);
  }
  // The application has done with an eager receive. False: it did not hold that buffer.
  bool release_receive(std::uint32_t slot);

  // The queue pair stops, its work completes with `status`.
  void fail(mcast_status_t status, mcast_cause_t cause, const std::string& reason);
  // The group makes no further call of the device, and may end once has_calls() is false.
  void close() { is_closing_ = true; }
  bool has_calls() const { return calls_ > 0; }
  void count_call(int change) { calls_ += change; }
  bool is_stepping() const { return work().sync().is_stepping(); }
  // Outstanding operations end with MCAST_ERR_CANCELED: once the queue pair is gone.
  void shut_down(Events& out);
  // Destroys the queue pair: without the lock, when the group is no longer in its context.
  void drop_pair() { pair_.reset(); }

 private:
  Group(const Facilities& facilities, std::uint32_t number, const GroupConfig& config,
        std::unique_ptr<QueuePair> pair);

  void carry_out();
  void perform(const GroupAction& action);
  void connect(const RemoteEnd& remote);
  void take_step(PairSync::Step step);
  bool post_kept();
  void stop();
  void read_psns_if_wanted();

  Expected<void> check_may_publish() const;
  void complete(const ibv_wc& wc, Events& out);
  std::uint64_t packets_of(std::size_t length) const;
  std::size_t max_message() const;  // as mcast_group_attr_t
  std::size_t most_at_once() const;
  Expected<void> check_window(std::size_t length, Sending kind) const;

  Context& context_;
  const std::uint32_t number_;
  const mcast_lane_t lane_kind_;
  const mrp::LostMember lost_member_;
  const wire::Qpn virtual_qpn_;
  const Timers timers_;
  mcast_recv_cb_t recv_cb_;
  void* recv_arg_;
  bool was_connected_ = false;
  bool is_closing_ = false;
  int calls_ = 0;  // of the device, under way
  GroupEngine engine_;
  GroupOutput output_;
  // Receives point into a lane's slab, and may be written until the pair is gone. So it goes first.
  std::unique_ptr<EagerLane> eager_;
  std::unique_ptr<BulkLane> bulk_;
  std::unique_ptr<ReductionLane> reduction_;
  PublishedRegions regions_;
  std::unique_ptr<QueuePair> pair_;
};

}  // namespace cepheus::mcast
