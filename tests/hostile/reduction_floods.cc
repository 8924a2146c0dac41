// Attacks by a member of a reduction group.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "arithmetic/operation.h"
#include "tests/hostile/flood.h"
#include "tests/hostile/floods.h"
#include "wire/reduction.h"

namespace cepheus::hostile {
namespace {

using wire::Aeth;
using wire::Frame;
using wire::McstId;
using wire::MrpReduction;
using wire::MrpType;
using wire::Opcode;
using wire::Qpn;

// A reduction group of its own, with the largest units and window. Alone in it, it completes each
// unit at once. It ends the last attack's group, and sets its own up, and again at intervals: the
// group may be gone.
class OwnReduction : public Flood {
 public:
  explicit OwnReduction(const Scenario& scenario) : OwnReduction(scenario, alone_.next()) {}
  OwnReduction(const Scenario& scenario, McstId group)
      : Flood(scenario),
        group_(group),
        data_(roce_to(group_, Opcode::kRcSendOnlyImm, wire::kVirtualQpn)),
        answer_(roce_to(group_, Opcode::kRcAcknowledge, wire::kVirtualQpn)),
        payload_(kLarge) {
    message_.header.epoch = kEpoch;
    message_.header.instance = 77;
    message_.add({port_->identity().address, kQpn});
  }

 protected:
  static constexpr Qpn kQpn{0x77};
  static constexpr std::uint32_t kWindow = MrpReduction::kMostWindow;

  virtual bool make_packet(Frame& frame) = 0;

  // Adds another member. Of two, the one with the lower address leads.
  void add_member(wire::Ipv4 address) {
    message_.add({address, kQpn});
    leads_ = port_->identity().address.value() < address.value();
    ++others_;
  }
  // The unit of a result that this host has received; none: `frame` is none.
  std::optional<std::uint32_t> unit_of_result(const Frame& frame) const {
    const auto headers = wire::RoceHeaders::parse(frame);
    if (!headers || headers->bth.opcode != Opcode::kRcSendOnlyImm) return std::nullopt;
    if (headers->ip.source != group_) return std::nullopt;
    return static_cast<std::uint32_t>(distance(psn_of(0), headers->bth.psn));
  }
  static wire::ReductionImm imm_of(std::uint32_t unit) {
    return {static_cast<std::uint8_t>(arithmetic::Operation::kBitOr), 0, kEpoch,
            static_cast<std::uint16_t>(unit)};
  }
  bool contribute(Frame& frame, std::uint32_t unit, wire::ReductionImm imm, std::size_t bytes) {
    data_.imm.value = imm.value();
    data_.bth.psn = psn_of(unit);
    data_.bth.ack_request = true;
    data_.emit(frame, bytes);
    return set_payload(frame, std::span(payload_).first(bytes));
  }
  bool answer(Frame& frame, std::uint32_t unit, Aeth aeth) {
    answer_.bth.psn = psn_of(unit);
    answer_.aeth = aeth;
    answer_.emit(frame, 0);
    frame.payload_len = 0;
    return true;
  }

 private:
  inline static FreshGroups alone_{McstId(198, 19, 0, 0)};
  static constexpr std::uint16_t kEpoch = 1;
  static constexpr std::uint32_t kBetweenSetUps = 1 << 20;

  bool make(Frame& frame) final {
    const std::uint32_t now = next_++ % kBetweenSetUps;
    return leads_ && now < 3 ? set_up(frame, now) : make_packet(frame);
  }
  bool set_up(Frame& frame, std::uint32_t step) {
    constexpr std::array kSteps{MrpType::kUnregister, MrpType::kRegister, MrpType::kActivate};
    const bool begins = step == 1;
    message_.header.type = kSteps[step];
    message_.header.mcst_id = step == 0 ? McstId(group_.value() - 1) : group_;
    message_.header.flags = begins ? wire::MrpHeader::kLossEnds : others_;
    message_.reduction.reset();
    if (begins) message_.reduction = MrpReduction{MrpReduction::kValues, kLarge, kWindow};
    return make_registration(frame, message_);
  }
  wire::Psn psn_of(std::uint32_t unit) const {
    return wire::group_start_psn(group_, kEpoch) + static_cast<std::int32_t>(unit & 0xFF'FFFF);
  }

  const McstId group_;
  wire::MrpMessage message_;
  wire::RoceHeaders data_, answer_;
  const std::vector<std::uint8_t> payload_;
  std::uint32_t next_ = 0;
  std::uint16_t others_ = 0;
  bool leads_ = true;
};

// Results are never acknowledged. Between good contributions there are ones beyond its credit, of
// other epochs and lengths, and ones that no switch serves.
class ReductionFlood final : public OwnReduction {
 public:
  using OwnReduction::OwnReduction;

