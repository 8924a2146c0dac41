#include "fabric-sim/experiments/multicast_group.h"

#include <algorithm>
#include <stdexcept>

#include "fabric-sim/experiments/connection.h"
#include "wire/announcement.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kInstance = 1;
constexpr std::uint16_t kEpoch = 1;
constexpr std::uint32_t kToken = 0x70CE;
constexpr std::uint8_t kGroupTimeout = 7;  // 0.5 ms

mrp::RegistrationConfig config_of(const Host& host) {
  mrp::RegistrationConfig config;
  config.host = host.address();
  config.instance = kInstance;
  return config;
}

}  // namespace

class MulticastGroup::Member final : public Actor, public CompletionClient, public DatagramClient {
 public:
  Member(MulticastGroup& group, Host& host, wire::McstId id, bool leads)
      : group_(group),
        host_(host),
        control_port_(static_cast<std::uint16_t>(40000 + id.value() % 10000)),
        membership_({}) {
    qpn_ = create_qp(host, 2 * kStreamed);  // with their announcements
    lkey_ = require(host.nic().register_memory(1, group.memory_.data(), group.memory_.size(), 0,
                                               rnic::kLocalWrite))
                .lkey;
    membership_ = mrp::Membership(name());
    if (leads) {
      registration_ = std::make_unique<mrp::Registration>(config_of(host), id, kEpoch);
      membership_.lead(id, kEpoch, kInstance);
      connect();
    }
    host.attach(qpn_, *this);
    host.listen(*this, control_port_);
  }

  mrp::MrpMember name() const { return {host_.address(), qpn_, 0, control_port_, kToken}; }
  mrp::Registration* registration() { return registration_.get(); }
  void start(const std::vector<mrp::MrpMember>& members) {
    require(registration_->start(group_.simulator_.now(), members, out_));
    say();
  }
  void post_receive() {
    const rnic::Sge sge{0, static_cast<std::uint32_t>(group_.memory_.size()), lkey_};
    rnic::RecvWr wr;
    wr.sges = {&sge, 1};
    require(host_.post_recv(qpn_, wr));
  }
  void post_send(std::uint32_t bytes) {
    const rnic::Sge sge{0, bytes, lkey_};
    rnic::SendWr wr;
    wr.wr_id = 1;
    wr.op = rnic::SendOp::kSendImm;
    wr.signaled = true;
    if (bytes > 0) wr.sges = {&sge, 1};
    require(host_.post_send(qpn_, wr));
  }

  void accept_writes(std::uint32_t key) {
    require(host_.nic().register_memory_as(key, 1, group_.memory_.data(), group_.memory_.size(), 0,
                                           rnic::kLocalWrite | rnic::kRemoteWrite));
  }
  wire::AnnouncedTarget open_memory() {
    const std::size_t bytes = group_.memory_.size();
    const auto keys = require(host_.nic().register_memory(1, group_.memory_.data(), bytes, 0,
                                                          rnic::kLocalWrite | rnic::kRemoteWrite));
    return {host_.address(), keys.rkey, 0, bytes};
  }
  void keep_announcement(std::vector<std::uint8_t>& announcement) {
    announcement_key_ =
        require(host_.nic().register_memory(1, announcement.data(), announcement.size(), 0, 0))
            .lkey;
  }
  void post_announcement(std::size_t size) {
    const rnic::Sge sge{0, static_cast<std::uint32_t>(size), announcement_key_};
    rnic::SendWr wr;
    wr.op = rnic::SendOp::kWrite;
    wr.rkey = wire::Announcement::kKey;
    wr.sges = {&sge, 1};
    require(host_.post_send(qpn_, wr));
  }
  void post_write(std::uint32_t bytes) {
    const rnic::Sge sge{0, bytes, lkey_};
    rnic::SendWr wr;
    wr.wr_id = kWrite;
    wr.op = rnic::SendOp::kWrite;
    wr.signaled = true;
    wr.rkey = group_.key_;
    wr.sges = {&sge, 1};
    require(host_.post_send(qpn_, wr));
  }

