// All receives are posted before start(), one for each send to a rank. A rank's sends go in their
// order: each waits for its slices, for the processor, and for at_once if it is large. In rounds,
// each arrival lets all ranks look again, since a sender waits for its receiver, too. Sends
// complete with the NIC's acknowledgement; a failed one throws.
#include "fabric-sim/experiments/unicast_run.h"

#include <algorithm>
#include <map>

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {

constexpr std::uint64_t kSendFlag = std::uint64_t{1} << 63;

class UnicastRun::Program final : public Actor, public CompletionClient {
 public:
  Program(UnicastRun& run, Host& host, Rank rank)
      : run_(run), host_(host), sends_(run.schedule_.sends[rank]) {
    has_.assign(run.schedule_.slices.size(), rank == 0);
    lkey_ = open_memory(host, run.testbed_.memory()).lkey;
  }

  const std::vector<Send>& sends() const { return sends_; }
  Host& host() { return host_; }
  rnic::Qpn make_qp(std::size_t send_wrs, std::size_t receive_wrs) {
    const auto at_least_one = [](std::size_t n) {
      return static_cast<std::uint32_t>(std::max<std::size_t>(n, 1));
    };
    const rnic::Qpn qpn = create_qp(host_, at_least_one(send_wrs), at_least_one(receive_wrs));
    host_.attach(qpn, *this);
    return qpn;
  }
  void send_over(Rank to, rnic::Qpn qpn) { connections_[to] = qpn; }
  void expect(rnic::Qpn qpn, std::size_t slice) { post_receive(host_, qpn, sge_of(slice), slice); }

  void on_completion(Instant now, const rnic::Completion& completion) override {
    require_success(completion);
    if ((completion.wr_id & kSendFlag) != 0) {
      --under_way_[sends_[completion.wr_id & ~kSendFlag].to];
      return post();
    }
    --run_.receives_left_;
    run_.received_at_ = std::max(run_.received_at_, now + run_.cost_.receive);
    const auto at = now + run_.cost_.receive + run_.cost_.relay;
    if (at > now) return run_.testbed_.simulator().schedule(at, *this, completion.wr_id);
    take(completion.wr_id);
  }
  // Called when a received slice can be sent on, or the processor is free.
  void on_event(Instant, std::uint64_t what) override { what != kFree ? take(what) : post(); }
  void post() {
    Simulator& simulator = run_.testbed_.simulator();
    while (next_ < sends_.size() && may_go(sends_[next_]) && may_begin(sends_[next_])) {
      if (simulator.now() < free_at_) return simulator.schedule(free_at_, *this, kFree);
      free_at_ = simulator.now() + run_.cost_.post;
      post_one(next_++);
    }
  }

 private:
  static constexpr std::uint64_t kFree = kSendFlag;

  rnic::Sge sge_of(std::size_t slice) const {
    return {0, static_cast<std::uint32_t>(run_.schedule_.slices[slice]), lkey_};
  }
  bool is_small(const Send& send) const { return run_.schedule_.slices[send.slice] <= kEager; }
  void take(std::size_t slice) {
    has_[slice] = true;
    if (!run_.schedule_.is_in_rounds) return post();
    for (const auto& each : run_.programs_) each->post();
  }
  bool may_go(const Send& send) const {
    const bool is_expected =
        !send.receiver_has || run_.programs_[send.to]->has_[*send.receiver_has];
    return is_expected && has_[send.after] && has_[send.slice];
  }
  bool may_begin(const Send& send) {
    if (is_small(send)) return true;
    const auto others = std::ranges::count_if(
        under_way_, [&](const auto& to) { return to.first != send.to && to.second > 0; });
    return static_cast<std::size_t>(others) < run_.schedule_.at_once;
  }
  void post_one(std::size_t number) {
    const Send& send = sends_[number];
    ++under_way_[send.to];
    post_send(host_, connections_.at(send.to), sge_of(send.slice),
              {.wr_id = kSendFlag | number, .signaled = true});
  }

  UnicastRun& run_;
  Host& host_;
  const std::vector<Send>& sends_;
  std::uint32_t lkey_ = 0;
  std::vector<bool> has_;
  std::map<Rank, rnic::Qpn> connections_;
  std::map<Rank, std::size_t> under_way_;  // number of sends, by receiver
  std::size_t next_ = 0;
  Instant free_at_{};
};

UnicastRun::UnicastRun(Testbed& testbed, Schedule schedule, const std::vector<std::size_t>& hosts,
                       const HostCost& cost)
    : testbed_(testbed), schedule_(std::move(schedule)), cost_(cost) {
  for (Rank r = 0; r < schedule_.ranks(); ++r) {
    programs_.push_back(std::make_unique<Program>(*this, testbed.network().host(hosts[r]), r));
  }
  for (const auto& from : programs_) {
    std::map<Rank, std::vector<std::size_t>> by_rank;  // slices in their order of arrival
    for (const Send& send : from->sends()) by_rank[send.to].push_back(send.slice);
    for (const auto& [rank, slices] : by_rank) {
      Program& to = *programs_[rank];
      const rnic::Qpn source = from->make_qp(slices.size(), 0);
      const rnic::Qpn sink = to.make_qp(0, slices.size());
      connect(from->host(), source, {to.host().address(), sink, kFirstPsn});
      connect(to.host(), sink, {from->host().address(), source, kFirstPsn});
      from->send_over(rank, source);
      for (const std::size_t slice : slices) to.expect(sink, slice);
      receives_left_ += slices.size();
    }
  }
}

UnicastRun::~UnicastRun() = default;

void UnicastRun::start() {
  for (const auto& program : programs_) program->post();
}

wire::Duration time_of(Testbed& testbed, const Schedule& schedule,
                       const std::vector<std::size_t>& hosts, const HostCost& cost) {
  UnicastRun run(testbed, schedule, hosts, cost);
  const Instant begin = testbed.simulator().now();
  run.start();
  testbed.run_until([&] { return run.is_done(); });
  return run.received_at() - begin;
}

}  // namespace cepheus::sim
