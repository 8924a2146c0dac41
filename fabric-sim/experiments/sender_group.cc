// Sender and receivers are group programs around the ends of message_ends.h. A receiver posts its
// receives when it connects, before it answers, so none is missing. A group that fails throws at
// once, with its reason. The virtual QPN and the control port come from `number`.
#include "fabric-sim/experiments/sender_group.h"

#include <algorithm>
#include <stdexcept>

#include "fabric-sim/core/group_program.h"
#include "fabric-sim/experiments/message_ends.h"

namespace cepheus::sim {
namespace {

constexpr std::uint32_t kSenderInstance = 1;

GroupProgram::Config program(rnic::Qpn qpn, std::uint32_t number) {
  return {.qpn = qpn,
          .control_port = static_cast<std::uint16_t>(20000 + number % 10000),
          .token = 0x70CE,
          .is_sender_group = true};
}

}  // namespace

class SenderGroup::Receiver final : public GroupProgram {
 public:
  Receiver(Testbed& testbed, std::unique_ptr<MessageSink> sink, std::uint32_t number)
      : GroupProgram(testbed.simulator(), sink->host(), program(sink->qpn(), number)),
        sink_(std::move(sink)) {}

  MessageSink& sink() { return *sink_; }

 private:
  void connect(const mcast::RemoteEnd& remote) override {
    GroupProgram::connect(remote);
    sink_->begin();
  }
  void on_change(Instant) override {}

  std::unique_ptr<MessageSink> sink_;
};

class SenderGroup::Sender final : public GroupProgram {
 public:
  Sender(Testbed& testbed, std::unique_ptr<MessageSource> source, std::uint32_t number)
      : GroupProgram(testbed.simulator(), source->host(), program(source->qpn(), number)),
        source_(std::move(source)),
        virtual_qpn_(wire::kFirstSenderGroupQpn + number) {}

  MessageSource& source() { return *source_; }
  bool is_ready() const { return ready_at_ != wire::kNever; }
  Instant ready_at() const { return ready_at_; }
  void start(std::vector<mrp::MrpMember> members) {
    members.push_back(member());
    mrp::SenderConfig config;
    config.host = member().host;
    config.instance = kSenderInstance;
    config.control_port = member().control_port;
    config.virtual_qpn = virtual_qpn_;
    lead_as_sender(config, members, {});
  }

 private:
  void on_change(Instant now) override {
    if (group().state() == MCAST_GROUP_FAILED) {
      throw std::runtime_error("a simulated sender group: " + group().reason());
    }
    if (is_active()) ready_at_ = std::min(ready_at_, now);
  }

  std::unique_ptr<MessageSource> source_;
  const wire::Qpn virtual_qpn_;
  Instant ready_at_ = wire::kNever;
};

SenderGroup::SenderGroup(Testbed& testbed, std::size_t sender,
                         const std::vector<std::size_t>& receivers, std::uint32_t number) {
  const auto host = [&](std::size_t at) -> Host& { return testbed.network().host(at); };
  sender_ = std::make_unique<Sender>(
      testbed, std::make_unique<MessageSource>(testbed, host(sender)), number);
  sender_->source().on_acknowledged([this](Instant now) { note_acknowledged(now); });
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    receivers_.push_back(std::make_unique<Receiver>(
        testbed, std::make_unique<MessageSink>(testbed, host(receivers[i])), number));
    receivers_.back()->sink().on_received([this, i](Instant now) { note_received(i, now); });
  }
}

SenderGroup::~SenderGroup() = default;

void SenderGroup::begin() {
  std::vector<mrp::MrpMember> names;
  for (const auto& receiver : receivers_) names.push_back(receiver->member());
  sender_->start(std::move(names));
}

bool SenderGroup::is_ready() const { return sender_->is_ready(); }
Instant SenderGroup::ready_at() const { return sender_->ready_at(); }
void SenderGroup::send(std::uint32_t bytes) { sender_->source().send(bytes); }

}  // namespace cepheus::sim
