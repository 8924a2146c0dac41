// A generation's states; form() begins one and drop() ends it:
//
//   kJoining      replicas answer JOIN with their queue pairs; 1 s at most
//   kRegistering  libmcast registers the group; if it can't, probes follow
//   kActive       writes go to the group, reads and copies over a replica's own connection
//   kProbing      a write failed, or the group lost a member: each replica's memory is read
//   kFailed       the engine gets the suspects: those whose probe has no answer within 400 ms
//
// If no probe is answered, this host is cut off, and none is a suspect. Replicas that don't answer
// JOIN are suspects, too.
#include "replica/volume/group_path.h"

#include <mcast/query.h>
#include <mcast/senders.h>
#include <mcast/verbs.h>
#include <mcast/wait.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "replica/control/volume_key.h"

namespace cepheus::replica {

using namespace std::chrono_literals;

constexpr wire::Duration kJoinTimeLimit = 1s;
// A living replica answers a read within a few retries.
constexpr wire::Duration kProbeTimeLimit = 400ms;
constexpr wire::Duration kRegisteringStep = 100us;
// Interval if the device can't wake the thread.
constexpr wire::Duration kPollInterval = 50us;
// Interval if it can: libmcast itself detects the members that it evicts.
constexpr wire::Duration kGroupStep = 10ms;
constexpr wire::Duration kIdleStep = 100ms;
constexpr unsigned kSlotBits = 16;

GroupPath::GroupPath(std::string device, Multicast multicast, unsigned replicas, unsigned depth,
                     std::span<std::uint8_t> memory, std::size_t copy)
    : device_(std::move(device)),
      multicast_(multicast),
      depth_(depth),
      memory_(memory),
      copy_(copy),
      virtual_qpns_(mrp::kChosenQpns, static_cast<std::uint32_t>(random_number())),
      connections_(replicas),
      replies_(replicas),
      ops_(depth + 2 * replicas),
      writes_(depth) {}

GroupPath::~GroupPath() { drop(); }

wire::Result<void> GroupPath::open_port() {
  if (port_ && port_->is_up()) return {};
  drop();
  registered_.reset();
  port_.reset();
  auto port = RdmaPort::open(device_);
  if (!port) return tl::unexpected(port.error());
  mcast_mem_h memory = nullptr;
  if (mcast_mem_register((*port)->groups(), memory_.data(), memory_.size(), &memory) != MCAST_OK) {
    return wire::unavailable(mcast_last_error());
  }
  port_ = std::move(*port);
  registered_.reset(memory);
  return {};
}

void GroupPath::form(wire::Instant now, std::uint64_t generation, Members members) {
  drop();
  generation_ = generation;
  members_ = joining_ = members;
  state_ = State::kJoining;
  until_ = now + kJoinTimeLimit;
  const auto failed = [&](const std::string& why) {
    last_failure_ = why;
    fail({});
  };
  if (auto opened = open_port(); !opened) return failed(opened.error().text);
  // drop() of the old port has cleared it.
  generation_ = generation;
  members_ = joining_ = members;
  state_ = State::kJoining;
  for (const unsigned r : members) {
    auto connection = RcConnection::create(*port_, depth_ + 2);
    if (!connection) return failed(connection.error().text);
    connections_[r] = std::move(*connection);
  }
  mcast_group_params_t params = MCAST_GROUP_PARAMS_INIT;
  params.lane = MCAST_LANE_BULK;
  params.send_depth = depth_;
  params.recv_depth = 1;
  if (multicast_ == Multicast::kMcRdma) {
    take_virtual_qpn(now);
    params.sender_group = 1;
    params.virtual_qpn = virtual_qpn_.value();
  }
  if (mcast_group_create(port_->groups(), &params, &group_) != MCAST_OK) {
    group_ = nullptr;
    failed(mcast_last_error());
  }
}

// A new one for each group: the fabric may still know the last group's, or another program may have
// it.
void GroupPath::take_virtual_qpn(wire::Instant now) {
  if (virtual_qpn_ != wire::Qpn()) virtual_qpns_.give_back(virtual_qpn_, now);
  virtual_qpn_ = virtual_qpns_.take(now).value();
}

void GroupPath::on_joined(wire::Instant now, unsigned replica, const AnswerMessage& message) {
  const Answer& answer = message.answer;
  if (state_ != State::kJoining || answer.serial != generation_ || !joining_.has(replica)) return;
  if (answer.verdict == Verdict::kRefused) return;  // another writer has come: pings will reveal it
  if (answer.verdict == Verdict::kFailed) {
    last_failure_ = message.text;
    // Without a port of this host, no replica is the cause.
    return fail(port_->is_up() ? Members::only(replica) : Members{});
  }
  if (auto connected = connections_[replica]->connect(message.join.rc); !connected) {
    last_failure_ = connected.error().text;
    return fail(Members::only(replica));
  }
  replies_[replica] = message.join;
  joining_ = joining_.without(replica);
  if (joining_.empty()) register_group(now);
}

void GroupPath::register_group(wire::Instant now) {
  std::vector<mcast_member_t> names(1);
  std::vector<mcast_region_t> regions;
  mcast_group_member(group_, names.data());
  for (const unsigned r : members_) {
    mcast_member_t name;
    std::memcpy(&name, replies_[r].member.data(), sizeof name);
    names.push_back(name);
    if (multicast_ == Multicast::kCepheus) continue;  // its switch knows it
    std::memcpy(&regions.emplace_back(), replies_[r].region.data(), sizeof(mcast_region_t));
  }
  state_ = State::kRegistering;
  if (mcast_group_lead_regions(group_, names.data(), names.size(), regions.data(),
                               regions.size()) != MCAST_OK) {
    suspect(now, mcast_last_error());
  }
}

void GroupPath::look_at_registration(wire::Instant now) {
  const mcast_status_t status = mcast_group_test(group_);
  if (status == MCAST_INPROGRESS) return;
  if (status != MCAST_OK) return suspect(now, mcast_last_error());
  state_ = State::kActive;
  ++groups_formed_;
  events_.push_back({Event::Kind::kFormed, generation_});
}

void GroupPath::drop() {
  state_ = State::kNone;
  for (auto& connection : connections_) connection.reset();
  if (group_ != nullptr) mcast_group_destroy(group_);
  group_ = nullptr;
  waiting_.clear();
  copying_.reset();
  for (Op& op : ops_) {
    if (op.kind != OpKind::kFree) ++op.turn;
    op.kind = OpKind::kFree;
  }
  posted_ops_ = 0;
  events_.clear();
  write_failed_ = false;
}

// --- Writes.

void GroupPath::write(std::uint64_t attempt, const void* data, std::size_t length,
                      std::uint64_t offset) {
  waiting_.push_back({attempt, data, length, offset});
}

void GroupPath::on_written(mcast_op_t* op, mcast_status_t status, std::size_t, std::uint32_t) {
  Write& write = *static_cast<Write*>(op->user);
  GroupPath& path = *write.path;
  write.is_free = true;
  --path.posted_writes_;
  if (path.state_ != State::kActive) return;
  // The group's leader may have evicted a member by itself: then a write is acknowledged without
  // it.
  if (status != MCAST_OK || !path.all_are_members()) {
    path.write_failed_ = true;
  } else if (!path.write_failed_) {
    path.events_.push_back({Event::Kind::kWritten, write.attempt});
  }
}

bool GroupPath::all_are_members() const {
  mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
  return mcast_group_query(group_, &attr) == MCAST_OK && attr.members == members_.count() + 1;
}

void GroupPath::post_writes(wire::Instant now) {
  while (!waiting_.empty()) {
    const auto free = std::ranges::find_if(writes_, &Write::is_free);
    if (free == writes_.end()) return;
    const Waiting& next = waiting_.front();
    free->op = {&GroupPath::on_written, &*free};
    free->path = this;
    free->attempt = next.attempt;
    const mcast_status_t status = mcast_write(group_, next.data, next.length, registered_.get(),
                                              kDataRegion, next.offset, nullptr, &free->op);
    if (status == MCAST_ERR_AGAIN) return;
    if (status != MCAST_INPROGRESS) return suspect(now, mcast_last_error());
    free->is_free = false;
    ++posted_writes_;
    waiting_.pop_front();
  }
}

// --- Reads and copies.

std::uint8_t* GroupPath::probe_place(unsigned replica) const {
  return memory_.data() + memory_.size() - copy_ - (replica + 1) * kProbe;
}

void GroupPath::post(OpKind kind, std::uint64_t attempt, unsigned replica, void* data,
                     std::size_t length, std::uint64_t offset) {
  const auto free = std::ranges::find(ops_, OpKind::kFree, &Op::kind);
  free->kind = kind;
  free->attempt = attempt;
  free->replica = replica;
  ++free->turn;
  ++posted_ops_;
  const auto slot = static_cast<std::uint64_t>(free - ops_.begin());
  const std::uint64_t id = std::uint64_t{free->turn} << kSlotBits | slot;
  const JoinReply& reply = replies_[replica];
  const RcConnection::Piece piece{data, length, mcast_mem_verbs(registered_.get())->lkey,
                                  reply.address + offset, reply.rkey};
  const auto opcode = kind == OpKind::kCopyWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  if (connections_[replica]->post(id, opcode, piece)) return;
  ibv_wc wc{};
  wc.wr_id = id;
  wc.status = IBV_WC_FATAL_ERR;
  on_completion(wc);
}

void GroupPath::read(std::uint64_t attempt, unsigned replica, void* data, std::size_t length,
                     std::uint64_t offset) {
  post(OpKind::kRead, attempt, replica, data, length, offset);
}

void GroupPath::copy(std::uint64_t attempt, unsigned source, Members targets, std::size_t length,
                     std::uint64_t offset) {
  copying_ = Copy{attempt, length, offset, targets, targets, {}};
  post(OpKind::kCopyRead, attempt, source, memory_.data() + memory_.size() - copy_, length, offset);
}

void GroupPath::end_copy() {
  events_.push_back({Event::Kind::kCopied, copying_->attempt, true, copying_->failed});
  copied_bytes_ += copying_->length * (copying_->targets - copying_->failed).count();
  copying_.reset();
}

void GroupPath::on_completion(const ibv_wc& wc) {
  const std::size_t slot = wc.wr_id & ((1u << kSlotBits) - 1);
  if (slot >= ops_.size()) return;
  Op& op = ops_[slot];
  if (op.kind == OpKind::kFree || op.turn != static_cast<std::uint32_t>(wc.wr_id >> kSlotBits)) {
    return;
  }
  const Op done = op;
  op.kind = OpKind::kFree;
  --posted_ops_;
  const bool ok = wc.status == IBV_WC_SUCCESS;
  // This host's own port is gone: no replica is the cause.
  if (!ok && !port_->is_up() && state_ == State::kActive) return fail({});
  switch (done.kind) {
    case OpKind::kFree:
      break;
    case OpKind::kRead:
      events_.push_back({Event::Kind::kRead, done.attempt, ok});
      break;
    case OpKind::kCopyRead:
      if (!ok) {
        copying_->failed = Members::only(done.replica);
        return end_copy();
      }
      for (const unsigned r : copying_->targets) {
        if (!copying_) break;
        post(OpKind::kCopyWrite, done.attempt, r, memory_.data() + memory_.size() - copy_,
             copying_->length, copying_->offset);
      }
      break;
    case OpKind::kCopyWrite:
      if (!copying_) break;
      copying_->left = copying_->left.without(done.replica);
      if (!ok) copying_->failed = copying_->failed.with(done.replica);
      if (copying_->left.empty()) end_copy();
      break;
    case OpKind::kProbe:
      if (ok) probing_ = probing_.without(done.replica);
      break;
  }
}

// --- Failures.

// The group fails without a known cause: replicas that can't be read from are the cause.
void GroupPath::suspect(wire::Instant now, const std::string& why) {
  last_failure_ = why;
  if (!port_->is_up()) return fail({});
  state_ = State::kProbing;
  probing_ = members_;
  until_ = now + kProbeTimeLimit;
  for (const unsigned r : members_) post(OpKind::kProbe, 0, r, probe_place(r), kProbe, 0);
}

void GroupPath::fail(Members suspects, bool all_answer) {
  state_ = State::kFailed;
  events_.push_back({Event::Kind::kFailed, generation_, all_answer, suspects});
}

bool GroupPath::progress(wire::Instant now, std::vector<Event>& out) {
  if (!port_) {
    out.insert(out.end(), events_.begin(), events_.end());
    events_.clear();
    return !out.empty();
  }
  if (state_ == State::kActive) {
    post_writes(now);
    mcast_progress(port_->groups());
  } else {
    mcast_progress_all(port_->groups());
  }
  if (state_ == State::kActive && write_failed_) {
    mcast_group_attr_t attr = MCAST_GROUP_ATTR_INIT;
    const bool is_known = mcast_group_query(group_, &attr) == MCAST_OK && attr.reason[0] != '\0';
    suspect(now, is_known ? attr.reason : "the group evicted a member");
  }
  std::array<ibv_wc, 32> completions;
  const std::size_t found = posted_ops_ > 0 ? port_->poll(completions) : 0;
  for (std::size_t i = 0; i < found; ++i) on_completion(completions[i]);
  if (state_ == State::kRegistering) look_at_registration(now);
  if (state_ == State::kJoining && now >= until_) {
    last_failure_ = "a replica does not answer";
    fail(joining_);
  }
  if (state_ == State::kProbing && (probing_.empty() || now >= until_)) {
    // If no replica can be reached, this host is cut off.
    fail(probing_ == members_ ? Members{} : probing_, probing_.empty());
  }
  const bool worked = found > 0 || !events_.empty();
  out.insert(out.end(), events_.begin(), events_.end());
  events_.clear();
  return worked;
}

wire::Instant GroupPath::deadline(wire::Instant now) const {
  switch (state_) {
    case State::kNone:
    case State::kFailed:
      break;
    case State::kJoining:
      return until_;
    case State::kRegistering:
      return now + kRegisteringStep;
    case State::kProbing:
      return std::min(until_, now + 10 * kRegisteringStep);
    case State::kActive:
      if (posted_writes_ == 0 && waiting_.empty()) return now + kIdleStep;
      return now + (group_wakes_ ? kGroupStep : kPollInterval);
  }
  return wire::kNever;
}

GroupPath::Descriptors GroupPath::arm() {
  Descriptors found;
  if (port_ && posted_ops_ > 0) {
    port_->arm();
    found.connections = port_->event_fd();
  }
  group_wakes_ = port_ && state_ == State::kActive && (posted_writes_ > 0 || !waiting_.empty()) &&
                 mcast_context_arm(port_->groups(), &found.group) == MCAST_OK;
  return found;
}

}  // namespace cepheus::replica
