// Data has priority 3 in pause frames; other priorities are ignored. The headroom counts the cable
// both ways, and the largest frame and the pause frame at this port's rate. Two more frames and 4
// ns for rounding are added. A pause that is repeated extends the present one and is not counted
// again. Source: IEEE 802.1Qbb.
#include "net/pfc.h"

namespace cepheus::net {
namespace {

constexpr std::size_t kDataPriority = 3;  // number in pause frames
constexpr wire::Bytes kPauseFrame = wire::Ethernet::kSize + wire::PauseFrame::kPayload;

wire::Bytes bytes_in(wire::BitRate rate, wire::Duration time) {
  const auto work = static_cast<unsigned __int128>(rate.bits_per_second) *
                    static_cast<std::uint64_t>(time.count());
  return static_cast<wire::Bytes>((work + kBitNanoseconds - 1) / kBitNanoseconds);
}

}  // namespace

wire::Bytes headroom_for(const LinkConfig& in, const LinkConfig& out, wire::Bytes largest_frame) {
  const wire::Duration until_received =
      in.delay + out.delay + out.rate.time_for(largest_frame + kPauseFrame);
  constexpr wire::Duration kRounding{4};  // of four sums, each less than 1 ns off
  return bytes_in(in.rate, until_received + kRounding) + 2 * largest_frame;
}

void emit_pause(wire::Frame& frame, wire::Mac source, bool pause) {
  wire::PauseFrame words;
  words.quanta[kDataPriority] = pause ? wire::PauseFrame::kLongest : std::uint16_t{0};
  words.emit(frame, source);
}

bool PauseState::on_frame(wire::Instant now, const wire::Frame& frame, wire::BitRate rate) {
  const auto words = wire::PauseFrame::parse(frame);
  if (!words || !words->quanta[kDataPriority]) return false;
  pause(now, now + wire::pause_time(*words->quanta[kDataPriority], rate));
  return true;
}

void PauseState::pause(wire::Instant now, wire::Instant until) {
  if (until > now && !is_paused(now)) ++pauses_;
  total_ = time(now);
  since_ = now;
  until_ = until;
}

wire::Duration pause_repeat(wire::BitRate rate) {
  return wire::pause_time(wire::PauseFrame::kLongest, rate) / 2;
}

}  // namespace cepheus::net
