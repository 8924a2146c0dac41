// The constructor registers the group and advances time by 1 ms steps until it stands or fails.
// Modes of a member: single messages, pieces in the window, turns, a stream, WRITEs. A completion's
// wr_id and the mode show what has ended; a failed one throws.
//
// In turns kReceives receives are posted at a time, in a stream kStreamed. Instance, epoch and
// token are the same for all groups.
#include "fabric-sim/experiments/multicast_group.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "fabric-sim/core/group_program.h"
#include "wire/announcement.h"

namespace cepheus::sim {

using namespace std::chrono_literals;

constexpr std::uint32_t kInstance = 1;
constexpr std::uint16_t kEpoch = 1;
constexpr std::uint32_t kToken = 0x70CE;
constexpr std::uint8_t kGroupTimeout = 7;  // 0.5 ms

class MulticastGroup::Member final : public GroupProgram, public CompletionClient {
 public:
  Member(MulticastGroup& group, Host& host, wire::McstId id, std::uint32_t depth)
      : GroupProgram(group.simulator_, host,
                     {.qpn = create_qp(host, depth, depth),
                      .control_port = static_cast<std::uint16_t>(40000 + id.value() % 10000),
                      .token = kToken,
                      .timers = {kGroupTimeout}}),
        group_(group) {
    lkey_ = sim::open_memory(host, group.memory_).lkey;
    host.attach(qpn(), *this);
  }

  mcast_status_t status() const { return group().status(); }
  std::uint32_t window() const { return group().work().window().limit(); }
  void post_receive() {
    const auto bytes = static_cast<std::uint32_t>(group_.memory_.size());
    sim::post_receive(host(), qpn(), {0, bytes, lkey_});
  }
  void post_send(std::uint32_t bytes) {
    sim::post_send(host(), qpn(), {0, bytes, lkey_},
                   {.wr_id = 1, .op = rnic::SendOp::kSendImm, .signaled = true});
  }

  // All pieces of the messages, as the window admits them. Returns their number.
  std::size_t send_in_window(std::uint32_t bytes, std::size_t messages) {
    const std::uint32_t mtu = host().nic().config().max_mtu;
    const std::uint64_t portion = std::uint64_t{group().work().window().portion()} * mtu;
    for (std::size_t n = 0; n < messages; ++n) {
      for (std::uint64_t rest = bytes; rest > 0;
           rest -= std::min(rest, portion == 0 ? rest : portion)) {
        pieces_.push_back(
            static_cast<std::uint32_t>(portion == 0 ? rest : std::min(rest, portion)));
      }
    }
    const std::size_t all = pieces_.size();
    post_pieces();
    return all;
  }

  void accept_writes(std::uint32_t key) {
    require(host().nic().register_memory_as(key, 1, group_.memory_.data(), group_.memory_.size(), 0,
                                            rnic::kLocalWrite | rnic::kRemoteWrite));
  }
  wire::AnnouncedTarget open_memory() {
    const auto keys =
        sim::open_memory(host(), group_.memory_, rnic::kLocalWrite | rnic::kRemoteWrite);
    return {host().address(), keys.rkey, 0, group_.memory_.size()};
  }
  void keep_announcement(std::vector<std::uint8_t>& announcement) {
    announcement_key_ = sim::open_memory(host(), announcement, 0).lkey;
  }
  void post_announcement(std::size_t size) {
    sim::post_send(host(), qpn(), {0, static_cast<std::uint32_t>(size), announcement_key_},
                   {.op = rnic::SendOp::kWrite, .rkey = wire::Announcement::kKey});
  }
  void post_write(std::uint32_t bytes) {
    sim::post_send(
        host(), qpn(), {0, bytes, lkey_},
        {.wr_id = kWrite, .op = rnic::SendOp::kWrite, .signaled = true, .rkey = group_.key_});
  }

  void on_completion(Instant now, const rnic::Completion& completion) override {
    require_success(completion);
    if (completion.wr_id == kWrite) return group_.written_(now);
    const bool is_source = completion.wr_id == 1;
    if (streamed_bytes_ != 0) return on_streamed(is_source);
    group_.note(now, is_source);
    if (!is_source) on_received();
    if (is_source && !under_way_.empty()) on_piece_sent();
    group_.go_on();
  }
  // Receives are posted again as they complete, so that none is ever missing; sends likewise, while
  // they last.
  void stream(std::uint32_t bytes, bool sends) {
    streamed_bytes_ = bytes;
    for (std::uint32_t i = 0; i < kStreamed; ++i) sends ? post_send(bytes) : post_receive();
  }
  // Receives this many messages of the others, and sends its own after that number.
  void join_turns(std::size_t messages, std::size_t before_own, std::uint32_t bytes) {
    received_ = 0;
    expected_ = messages;
    own_after_ = before_own;
    own_bytes_ = bytes;
    for (std::size_t i = 0; i < std::min(kReceives, messages); ++i) post_receive();
    if (own_after_ == 0) post_send(bytes);
  }

