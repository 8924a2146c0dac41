// Attacks by a member of a reduction group.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

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

// A reduction group of its own alone, with the largest units and window: each unit is complete at
// once. It sets the group up first, and again at intervals: the group may be gone.
class OwnReduction : public Flood {
 public:
  explicit OwnReduction(const Scenario& scenario)
      : Flood(scenario),
        data_(roce_to(kGroup, Opcode::kRcSendOnlyImm, wire::kVirtualQpn)),
        answer_(roce_to(kGroup, Opcode::kRcAcknowledge, wire::kVirtualQpn)),
        payload_(kLarge) {
    message_.header.epoch = kEpoch;
    message_.header.mcst_id = kGroup;
    message_.header.instance = 77;
    message_.add({port_->identity().address, Qpn(0x77)});
  }

 protected:
  static constexpr std::uint32_t kWindow = MrpReduction::kMostWindow;

  virtual bool make_packet(Frame& frame) = 0;

  static wire::ReductionImm imm_of(std::uint32_t unit) {
    return {static_cast<std::uint8_t>(wire::ReductionOp::kOr), 0, kEpoch,
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
  static constexpr McstId kGroup{198, 18, 203, 1};
  static constexpr std::uint16_t kEpoch = 1;
  static constexpr std::uint32_t kBetweenSetUps = 1 << 20;

  bool make(Frame& frame) final {
    const std::uint32_t now = next_++ % kBetweenSetUps;
    return now < 2 ? set_up(frame, now == 0) : make_packet(frame);
  }
  bool set_up(Frame& frame, bool begins) {
    message_.header.type = begins ? MrpType::kRegister : MrpType::kActivate;
    message_.header.flags = begins ? wire::MrpHeader::kLossEnds : 0;  // members beside it
    message_.reduction.reset();
    if (begins) message_.reduction = MrpReduction{MrpReduction::kGather, kLarge, kWindow};
    return make_registration(frame, message_);
  }
  static wire::Psn psn_of(std::uint32_t unit) {
    return wire::group_start_psn(kGroup, kEpoch) + static_cast<std::int32_t>(unit & 0xFF'FFFF);
  }

  wire::MrpMessage message_;
  wire::RoceHeaders data_, answer_;
  const std::vector<std::uint8_t> payload_;
  std::uint32_t next_ = 0;
};

// Results are never acknowledged. Between good contributions there are ones beyond its credit, of
// other epochs, operations and lengths.
class ReductionFlood final : public OwnReduction {
 public:
  using OwnReduction::OwnReduction;

 private:
  bool make_packet(Frame& frame) override {
    const std::uint32_t kind = next_++ % 8;
    const std::uint32_t unit = kind == 0 ? unit_ + 1000 : unit_++;
    wire::ReductionImm imm = imm_of(unit);
    if (kind == 1) ++imm.epoch;
    if (kind == 2) imm.operation = 9;
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

}  // namespace cepheus::hostile
