// A member's memory has a window's slots for contributions, and as many for results. Each byte of a
// gathered block depends on its member, its place and the operation, so no other result is mistaken
// for it. Receives and contributions follow in lists, as in libmcast/reduction_lane.cc.
#include "fabric-sim/experiments/reduction_team.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "fabric-sim/core/group_program.h"
#include "fabric-sim/experiments/multicast_group.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kTeamInstance = 1;
constexpr std::uint16_t kTeamEpoch = 1;
constexpr std::uint32_t kTeamToken = 0x70CE;
constexpr std::uint16_t kTeamPort = 40000;
constexpr std::size_t kSlotBytes =
    std::size_t{ReductionTeam::kUsual.window} * ReductionTeam::kUsual.unit;

std::uint8_t byte_of(std::size_t member, std::size_t at, std::uint64_t operation) {
  return static_cast<std::uint8_t>(1 + (member * 31 + at * 7 + operation * 13) % 255);
}

}  // namespace

class ReductionTeam::Member final : public GroupProgram, public CompletionClient {
 public:
  Member(ReductionTeam& team, Host& host, std::size_t number)
      : GroupProgram(team.testbed_.simulator(), host,
                     {.qpn = create_qp(host, mcast::ReductionUnits::most_sends(kUsual.window),
                                       kUsual.window),
                      .control_port = kTeamPort,
                      .token = kTeamToken,
                      .reduction = team.reduction_}),
        team_(team),
        number_(number),
        memory_(std::make_unique_for_overwrite<std::uint8_t[]>(2 * kSlotBytes)),
        lkey_(open_memory(host, {memory_.get(), 2 * kSlotBytes}).lkey),
        long_lkey_(open_memory(host, team.testbed_.memory()).lkey),
        units_(kTeamEpoch, std::min<std::uint16_t>(kUsual.unit, path_mtu_of(host)), kUsual.window) {
    host.attach(qpn(), *this);
  }

  mcast_status_t status() const { return group().status(); }
  void begin() {
    using Place = mcast::ReductionUnits::Place;
    units_.start(team_.operations_, team_.kind_, team_.bytes_,
                 team_.is_long_ ? Place::kApart : Place::kSlots);
    pump();
  }

  void on_completion(Instant now, const rnic::Completion& completion) override {
    require_success(completion);
    if (completion.opcode != rnic::WcOpcode::kRecv) {
      units_.on_sends_done(static_cast<std::uint32_t>(completion.wr_id));
      return pump();
    }
    const auto part = units_.on_result(completion.imm, completion.byte_len);
    if (!part) throw std::runtime_error("a simulated reduction: " + part.error().text);
    if (team_.block_ > 0) check(*part);
    if (part->is_last) {
      --team_.waiting_;
      team_.ended_at_ = now;
    }
    pump();
  }

