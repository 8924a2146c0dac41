// take() finds an answered frame free (AnsweredFrames) and adds others to `unpaid_`, by their cost.
// update_account() charges the sum to the budget after each unanswered frame and at the turn's end.
// If others send, the host waits until the budget allows more; if none does, its debt is forgiven.
#include "switch-emulator/live/datapath/unanswered_account.h"

#include <utility>

#include "wire/byte_order.h"
#include "wire/roce.h"

namespace cepheus::live {
namespace {

constexpr std::uint32_t kSmallestMtu = 256;
// Bytes that cost as much as a frame that is only forwarded. Switches read and check datagrams;
// only its receiver reads a RoCE frame's payload.
constexpr std::int64_t kDatagramBytesAtCost = 64, kRoceBytesAtCost = 2048;
// ... of a result: the switch has checked and added up as many, and copies them.
constexpr std::int64_t kResultBytesAtCost = 256;

wire::Ipv4 source_of(const wire::Frame& frame) {
  return wire::Ipv4(wire::load_be32(frame.bytes.data() + wire::kIpOffset + 12));
}
wire::Ipv4 destination_of(const wire::Frame& frame) {
  return wire::Ipv4(wire::load_be32(frame.bytes.data() + wire::kIpOffset + 16));
}

bool is_roce(const wire::Frame& frame) { return frame.icrc_state != wire::Icrc::kNone; }

std::int64_t cost_of(const wire::Frame& frame) {
  return 1 + frame.payload_len / (is_roce(frame) ? kRoceBytesAtCost : kDatagramBytesAtCost);
}

// Largest number of response packets that a RoCE frame requests.
std::uint32_t responses_requested(const wire::Frame& frame) {
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  constexpr std::size_t kDmaLength = wire::kExtensionOffset + 12;
  if (opcode != wire::Opcode::kRcReadRequest || frame.header_len < kDmaLength + 4) return 0;
  return wire::load_be32(frame.bytes.data() + kDmaLength) / kSmallestMtu + 1;
}

}  // namespace

// Frames that are not RoCE belong to no stream with answers.
bool UnansweredAccount::take(const wire::Frame& frame) {
  if (is_roce(frame) && answered_.take(destination_of(frame))) return false;
  unpaid_ += cost_of(frame);
  return true;
}

void UnansweredAccount::charge(const wire::Frame& frame) { unpaid_ += cost_of(frame); }

void UnansweredAccount::charge_result(const wire::Frame& frame) {
  unpaid_ += 1 + frame.payload_len / kResultBytesAtCost;
}

void UnansweredAccount::on_answer(const wire::Frame& frame) {
  if (is_roce(frame)) answered_.on_answer(source_of(frame), responses_requested(frame));
}

void UnansweredAccount::on_result(const wire::Frame& frame) {
  answered_.on_result(source_of(frame));
}

void UnansweredAccount::take_repeat(const wire::Frame& frame) {
  if (!answered_.take(source_of(frame))) charge_result(frame);
}

std::optional<wire::Instant> UnansweredAccount::update_account(wire::Instant now,
                                                               std::uint64_t refused,
                                                               bool others_send) {
  unpaid_ += static_cast<std::int64_t>(refused - std::exchange(refused_, refused));
  if (unpaid_ == 0) return std::nullopt;
  budget_.charge(now, std::exchange(unpaid_, 0));
  if (others_send) return budget_.resume(now);
  budget_.forgive(now);
  return std::nullopt;
}

}  // namespace cepheus::live
