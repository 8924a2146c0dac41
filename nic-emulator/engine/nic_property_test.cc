// Under all faults of a network every message arrives once, in order and unaltered, and no send
// completes earlier. Random runs; a failure prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "nic-emulator/engine/nic_profile.h"
#include "nic-emulator/engine/nic_testing.h"
#include "wire/ecn.h"

namespace cepheus::rnic::testing {
namespace {

constexpr int kRuns = 100;
constexpr int kMessages = 30;  // each way
constexpr std::size_t kSlot = Host::kMemory / (4 * kMessages);
constexpr std::uint8_t kTouched = 0xEE;
constexpr int kEventBudget = 200'000;

struct Message {
  SendOp op = SendOp::kSend;
  std::uint32_t length = 0;
  std::uint32_t imm = 0;
  std::uint64_t compare_add = 0;  // atomics
  std::uint64_t swap = 0;
  bool delivered = false;
  bool is_atomic() const { return op > SendOp::kRead; }
  bool has_imm() const { return op == SendOp::kSendImm || op == SendOp::kWriteImm; }
  bool takes_receive() const { return op < SendOp::kRead && op != SendOp::kWrite; }
  std::uint64_t applied_to(std::uint64_t word) const {
    if (op == SendOp::kFetchAdd) return word + compare_add;
    return word == compare_add ? swap : word;
  }
};

// One direction. `from` sends out of the first quarter of its memory into the second of `to`'s,
// reads `to`'s first quarter into its own third, and changes one word of `to`'s fourth by atomics.
struct Flow {
  Host& from;
  Host& to;
  std::vector<Message> messages;
  std::deque<std::size_t> receivable;  // messages that will take a receive, in order
  std::size_t posted = 0;
  std::size_t receives_posted = 0;
  std::size_t received = 0;
  std::size_t completed = 0;
  std::uint64_t word_posted = 0;     // the word after all atomics posted ...
  std::uint64_t word_completed = 0;  // ... and after those completed

  static std::size_t source(std::size_t i) { return i * kSlot; }
  static std::size_t target(std::size_t i) { return Host::kMemory / 4 + i * kSlot; }
  static std::size_t result(std::size_t i) { return Host::kMemory / 2 + i * kSlot; }
  static constexpr std::size_t kWord = Host::kMemory / 4 * 3;
};

class Scenario {
 public:
  explicit Scenario(std::uint64_t seed)
      : random_(seed),
        hosts_(options(), config()),
        flows_{Flow{hosts_.a, hosts_.b, {}, {}}, Flow{hosts_.b, hosts_.a, {}, {}}} {
    loss_ = static_cast<double>(pick(0, 4)) / 100;
    duplication_ = static_cast<double>(pick(0, 5)) / 100;
    damage_ = static_cast<double>(pick(0, 2)) / 100;
    jitter_us_ = pick(0, 1) * pick(0, 100);
    marks_ = static_cast<double>(pick(0, 3)) / 10;
    for (Flow& flow : flows_) {
      fill_pattern(std::span(flow.from.memory).first(Host::kMemory / 4), random_());
      flow.to.set_word(Flow::kWord, 0);
      for (int i = 0; i < kMessages; ++i) {
        Message m;
        m.op = static_cast<SendOp>(pick(0, 7));
        if (m.op == SendOp::kSendInvalidate) m.op = SendOp::kSend;  // always fails
        m.length = static_cast<std::uint32_t>(chance(0.3) ? pick(0, 64) : pick(0, kSlot));
        m.imm = static_cast<std::uint32_t>(random_());
        if (m.is_atomic()) choose_operands(flow, m);
        if (m.takes_receive()) flow.receivable.push_back(flow.messages.size());
        flow.messages.push_back(m);
      }
    }
  }

  void execute() {
    for (int budget = kEventBudget; budget > 0; --budget) {
      for (Flow& flow : flows_) advance_user(flow);
      for (Flow& flow : flows_) put_on_wire(flow.from, flow.to);
      if (finished()) return check_end();
      step();
      if (::testing::Test::HasFailure()) return;
    }
    FAIL() << "the run does not end";
  }

  std::uint64_t count(Counter c) const { return hosts_.a.count(c) + hosts_.b.count(c); }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
    return low + random_() % (high - low + 1);
  }
  // As a congested queue marks it. Unchanged if its sender is not ECN-capable.
  static Packet marked(const Packet& packet) {
    if (wire::ecn_of(packet.headers().ip.tos) == wire::Ecn::kNotCapable) return packet;
    return with_headers(packet, [](wire::RoceHeaders& h) { h.ip.tos |= wire::kEcnMask; });
  }
  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }

