// The writer's paths to its replicas' data: one group for writes, and a connection to each replica
// for reads and copies. Each generation of the group makes all of them anew, and they end with it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/virtual_qpns.h"
#include "replica/rdma/rc_connection.h"

namespace cepheus::replica {

class GroupPath {
 public:
  struct Event {
    enum class Kind { kFormed, kFailed, kWritten, kRead, kCopied };
    Kind kind;
    std::uint64_t number = 0;  // kFormed, kFailed: the generation; others: the attempt
    bool ok = true;            // kRead; kFailed: all members answer
    Members members{};         // kFailed: suspects; kCopied: unreachable ones
  };

  // `memory`: the data of writes and reads. Its last `copy` bytes are for copies of one chunk, and
  // kProbe bytes before them for each replica.
  GroupPath(std::string device, Multicast multicast, unsigned replicas, unsigned depth,
            std::span<std::uint8_t> memory, std::size_t copy);
  ~GroupPath();

  static constexpr std::size_t kProbe = 64;

  wire::Result<void> open_port();

  // Begins a generation; a member joins with connection_to().
  void form(wire::Instant now, std::uint64_t generation, Members members);
  RcName connection_to(unsigned replica) const { return connections_[replica]->name(); }
  bool is_forming() const { return state_ == State::kJoining; }
  void on_joined(wire::Instant now, unsigned replica, const AnswerMessage& answer);
  // No work is in flight and no event follows after it returns.
  void drop();

  void write(std::uint64_t attempt, const void* data, std::size_t length, std::uint64_t offset);
  void read(std::uint64_t attempt, unsigned replica, void* data, std::size_t length,
            std::uint64_t offset);
  void copy(std::uint64_t attempt, unsigned source, Members targets, std::size_t length,
            std::uint64_t offset);

  // Whether there was progress; its events in `out`.
  bool progress(wire::Instant now, std::vector<Event>& out);
  // The next call if no descriptor wakes the thread before.
  wire::Instant deadline(wire::Instant now) const;
  // Call progress() once more before sleeping. Later completions on connections and in the group
  // make these readable; -1: no work is in flight there.
  struct Descriptors {
    int connections = -1, group = -1;
  };
  Descriptors arm();

  std::uint64_t copied_bytes() const { return copied_bytes_; }
  std::uint64_t groups_formed() const { return groups_formed_; }
  const std::string& last_failure() const { return last_failure_; }

 private:
  enum class State { kNone, kJoining, kRegistering, kActive, kProbing, kFailed };
  enum class OpKind : std::uint8_t { kFree, kRead, kCopyRead, kCopyWrite, kProbe };
  struct Op {  // on a connection
    OpKind kind = OpKind::kFree;
    std::uint32_t turn = 0;  // of this slot: completions of dropped connections arrive late
    std::uint64_t attempt = 0;
    unsigned replica = 0;
  };
  struct Write {
    mcast_op_t op{};
    GroupPath* path = nullptr;
    std::uint64_t attempt = 0;
    bool is_free = true;
  };
  struct Waiting {
    std::uint64_t attempt;
    const void* data;
    std::size_t length;
    std::uint64_t offset;
  };
  struct Copy {
    std::uint64_t attempt = 0;
    std::size_t length = 0;
    std::uint64_t offset = 0;
    Members targets, left, failed;
  };

  static void on_written(mcast_op_t* op, mcast_status_t status, std::size_t, std::uint32_t);
  void take_virtual_qpn(wire::Instant now);
  void register_group(wire::Instant now);
  void look_at_registration(wire::Instant now);
  void post_writes(wire::Instant now);
  void post(OpKind kind, std::uint64_t attempt, unsigned replica, void* data, std::size_t length,
            std::uint64_t offset);
  void on_completion(const ibv_wc& wc);
  void end_copy();
  void suspect(wire::Instant now, const std::string& why);
  void fail(Members suspects, bool all_answer = false);
  bool all_are_members() const;
  std::uint8_t* probe_place(unsigned replica) const;

  const std::string device_;
  const Multicast multicast_;
  const unsigned depth_;
  const std::span<std::uint8_t> memory_;
  const std::size_t copy_;

  std::unique_ptr<RdmaPort> port_;
  MemoryHandle registered_;  // memory_

  State state_ = State::kNone;
  std::uint64_t generation_ = 0;
  Members members_, joining_, probing_;
  wire::Instant until_{};  // kJoining, kProbing: time limit
  mcast_group_h group_ = nullptr;
  mrp::VirtualQpns virtual_qpns_;  // kMcRdma
  wire::Qpn virtual_qpn_;          // group_'s, or the last one's; 0: none yet
  std::vector<std::unique_ptr<RcConnection>> connections_;
  std::vector<JoinReply> replies_;
  std::vector<Op> ops_;
  std::vector<Write> writes_;
  std::deque<Waiting> waiting_;
  std::optional<Copy> copying_;
  unsigned posted_ops_ = 0, posted_writes_ = 0;
  bool write_failed_ = false;
  bool group_wakes_ = false;  // the group has a descriptor to sleep on
  std::vector<Event> events_;
  std::uint64_t copied_bytes_ = 0, groups_formed_ = 0;
  std::string last_failure_;
};

}  // namespace cepheus::replica