  void on_datagram(Instant now, wire::Ipv4 from, const wire::MrpMessage& message) override {
    if (registration_) registration_->on_message(now, from, message, out_);
    const bool is_register = message.header.type == wire::MrpType::kRegister;
    if (!registration_ || is_register) {
      const auto task = membership_.on_message(now, from, message, out_);
      if (task == mrp::Membership::Task::kConnect) {
        connect();
        membership_.connected(now, true, out_);
      }
    }
    say();
  }
  void on_event(Instant now, std::uint64_t) override {
    if (timer_at_ <= now) timer_at_ = wire::kNever;
    if (registration_->deadline() <= now) registration_->on_timer(now, out_);
    say();
  }
  void on_completion(Instant now, const rnic::Completion& completion) override {
    if (completion.status != rnic::WcStatus::kSuccess) {
      throw std::runtime_error("a simulated work request ended with " +
                               std::string(rnic::to_string(completion.status)));
    }
    if (completion.wr_id == kWrite) return group_.written_(now);
    const bool is_source = completion.wr_id == 1;
    if (streamed_bytes_ != 0) return on_streamed(is_source);
    group_.note(now, is_source);
    if (!is_source) on_received();
  }
  // Receives are posted again as they complete, so that none is ever missing; so are sends, which are
  // no more.
  void stream(std::uint32_t bytes, bool sends) {
    streamed_bytes_ = bytes;
    for (std::uint32_t i = 0; i < kStreamed; ++i) sends ? post_send(bytes) : post_receive();
  }
  // Receives this many messages of the others, and sends its own when it has so many.
  void join_turns(std::size_t messages, std::size_t before_own, std::uint32_t bytes) {
    received_ = 0;
    expected_ = messages;
    own_after_ = before_own;
    own_bytes_ = bytes;
    for (std::size_t i = 0; i < std::min(kReceives, messages); ++i) post_receive();
    if (own_after_ == 0) post_send(bytes);
  }

 private:
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
  void connect() {
    const wire::Psn start = wire::group_start_psn(membership_.id(), kEpoch);
    sim::connect(host_, qpn_, membership_.id(), wire::kVirtualQpn, start, kGroupTimeout);
  }
  void say() {
    for (const wire::MrpMessage& m : out_.messages) host_.send_datagram(m, control_port_);
    out_.clear();
    if (!registration_) return;
    if (registration_->state() == mrp::Registration::State::kActive) {
      group_.ready_at_ = std::min(group_.ready_at_, group_.simulator_.now());
    }
    if (const Instant due = registration_->deadline(); due < timer_at_) {
      timer_at_ = due;
      group_.simulator_.schedule(due, *this);
    }
  }

  MulticastGroup& group_;
  Host& host_;
  const std::uint16_t control_port_;
  rnic::Qpn qpn_;
  std::uint32_t lkey_ = 0, announcement_key_ = 0;
  mrp::Membership membership_;
  std::unique_ptr<mrp::Registration> registration_;
  mrp::Outbox out_;
  Instant timer_at_ = wire::kNever;
  // Where members take turns:
  std::size_t received_ = 0, expected_ = 0;
  std::size_t own_after_ = ~std::size_t{0};
  std::uint32_t own_bytes_ = 0;
  std::uint32_t streamed_bytes_ = 0;
};

MulticastGroup::MulticastGroup(Simulator& simulator, Network& network, wire::McstId id,
                               const std::vector<std::size_t>& hosts,
                               std::span<std::uint8_t> memory)
    : simulator_(simulator), memory_(memory) {
  for (const std::size_t host : hosts) {
    members_.push_back(std::make_unique<Member>(*this, network.host(host), id, members_.empty()));
  }
}

MulticastGroup::~MulticastGroup() = default;

bool MulticastGroup::set_up() {
  std::vector<mrp::MrpMember> names;
  for (const auto& member : members_) names.push_back(member->name());
  mrp::Registration& registration = *members_.front()->registration();
  members_.front()->start(names);
  using State = mrp::Registration::State;
  while (registration.state() == State::kRegistering ||
         registration.state() == State::kActivating) {
    simulator_.run(simulator_.now() + 1ms);
  }
  return registration.state() == State::kActive;
}

void MulticastGroup::send(std::size_t member, std::uint32_t bytes) {
  waiting_ = members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != member) members_[i]->post_receive();
  }
  members_[member]->post_send(bytes);
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
  waiting_ = n * n;  // n - 1 receive each message, its source completes it
  for (std::size_t i = n; i-- > 0;) members_[i]->join_turns(n - 1, i, bytes);
}

}  // namespace cepheus::sim