  QpOptions options() {
    QpOptions o;
    o.mtu = 256u << pick(0, 4);
    o.first_psn =
        Psn(static_cast<std::uint32_t>(chance(0.5) ? random_() : Psn::kMask - pick(0, 50)));
    o.back_psn = Psn(static_cast<std::uint32_t>(random_()));
    o.min_rnr_timer = static_cast<std::uint8_t>(pick(1, 10));
    o.shared = chance(0.3);
    o.max_rd_atomic = static_cast<std::uint8_t>(pick(1, kMaxRdAtomic));
    o.cap.max_send_wr = static_cast<std::uint32_t>(pick(1, 20));
    o.cap.max_recv_wr = static_cast<std::uint32_t>(pick(1, 20));
    return o;
  }
  NicConfig config() {
    NicConfig c;
    c.window_packets = static_cast<std::uint32_t>(pick(1, 128));
    c.cautious_window = static_cast<std::uint32_t>(pick(1, 128));
    c.ack_every = static_cast<std::uint32_t>(pick(1, 64));
    c.seed = random_();
    const NicProfile& profile = nic_profiles()[pick(0, nic_profiles().size() - 1)];
    if (chance(0.7) && profile.serves_groups()) profile.apply(c);
    if (chance(0.5)) {
      CongestionConfig congestion;
      congestion.link = {25'000'000'000};
      if (chance(0.5)) congestion.reaction = DcqcnParameters::hpcc(congestion.link);
      if (chance(0.5)) congestion.notification = Notification::kCeEcho;
      congestion.catch_up = microseconds(pick(0, 20));
      c.congestion = congestion;
    }
    return c;
  }

  void choose_operands(Flow& flow, Message& m) {
    m.length = 8;
    m.compare_add = chance(0.5) ? flow.word_posted : random_();  // swaps that succeed and that fail
    m.swap = random_();
    flow.word_posted = m.applied_to(flow.word_posted);
  }

  void advance_user(Flow& flow) {
    while (flow.posted < flow.messages.size() && post_message(flow)) ++flow.posted;
    // Receives are late at times: RNR.
    while (flow.receives_posted < flow.receivable.size() && chance(0.7) && post_receive(flow)) {
      ++flow.receives_posted;
    }
  }

  bool post_message(Flow& flow) {
    const Message& m = flow.messages[flow.posted];
    const std::uint32_t cut = static_cast<std::uint32_t>(pick(0, m.length));
    const bool fetch = m.op >= SendOp::kRead;
    const std::size_t at = fetch ? Flow::result(flow.posted) : Flow::source(flow.posted);
    const std::size_t remote = m.is_atomic()           ? Flow::kWord
                               : m.op == SendOp::kRead ? Flow::source(flow.posted)
                                                       : Flow::target(flow.posted);
    const Sge sges[] = {flow.from.piece(at, cut), flow.from.piece(at + cut, m.length - cut)};
    SendWr wr;
    wr.wr_id = flow.posted;
    wr.op = m.op;
    wr.signaled = true;
    wr.imm = m.imm;
    wr.fence = chance(0.2);
    wr.compare_add = m.compare_add;
    wr.swap = m.swap;
    wr.remote_address = flow.to.piece(remote, 0).address;
    wr.rkey = flow.to.keys.rkey;
    wr.sges = sges;
    return flow.from.post(wr).has_value();
  }

  bool post_receive(Flow& flow) {
    const std::size_t message = flow.receivable[flow.receives_posted];
    const Sge sge = flow.to.piece(Flow::target(message), kSlot);
    return flow.to.post(RecvWr{.wr_id = message, .sges = {&sge, 1}}).has_value();
  }

  void put_on_wire(Host& from, Host& to) {
    for (Packet& packet : from.transmit_all()) {
      const int copies = chance(loss_) ? 0 : chance(duplication_) ? 2 : 1;
      for (int i = 0; i < copies; ++i) {
        Packet copy = chance(marks_) ? marked(packet) : packet;
        // Beyond the BTH's reserved byte: the ICRC covers all of that.
        if (chance(damage_)) copy.bytes[pick(47, copy.bytes.size() - 1)] ^= 1 << pick(0, 7);
        const Instant arrival = hosts_.now + microseconds(5 + pick(0, jitter_us_));
        wire_.emplace(std::pair(arrival, sequence_++), std::pair(std::move(copy), &to));
      }
    }
  }

  // The next packet arrives or the next deadline passes.
  void step() {
    const Instant deadline = std::min(hosts_.a.nic.deadline(), hosts_.b.nic.deadline());
    if (!wire_.empty() && wire_.begin()->first.first <= deadline) {
      hosts_.now = std::max(hosts_.now, wire_.begin()->first.first);
      auto [packet, to] = std::move(wire_.begin()->second);
      wire_.erase(wire_.begin());
      to->deliver(packet);
    } else {
      ASSERT_TRUE(hosts_.pass_deadline()) << "no packet in flight, and work left";
    }
    for (Host* host : {&hosts_.a, &hosts_.b}) {
      for (const Completion& c : host->completions) check(*host, c);
      host->completions.clear();
    }
  }

  void check(Host& host, const Completion& c) {
    ASSERT_EQ(c.status, WcStatus::kSuccess) << to_string(c.status);
    const bool receive = c.cq == Host::kRecvCq;
    Flow& flow = flows_[(&host == &hosts_.b) == receive ? 0 : 1];
    const std::size_t i = c.wr_id;
    if (receive) {
      ASSERT_EQ(i, flow.receivable.at(flow.received++)) << "receives complete in order, once";
      const Message& m = flow.messages[i];
      EXPECT_EQ(c.byte_len, m.length);
      EXPECT_EQ(c.has_imm, m.has_imm());
      EXPECT_EQ(c.imm, c.has_imm ? m.imm : 0);
      take(flow, i);
    } else {
      ASSERT_EQ(i, flow.completed++) << "sends complete in order, once";
      EXPECT_EQ(c.byte_len, flow.messages[i].length);
      if (flow.messages[i].op >= SendOp::kRead) {
        take_result(flow, i);
      } else if (!flow.messages[i].takes_receive()) {
        take(flow, i);
      }
      EXPECT_TRUE(flow.messages[i].delivered) << "completed before its delivery";
    }
  }

  // The bytes are right. From now on they are the user's, and a late copy must not write them
  // again.
  void take(Flow& flow, std::size_t i) {
    const std::size_t n = flow.messages[i].length;
    const auto sent = std::span(flow.from.memory).subspan(Flow::source(i), n);
    touch(flow.messages[i], sent, std::span(flow.to.memory).subspan(Flow::target(i), n));
  }
  void take_result(Flow& flow, std::size_t i) {
    Message& m = flow.messages[i];
    const auto got = std::span(flow.from.memory).subspan(Flow::result(i), m.length);
    if (m.is_atomic()) {
      ASSERT_EQ(flow.from.word(Flow::result(i)), flow.word_completed) << "once, in order";
      flow.word_completed = m.applied_to(flow.word_completed);
      touch(m, got, got);
    } else {
      touch(m, std::span(flow.to.memory).subspan(Flow::source(i), m.length), got);
    }
  }
  void touch(Message& m, std::span<const std::uint8_t> sent, std::span<std::uint8_t> got) {
    ASSERT_TRUE(std::ranges::equal(sent, got));
    std::ranges::fill(got, kTouched);
    m.delivered = true;
  }

  bool finished() const {
    return wire_.empty() && std::ranges::all_of(flows_, [](const Flow& flow) {
             return flow.completed == flow.messages.size();
           });
  }

  void check_end() {
    for (const Flow& flow : flows_) {
      EXPECT_EQ(flow.received, flow.receivable.size());
      for (std::size_t i = 0; i < flow.messages.size(); ++i) {
        const Message& m = flow.messages[i];
        const bool fetch = m.op >= SendOp::kRead;
        const auto bytes = std::span(fetch ? flow.from.memory : flow.to.memory)
                               .subspan(fetch ? Flow::result(i) : Flow::target(i), m.length);
        EXPECT_EQ(std::ranges::count(bytes, kTouched), static_cast<long>(bytes.size()));
      }
      EXPECT_EQ(flow.to.word(Flow::kWord), flow.word_posted);
      EXPECT_EQ(flow.word_completed, flow.word_posted);
      EXPECT_FALSE(flow.from.nic.wants_to_transmit());
      EXPECT_EQ(flow.from.nic.deadline(), wire::kNever);
      const auto from = *flow.from.nic.query_qp(flow.from.qpn);
      EXPECT_EQ(from.sq_psn, flow.to.nic.query_qp(flow.to.qpn)->rq_psn);
    }
  }

  std::mt19937_64 random_;
  TwoHosts hosts_;
  std::array<Flow, 2> flows_;
  std::map<std::pair<Instant, std::uint64_t>, std::pair<Packet, Host*>> wire_;
  std::uint64_t sequence_ = 0;
  double loss_ = 0;
  double duplication_ = 0;
  double damage_ = 0;
  double marks_ = 0;
  std::uint64_t jitter_us_ = 0;
};

TEST(NicProperty, EveryMessageArrivesOnceInOrderUnalteredUnderAnyFault) {
  std::map<Counter, std::uint64_t> faults;
  for (const Counter c :
       {Counter::kTxRetransmitted, Counter::kRxDropIcrc, Counter::kRxDropStaleAck,
        Counter::kRxDuplicate, Counter::kRxOutOfSequence, Counter::kRxNakSequence,
        Counter::kRxRnrNak, Counter::kAckTimeouts, Counter::kRxMissingResult,
        Counter::kTxReadResponse, Counter::kTxAtomicAck, Counter::kTxCnp, Counter::kTxCeEcho,
        Counter::kRxCnp, Counter::kRxCeEcho, Counter::kPacedWaits}) {
    faults[c] = 0;
  }
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Scenario scenario(seed);
    scenario.execute();
    if (HasFailure()) return;
    for (auto& [counter, sum] : faults) sum += scenario.count(counter);
  }
  for (const auto& [counter, sum] : faults) EXPECT_GT(sum, 0u) << name(counter) << " never tried";
}

}  // namespace
}  // namespace cepheus::rnic::testing