 private:
  // An unknown operation; a bitwise one of doubles; a sum of doubles, which depends on their pairs; an
  // unknown type; a barrier with a type.
  static constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 5> kRefused{
      {{0xB, 0}, {1, 9}, {9, 9}, {9, 0xA}, {0, 9}}};
  bool make_packet(Frame& frame) override {
    const std::uint32_t kind = next_++ % 8;
    const std::uint32_t unit = kind == 0 ? unit_ + 1000 : unit_++;
    wire::ReductionImm imm = imm_of(unit);
    if (kind == 1) ++imm.epoch;
    if (kind == 2) std::tie(imm.operation, imm.type) = kRefused[next_ / 8 % kRefused.size()];
    if (kind == 1 || kind == 2) --unit_;
    return contribute(frame, unit, imm, kind == 3 ? kLarge : 4 * kind);
  }

  std::uint32_t next_ = 0, unit_ = 0;
};

// A window of the longest contributions, then an answer for each of their results.
class WindowAndAnswers : public OwnReduction {
 public:
  using OwnReduction::OwnReduction;

 protected:
  // Answer `number` to the units from `first` on, which all have results.
  virtual bool make_answer(Frame& frame, std::uint32_t first, std::uint32_t number) = 0;

 private:
  bool make_packet(Frame& frame) override {
    const std::uint32_t at = next_ % (2 * kWindow);
    const std::uint32_t first = next_++ / (2 * kWindow) * kWindow;
    if (at >= kWindow) return make_answer(frame, first, at - kWindow);
    return contribute(frame, first + at, imm_of(first + at), kLarge);
  }

  std::uint32_t next_ = 0;
};

// Requests the results of its window again, each time from the next one on.
class ReductionNaks final : public WindowAndAnswers {
 public:
  using WindowAndAnswers::WindowAndAnswers;

 private:
  bool make_answer(Frame& frame, std::uint32_t first, std::uint32_t number) override {
    return answer(frame, first + number, Aeth::nak(wire::NakCode::kSequenceError));
  }
};

// Wants all results of its window again after 10 us, without end.
class ReductionRnrs final : public WindowAndAnswers {
 public:
  using WindowAndAnswers::WindowAndAnswers;

 private:
  static constexpr std::uint8_t kShortest = 1;
  bool make_answer(Frame& frame, std::uint32_t first, std::uint32_t) override {
    return answer(frame, first, {wire::AckKind::kRnrNak, kShortest});
  }
};

// One contribution again and again, which the switch acknowledges each time.
class ReductionRepeats final : public OwnReduction {
 public:
  using OwnReduction::OwnReduction;

 private:
  bool make_packet(Frame& frame) override { return contribute(frame, 0, imm_of(0), kLarge); }
};

// Two hosts that contribute as fast as results come, and acknowledge nothing: each contribution
// shows that a result has come.
class ReductionPair : public OwnReduction {
 public:
  explicit ReductionPair(const Scenario& scenario) : OwnReduction(scenario, together_.next()) {
    add_member(scenario.friendly);
  }

 protected:
  bool make_packet(Frame& frame) override {
    if (unit_ < results_ + kWindow) {
      return contribute(frame, unit_, imm_of(unit_), kLarge) && ++unit_ != 0;
    }
    if (++idle_ % kIdleSteps == 0) unit_ = results_;  // the group may have come later, or a loss
    return false;
  }
  std::uint32_t results() const { return results_; }

 private:
  static constexpr std::uint32_t kIdleSteps = 1 << 14;  // steps
  // Both hosts start such attacks together, so they choose the same group.
  inline static FreshGroups together_{McstId(198, 19, 16, 0)};

  void on_received(const Frame& frame) override {
    const auto unit = unit_of_result(frame);
    if (unit && *unit >= results_ && *unit < unit_) results_ = *unit + 1;
  }

  std::uint32_t unit_ = 0, results_ = 0, idle_ = 0;
};

// Requests each result again.
class ReductionPairNaks final : public ReductionPair {
 public:
  using ReductionPair::ReductionPair;

 private:
  bool make_packet(Frame& frame) override {
    if (requested_ < results()) {
      return answer(frame, requested_++, Aeth::nak(wire::NakCode::kSequenceError));
    }
    return ReductionPair::make_packet(frame);
  }

  std::uint32_t requested_ = 0;
};

}  // namespace

Made flood_own_reduction(const Scenario& scenario) {
  return std::make_unique<ReductionFlood>(scenario);
}

Made request_results_by_nak(const Scenario& scenario) {
  return std::make_unique<ReductionNaks>(scenario);
}

Made request_results_by_rnr(const Scenario& scenario) {
  return std::make_unique<ReductionRnrs>(scenario);
}

Made repeat_a_contribution(const Scenario& scenario) {
  return std::make_unique<ReductionRepeats>(scenario);
}

Made stream_by_a_reduction(const Scenario& scenario) {
  return std::make_unique<ReductionPair>(scenario);
}

Made stream_results_twice(const Scenario& scenario) {
  return std::make_unique<ReductionPairNaks>(scenario);
}

}  // namespace cepheus::hostile
