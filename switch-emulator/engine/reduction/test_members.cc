#include "switch-emulator/engine/reduction/test_members.h"

#include <gtest/gtest.h>

#include "wire/icrc.h"
#include "wire/reduction.h"

namespace cepheus::fabric {

TestMembers::TestMembers(TestNetwork& net, std::size_t members, std::uint16_t window,
                         std::size_t bytes)
    : net_(net), bytes_(bytes), window_(window), members_(members) {
  net.reduction = wire::MrpReduction{wire::MrpReduction::kValues, 4096, window};
  net.set_up_group();
}

// Its own block, and zeros.
Bytes TestMembers::contribution(std::size_t member, Unit unit) const {
  Bytes data(bytes_, 0);
  for (std::size_t i = member; i < data.size(); i += members_.size()) {
    data[i] = static_cast<std::uint8_t>(unit * 7 + i + 1);
  }
  return data;
}

Bytes TestMembers::expected(Unit unit) const {
  Bytes data(bytes_, 0);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::uint8_t>(unit * 7 + i + 1);
  return data;
}

void TestMembers::send(std::size_t member, Unit unit, std::uint8_t what, const Bytes& data) {
  auto h = net_.headers_from(member, wire::Opcode::kRcSendOnlyImm, static_cast<std::int64_t>(unit));
  h.imm.value =
      wire::ReductionImm{static_cast<std::uint8_t>(what >> 4),
                         static_cast<std::uint8_t>(what & 0xF),
                         static_cast<std::uint8_t>(net_.epoch), static_cast<std::uint16_t>(unit)}
          .value();
  Bytes padded = data;
  while (padded.size() % 4 != 0) padded.push_back(0xEE);
  h.bth.pad_count = static_cast<std::uint8_t>(padded.size() - data.size());
  h.bth.ack_request = true;
  Frame frame;
  h.emit(frame, padded.size());
  frame.set_external_payload(padded, wire::kNoBuffer);
  wire::seal_icrc(frame);
  if (lose()) return;
  net_.inject(member, frame);
  if (repeat()) net_.inject(member, frame);
}

bool TestMembers::contribute(std::size_t member) {
  Member& m = members_[member];
  if (m.contributed >= m.results + window_) return false;
  const Unit unit = m.contributed++;
  send(member, unit, bytes_ == 0 ? 0 : 0x10, contribution(member, unit));
  return true;
}

void TestMembers::send_again(std::size_t member) {
  const Member& m = members_[member];
  for (Unit unit = m.acked; unit < m.contributed; ++unit) {
    send(member, unit, bytes_ == 0 ? 0 : 0x10, contribution(member, unit));
  }
}

void TestMembers::time_out(std::size_t member) { send_again(member); }

void TestMembers::receive(std::size_t member) {
  for (auto frames = net_.frames(member); !frames.empty(); frames = net_.frames(member)) {
    net_.inbox(member);
    shuffle(frames);
    for (const auto& bytes : frames) {
      if (!lose()) take(member, *Frame::from_bytes(bytes));
    }
  }
}

void TestMembers::receive_all() {
  for (std::size_t member = 0; member < members_.size(); ++member) receive(member);
}

void TestMembers::answer(std::size_t member, wire::AckKind kind, std::uint8_t value) {
  if (lose()) return;
  const Member& m = members_[member];
  const auto psn = static_cast<std::int64_t>(m.results) - (kind == wire::AckKind::kAck ? 1 : 0);
  net_.feedback(member, psn, kind, value);
}

void TestMembers::take(std::size_t member, const Frame& frame) {
  const auto headers = wire::RoceHeaders::parse(frame);
  if (!headers) return;  // registration
  ASSERT_EQ(headers->bth.destination_qp, TestNetwork::qpn(member));
  Member& m = members_[member];
  if (headers->bth.opcode != wire::Opcode::kRcAcknowledge) {
    const auto payload = frame.payload();
    Bytes data(payload.begin(), payload.end());
    data.resize(data.size() - headers->bth.pad_count);
    return take_result(member, *headers, data);
  }
  const bool is_ack = headers->aeth.kind == wire::AckKind::kAck;
  const std::int64_t end = unit_at(net_.start_psn(), m.acked, headers->bth.psn) + (is_ack ? 1 : 0);
  ASSERT_LE(end, static_cast<std::int64_t>(m.contributed)) << "an answer to what was not sent";
  ASSERT_FALSE(headers->aeth.is_fatal_nak());
  if (end > static_cast<std::int64_t>(m.acked)) m.acked = static_cast<Unit>(end);
  if (headers->aeth.is_sequence_nak() && end == static_cast<std::int64_t>(m.acked)) {
    send_again(member);
  }
}

void TestMembers::take_result(std::size_t member, const wire::RoceHeaders& headers,
                              const Bytes& data) {
  Member& m = members_[member];
  const std::int64_t at = unit_at(net_.start_psn(), m.results, headers.bth.psn);
  if (at > static_cast<std::int64_t>(m.results)) {
    if (!std::exchange(m.has_requested, true)) answer(member, wire::AckKind::kNak, 0);
    return;
  }
  if (at == static_cast<std::int64_t>(m.results)) {
    if (is_busy()) {
      m.has_requested = true;  // a NAK would end the pause
      return answer(member, wire::AckKind::kRnrNak, 12);
    }
    ASSERT_LT(m.results, m.contributed) << "a result without the member's own contribution";
    ASSERT_EQ(data, expected(m.results)) << "unit " << m.results << " at member " << member;
    ASSERT_EQ(wire::ReductionImm::from(headers.imm.value).unit,
              static_cast<std::uint16_t>(m.results));
    ++m.results;
    m.has_requested = false;
  }
  answer(member, wire::AckKind::kAck, wire::Aeth::kNoCreditLimit);
}

void TestMembers::jump(Unit units) {
  for (std::size_t s = 0; s < net_.switch_count(); ++s) {
    ASSERT_TRUE(net_.sw(s).jump(TestNetwork::kGroup, units)) << s;
  }
  for (Member& m : members_) {
    m.contributed += units;
    m.acked = m.results = m.contributed;
  }
}

}  // namespace cepheus::fabric
