// When a completion queue notifies its channel (IBTA 11.4.2). Pure: positions come in as arguments.
//
// Positions count completions for ever, in 64 bits: a program may poll for days between two events,
// so no smaller number can compare them.
#pragma once

#include <cstdint>

namespace cepheus::verbs {

class Notification {
 public:
  bool is_armed() const { return arm_ != Arm::kNo; }

  // A completion has been put before `head`. True: notify. `counts_always`: it is solicited, or
  // reports a failure.
  bool pushed(std::uint64_t head, bool counts_always) {
    if (counts_always) solicited_ = head;
    return (arm_ == Arm::kAny || (arm_ == Arm::kSolicited && counts_always)) && fire(head);
  }
  // True: notify at once, since a completion that counts lies in [tail, head), and came after the
  // last notification.
  bool armed(bool solicited_only, std::uint64_t tail, std::uint64_t head) {
    if (!solicited_only) {
      arm_ = Arm::kAny;
    } else if (arm_ == Arm::kNo) {
      arm_ = Arm::kSolicited;
    }
    const std::uint64_t last = arm_ == Arm::kAny ? head : solicited_;
    return last > tail && last > notified_ && fire(head);
  }
  // Completions of [tail, head) have moved towards `head`. One that counts always may be the
  // youngest now; a needless notification is harmless.
  void moved_up(std::uint64_t tail, std::uint64_t head) {
    if (solicited_ > tail) solicited_ = head;
  }
  void disarm() { arm_ = Arm::kNo; }

 private:
  enum class Arm : std::uint8_t { kNo, kSolicited, kAny };
  bool fire(std::uint64_t head) {
    arm_ = Arm::kNo;
    notified_ = head;
    return true;
  }

  std::uint64_t notified_ = 0;   // head when the last notification was made
  std::uint64_t solicited_ = 0;  // behind the youngest completion that counts always
  Arm arm_ = Arm::kNo;
};

}  // namespace cepheus::verbs
