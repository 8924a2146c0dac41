// All receives are posted before start(), one for each message. A connection keeps its messages'
// order, so a rank only counts the messages of each sender.
#include "fabric-sim/experiments/exchange_run.h"

#include <algorithm>
#include <map>

#include "fabric-sim/core/connection.h"

namespace cepheus::sim {

class ExchangeRun::Program final : public Actor, public CompletionClient {
 public:
  Program(ExchangeRun& run, Host& host, const std::vector<Exchange>& exchanges)
      : run_(run), host_(host), exchanges_(exchanges) {
    lkey_ = open_memory(host, run.testbed_.memory()).lkey;
  }

  const std::vector<Exchange>& exchanges() const { return exchanges_; }
  Host& host() { return host_; }
  rnic::Qpn make_qp(std::uint32_t sends, std::uint32_t receives) {
    const rnic::Qpn qpn = create_qp(host_, std::max(sends, 1u), std::max(receives, 1u));
    host_.attach(qpn, *this);
    return qpn;
  }
  void reach(Rank peer, rnic::Qpn qpn, std::uint32_t receives) {
    connections_[peer] = qpn;
    const auto bytes = static_cast<std::uint32_t>(run_.testbed_.memory().size());
    for (std::uint32_t i = 0; i < receives; ++i) post_receive(host_, qpn, {0, bytes, lkey_}, peer);
  }

  void on_completion(Instant, const rnic::Completion& completion) override {
    require_success(completion);
    if (completion.opcode != rnic::WcOpcode::kRecv) return;
    ++arrived_[completion.wr_id];
    go_on();
  }
  void on_event(Instant, std::uint64_t) override { go_on(); }
  void go_on() {
    for (; next_ < exchanges_.size(); ++next_, has_sent_ = false) {
      const Exchange& one = exchanges_[next_];
      if (one.to && !has_sent_ && !send(one)) return;
      if (!one.from) continue;
      std::size_t& arrived = arrived_[*one.from];
      if (arrived == 0) return;
      --arrived;
    }
    if (std::exchange(is_running_, false)) {
      --run_.running_;
      run_.ended_at_ = run_.testbed_.simulator().now();
    }
  }

 private:
  // False: the processor is not free yet.
  bool send(const Exchange& one) {
    Simulator& simulator = run_.testbed_.simulator();
    if (simulator.now() < free_at_) {
      simulator.schedule(free_at_, *this, 0);
      return false;
    }
    has_sent_ = true;
    free_at_ = simulator.now() + run_.post_;
    const auto bytes = static_cast<std::uint32_t>(one.bytes);
    post_send(host_, connections_.at(*one.to), {0, bytes, bytes == 0 ? 0 : lkey_},
              {.op = rnic::SendOp::kSend, .signaled = true});
    return true;
  }

  ExchangeRun& run_;
  Host& host_;
  const std::vector<Exchange> exchanges_;
  std::uint32_t lkey_ = 0;
  std::map<Rank, rnic::Qpn> connections_;
  std::map<Rank, std::size_t> arrived_;  // messages not taken yet, by sender
  std::size_t next_ = 0;
  bool has_sent_ = false, is_running_ = true;
  Instant free_at_{};
};

ExchangeRun::ExchangeRun(Testbed& testbed, const Exchanges& exchanges,
                         const std::vector<std::size_t>& hosts, wire::Duration post)
    : testbed_(testbed), post_(post), running_(exchanges.size()) {
  for (Rank r = 0; r < exchanges.size(); ++r) {
    Host& host = testbed.network().host(hosts[r]);
    programs_.push_back(std::make_unique<Program>(*this, host, exchanges[r]));
  }
  std::map<std::pair<Rank, Rank>, std::uint32_t> messages;  // from, to
  for (Rank r = 0; r < exchanges.size(); ++r) {
    for (const Exchange& one : exchanges[r]) {
      if (one.to) ++messages[{r, *one.to}];
    }
  }
  for (const auto& [pair, there] : messages) {
    const auto [a, b] = pair;
    const auto other = messages.find({b, a});
    if (other != messages.end() && b < a) continue;  // connected already
    const std::uint32_t back = other == messages.end() ? 0 : other->second;
    Program &one = *programs_[a], &two = *programs_[b];
    const rnic::Qpn first = one.make_qp(there, back), second = two.make_qp(back, there);
    connect(one.host(), first, {two.host().address(), second, kFirstPsn});
    connect(two.host(), second, {one.host().address(), first, kFirstPsn});
    one.reach(b, first, back);
    two.reach(a, second, there);
  }
}

ExchangeRun::~ExchangeRun() = default;

void ExchangeRun::start() {
  for (const auto& program : programs_) program->go_on();
}

wire::Duration time_of(Testbed& testbed, const Exchanges& exchanges,
                       const std::vector<std::size_t>& hosts, wire::Duration post) {
  ExchangeRun run(testbed, exchanges, hosts, post);
  const Instant begin = testbed.simulator().now();
  run.start();
  testbed.run_until([&] { return run.is_done(); });
  return run.ended_at() - begin;
}

}  // namespace cepheus::sim