 private:
  void post_pieces() {
    const std::uint32_t mtu = host().nic().config().max_mtu;
    for (; !pieces_.empty(); pieces_.pop_front()) {
      const std::uint64_t packets = (pieces_.front() + mtu - 1) / mtu;
      if (!group().work().window().admits(packets)) return;
      post_send(pieces_.front());
      engine().work().on_send_posted(packets);
      under_way_.push_back(packets);
    }
  }
  void on_piece_sent() {
    engine().work().on_send_ended(under_way_.front(), true);
    under_way_.pop_front();
    post_pieces();
  }

  static constexpr std::uint64_t kWrite = 2;   // a WRITE's wr_id
  static constexpr std::size_t kReceives = 4;  // posted at a time
  // More bytes than a round trip over full queues carries.
  static constexpr std::uint32_t kStreamed = 16;

  void on_streamed(bool is_source) {
    if (!is_source) return post_receive();
    ++group_.streamed_;
    if (group_.is_streaming_) post_send(streamed_bytes_);
  }

  void on_received() {
    ++received_;
    if (received_ + kReceives <= expected_) post_receive();
    if (received_ == own_after_) post_send(own_bytes_);
  }
  void on_change(Instant now) override {
    if (is_active() && engine().role().is_leader()) {
      group_.ready_at_ = std::min(group_.ready_at_, now);
    }
  }

  MulticastGroup& group_;
  std::uint32_t lkey_ = 0, announcement_key_ = 0;
  // If members take turns:
  std::size_t received_ = 0, expected_ = 0;
  std::size_t own_after_ = ~std::size_t{0};
  std::uint32_t own_bytes_ = 0;
  std::uint32_t streamed_bytes_ = 0;
  std::deque<std::uint32_t> pieces_;     // bytes of those to be posted
  std::deque<std::uint64_t> under_way_;  // packets of those posted
};

MulticastGroup::MulticastGroup(Testbed& testbed, const std::vector<std::size_t>& hosts,
                               wire::McstId id, std::uint32_t depth)
    : simulator_(testbed.simulator()), memory_(testbed.memory()) {
  std::vector<mrp::MrpMember> names;
  for (const std::size_t host : hosts) {
    members_.push_back(std::make_unique<Member>(*this, testbed.network().host(host), id, depth));
    names.push_back(members_.back()->member());
  }
  Member& leader = *members_.front();
  mrp::RegistrationConfig config;
  config.host = leader.member().host;
  config.instance = kInstance;
  leader.lead(config, {id, kEpoch}, names);
  while (leader.status() == MCAST_INPROGRESS) simulator_.run(simulator_.now() + 1ms);
  if (leader.status() != MCAST_OK) throw std::runtime_error("a simulated group is not set up");
}

MulticastGroup::~MulticastGroup() = default;

std::uint32_t MulticastGroup::window() const { return members_.front()->window(); }

void MulticastGroup::send(std::size_t member, std::uint32_t bytes) {
  waiting_ = members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != member) members_[i]->post_receive();
  }
  members_[member]->post_send(bytes);
}

void MulticastGroup::send_all(std::size_t member, std::uint32_t bytes, std::size_t messages) {
  const std::size_t pieces = members_[member]->send_in_window(bytes, messages);
  waiting_ = members_.size() * pieces;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    for (std::size_t n = 0; i != member && n < pieces; ++n) members_[i]->post_receive();
  }
}

void MulticastGroup::stream(std::size_t member, std::uint32_t bytes) {
  is_streaming_ = true;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != member) members_[i]->stream(bytes, false);
  }
  members_[member]->stream(bytes, true);
}

void MulticastGroup::accept_writes(std::uint32_t key, std::function<void(Instant)> written) {
  key_ = key;
  written_ = std::move(written);
  for (const auto& member : members_) member->accept_writes(key);
}

void MulticastGroup::announce_writes(std::function<void(Instant)> written) {
  written_ = std::move(written);
  std::vector<wire::AnnouncedTarget> targets;
  for (const auto& member : members_) targets.push_back(member->open_memory());
  announcement_.resize(wire::Announcement::size_of(targets.size()));
  wire::Announcement::emit(targets, announcement_);
  for (const auto& member : members_) member->keep_announcement(announcement_);
}

void MulticastGroup::write(std::size_t member, std::uint32_t bytes) {
  if (!announcement_.empty()) members_[member]->post_announcement(announcement_.size());
  members_[member]->post_write(bytes);
}

void MulticastGroup::take_turns(std::uint32_t bytes) {
  const std::size_t n = members_.size();
  waiting_ = n * n;  // n - 1 members receive each message, and its source completes it
  for (std::size_t i = n; i-- > 0;) members_[i]->join_turns(n - 1, i, bytes);
}

void MulticastGroup::rotate(std::uint32_t bytes) {
  is_streaming_ = true;
  turn_bytes_ = bytes;
  take_turns(bytes);
}

MulticastTime time_of_multicast(Testbed& testbed, const std::vector<std::size_t>& hosts,
                                std::uint64_t bytes) {
  MulticastGroup group(testbed, hosts);
  const Instant begin = testbed.simulator().now();
  group.send(0, static_cast<std::uint32_t>(bytes));
  testbed.run_until([&] { return group.is_done(); });
  return {group.received_at() - begin, group.completed_at() - begin};
}

}  // namespace cepheus::sim
