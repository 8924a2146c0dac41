#include "fabric-sim/experiments/sender_group.h"

#include <stdexcept>

#include "controller/receiver_membership.h"
#include "controller/sender_registration.h"
#include "fabric-sim/experiments/connection.h"
#include "fabric-sim/experiments/message_ends.h"

namespace cepheus::sim {
namespace {

constexpr std::uint32_t kSenderInstance = 1;
constexpr std::uint32_t kReceiverToken = 0x70CE;

std::uint16_t control_port(std::uint32_t number) {
  return static_cast<std::uint16_t>(20000 + number % 10000);
}

}  // namespace

class SenderGroup::Receiver final : public DatagramClient {
 public:
  Receiver(Testbed& testbed, Host& host, std::uint16_t control_port)
      : sink_(testbed, host),
        control_port_(control_port),
        membership_({host.address(), sink_.qpn(), 0, control_port, kReceiverToken}) {
    host.listen(*this, control_port);
  }

  const mrp::MrpMember& name() const { return membership_.self(); }
  MessageSink& sink() { return sink_; }

  void on_datagram(Instant, wire::Ipv4, const wire::MrpMessage&) override {}
  void on_sender_group(Instant now, wire::Ipv4, const wire::SenderGroupMessage& message) override {
    if (membership_.on_message(now, message, out_) == mrp::ReceiverMembership::Task::kConnect) {
      connect(sink_.host(), sink_.qpn(), membership_.sender(), membership_.virtual_qpn(),
              membership_.start_psn(), kShortestTimeout);
      sink_.begin();
      membership_.connected(true, out_);
    }
    for (const wire::SenderGroupMessage& m : out_.of_sender_groups) {
      sink_.host().send_datagram(mrp::destination(m), m, control_port_);
    }
    out_.clear();
  }

 private:
  MessageSink sink_;
  const std::uint16_t control_port_;
  mrp::ReceiverMembership membership_;
  mrp::Outbox out_;
};

class SenderGroup::Sender final : public Actor, public DatagramClient {
 public:
  Sender(Testbed& testbed, Host& host, std::uint32_t number)
      : simulator_(testbed.simulator()),
        source_(testbed, host),
        config_(config_of(source_, number)),
        registration_(config_) {
    host.listen(*this, config_.control_port);
  }

  MessageSource& source() { return source_; }
  bool is_ready() const { return ready_at_ != wire::kNever; }
  Instant ready_at() const { return ready_at_; }
  void start(const std::vector<mrp::MrpMember>& receivers) {
    require(registration_.start(simulator_.now(), receivers, {}, out_));
    carry_out(simulator_.now());
  }

  void on_datagram(Instant, wire::Ipv4, const wire::MrpMessage&) override {}
  void on_sender_group(Instant now, wire::Ipv4 from,
                       const wire::SenderGroupMessage& message) override {
    registration_.on_message(now, from, message, out_);
    carry_out(now);
  }
  void on_event(Instant now, std::uint64_t) override {
    if (timer_at_ <= now) timer_at_ = wire::kNever;
    if (registration_.deadline() <= now) registration_.on_timer(now, out_);
    carry_out(now);
  }

 private:
  static mrp::SenderConfig config_of(const MessageSource& source, std::uint32_t number) {
    mrp::SenderConfig config;
    config.host = source.host().address();
    config.instance = kSenderInstance;
    config.control_port = control_port(number);
    config.qpn = source.qpn();
    config.virtual_qpn = wire::Qpn(wire::kFirstSenderGroupQpn + number);
    config.start = kFirstPsn;
    return config;
  }
  void carry_out(Instant now) {
    for (const wire::SenderGroupMessage& m : out_.of_sender_groups) {
      source_.host().send_datagram(mrp::destination(m), m, config_.control_port);
    }
    out_.clear();
    if (registration_.state() == mrp::SenderRegistration::State::kFailed) {
      throw std::runtime_error("a simulated sender group: " + registration_.error().text);
    }
    if (registration_.is_active() && !is_ready()) {
      ready_at_ = now;
      connect(source_.host(), source_.qpn(), registration_.alias(), registration_.virtual_qpn(),
              registration_.start_psn(), kShortestTimeout);
    }
    if (const Instant due = registration_.deadline(); due < timer_at_) {
      timer_at_ = due;
      simulator_.schedule(due, *this);
    }
  }

  Simulator& simulator_;
  MessageSource source_;
  const mrp::SenderConfig config_;
  mrp::SenderRegistration registration_;
  mrp::Outbox out_;
  Instant timer_at_ = wire::kNever;
  Instant ready_at_ = wire::kNever;
};

SenderGroup::SenderGroup(Testbed& testbed, std::size_t sender,
                         const std::vector<std::size_t>& receivers, std::uint32_t number)
    : sender_(std::make_unique<Sender>(testbed, testbed.network().host(sender), number)) {
  sender_->source().on_acknowledged([this](Instant now) { note_acknowledged(now); });
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    Host& host = testbed.network().host(receivers[i]);
    receivers_.push_back(std::make_unique<Receiver>(testbed, host, control_port(number)));
    receivers_.back()->sink().on_received([this, i](Instant now) { note_received(i, now); });
  }
}

SenderGroup::~SenderGroup() = default;

void SenderGroup::begin() {
  std::vector<mrp::MrpMember> names;
  for (const auto& receiver : receivers_) names.push_back(receiver->name());
  sender_->start(names);
}

bool SenderGroup::is_ready() const { return sender_->is_ready(); }
Instant SenderGroup::ready_at() const { return sender_->ready_at(); }
void SenderGroup::send(std::uint32_t bytes) { sender_->source().send(bytes); }

}  // namespace cepheus::sim