 private:
  static std::uint16_t path_mtu_of(Host& host) {
    return static_cast<std::uint16_t>(host.nic().config().max_mtu);
  }
  void pump() {
    if (units_.are_receives_due()) post_receives();
    while (send_list()) continue;
  }
  void post_receives() {
    while (const auto next = units_.next_receive()) {
      units_.on_receive_posted();
      const rnic::Sge piece =
          next->is_direct ? rnic::Sge{next->offset, next->bytes, long_lkey_}
                          : rnic::Sge{kSlotBytes + next->slot * kUsual.unit, kUsual.unit, lkey_};
      post_receive(host(), qpn(), piece);
    }
  }
  // The last contribution of a list is signaled. False: none may follow.
  bool send_list() {
    auto part = units_.next_contribution();
    if (!part) return false;
    for (std::uint32_t listed = 1; part; ++listed) {
      units_.on_contributed();
      const auto next = listed < units_.most_listed() ? units_.next_contribution() : std::nullopt;
      post_send(host(), qpn(), piece_of(*part),
                {.wr_id = part->send,
                 .op = rnic::SendOp::kSendImm,
                 .signaled = !next.has_value(),
                 .imm = part->imm});
      part = next;
    }
    return true;
  }
  rnic::Sge piece_of(const mcast::ReductionUnits::Part& part) {
    if (team_.is_long_) return {part.offset, part.bytes, long_lkey_};
    const std::size_t at = std::size_t{part.slot} * kUsual.unit;
    for (std::uint32_t i = 0; i < part.bytes; ++i) {
      const std::size_t offset = part.offset + i;
      const bool is_own = offset / team_.block_ == number_;
      memory_[at + i] = is_own ? byte_of(number_, offset, part.operation) : 0;
    }
    return {at, part.bytes, lkey_};
  }
  void check(const mcast::ReductionUnits::Part& part) const {
    const std::uint8_t* const result = &memory_[kSlotBytes + std::size_t{part.slot} * kUsual.unit];
    for (std::uint32_t i = 0; i < part.bytes; ++i) {
      const std::size_t offset = part.offset + i;
      if (result[i] != byte_of(offset / team_.block_, offset, part.operation)) {
        throw std::runtime_error("a simulated reduction has a wrong result");
      }
    }
  }
  void on_change(Instant) override {}

  ReductionTeam& team_;
  const std::size_t number_;
  const std::unique_ptr<std::uint8_t[]> memory_;
  const std::uint32_t lkey_, long_lkey_;
  mcast::ReductionUnits units_;
};

ReductionTeam::ReductionTeam(Testbed& testbed, const std::vector<std::size_t>& hosts,
                             const wire::MrpReduction& reduction)
    : testbed_(testbed), reduction_(reduction) {
  std::vector<wire::MrpMember> names;
  for (const std::size_t host : hosts) {
    Host& at = testbed.network().host(host);
    members_.push_back(std::make_unique<Member>(*this, at, members_.size()));
    names.push_back(members_.back()->member());
  }
  Member& leader = *members_.front();
  mrp::RegistrationConfig config;
  config.host = leader.member().host;
  config.instance = kTeamInstance;
  leader.lead(config, {kFirstGroup, kTeamEpoch}, names);
  Simulator& simulator = testbed.simulator();
  while (leader.status() == MCAST_INPROGRESS) simulator.run(simulator.now() + 1ms);
  if (leader.status() != MCAST_OK) throw std::runtime_error("a simulated group is not set up");
}

ReductionTeam::~ReductionTeam() = default;

wire::Duration ReductionTeam::gather(std::size_t block) {
  block_ = block;
  bytes_ = members_.size() * block;
  kind_ = bytes_ == 0 ? mcast::ReductionUnits::Kind{} : mcast::ReductionUnits::kOr;
  is_long_ = false;
  return run({});
}

wire::Duration ReductionTeam::sum(std::uint64_t bytes, wire::Duration late) {
  using arithmetic::Type;
  block_ = 0;
  bytes_ = bytes;
  const bool is_ordered = reduction_.kind == wire::MrpReduction::kOrdered;
  kind_ = {arithmetic::Operation::kSum, is_ordered ? Type::kDouble : Type::kInt64};
  is_long_ = true;
  return run(late);
}

wire::Duration ReductionTeam::run(wire::Duration late) {
  ++operations_;
  waiting_ = members_.size();
  Simulator& simulator = testbed_.simulator();
  const auto last = std::prev(members_.end());
  std::for_each(members_.begin(), last, [](const auto& member) { member->begin(); });
  if (late > wire::Duration{}) simulator.run(simulator.now() + late);
  const Instant begin = simulator.now();
  (*last)->begin();
  testbed_.run_until([this] { return waiting_ == 0; });
  return ended_at_ - begin;
}

wire::Duration time_of_gather(Testbed& testbed, const std::vector<std::size_t>& hosts,
                              std::size_t block) {
  ReductionTeam team(testbed, hosts);
  team.gather(block);
  return team.gather(block);
}

}  // namespace cepheus::sim
