#include "fabric-sim/checked/group_ledger.h"

#include <cstring>

#include "fabric-sim/core/random.h"

namespace cepheus::sim {
namespace {

void fill_with(std::uint64_t key, std::size_t message, std::span<std::uint8_t> out) {
  Random content(key + 0x10001 * message);
  for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = content.next();
    std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
  }
}

}  // namespace

GroupLedger::GroupLedger(const GroupPlan& plan, std::uint64_t seed, Findings& findings)
    : plan_(plan),
      key_(Random(seed ^ (std::uint64_t{plan.id.value()} << 20)).next()),
      findings_(findings),
      regions_(plan, [key = key_](std::size_t message,
                                  std::span<std::uint8_t> out) { fill_with(key, message, out); }),
      targets_(plan.members.size()),
      delivered_(plan.messages.size() * plan.members.size(), false),
      arrived_(delivered_.size(), false),
      completed_(plan.messages.size(), false),
      posted_(plan.messages.size(), false),
      skipped_(plan.messages.size(), false),
      dead_(plan.members.size(), false),
      next_(plan.members.size(), 0),
      open_deliveries_(plan.messages.size() * (plan.members.size() - 1)),
      open_completions_(plan.messages.size()) {
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    delivered_[m * plan.members.size() + plan.messages[m].source] = true;
  }
  find_jump(0);
}

void GroupLedger::find_jump(std::size_t from) {
  jump_behind_ = from;
  while (jump_behind_ < plan_.messages.size() && plan_.messages[jump_behind_].jump == 0) {
    ++jump_behind_;
  }
  jump_left_ = jump_behind_ < plan_.messages.size() ? plan_.messages[jump_behind_].jump : 0;
}

std::optional<std::size_t> GroupLedger::due_jump() const {
  if (jump_left_ == 0) return std::nullopt;
  for (std::size_t m = 0; m <= jump_behind_; ++m) {
    if (is_expected(m, plan_.messages[m].source) && !completed_[m]) return std::nullopt;
    for (std::size_t member = 0; member < plan_.members.size(); ++member) {
      if (is_expected(m, member) && !has(m, member)) return std::nullopt;
    }
  }
  return jump_behind_;
}

void GroupLedger::on_jump(std::uint64_t packets) {
  jump_left_ -= packets;
  if (jump_left_ == 0) find_jump(jump_behind_ + 1);
}

void GroupLedger::fill(std::size_t message, std::span<std::uint8_t> out) const {
  fill_with(key_, message, out);
}

bool GroupLedger::matches(std::size_t message, std::span<const std::uint8_t> bytes) const {
  if (bytes.size() != plan_.messages[message].bytes) return false;
  std::vector<std::uint8_t> expected(bytes.size());
  fill(message, expected);
  return std::equal(bytes.begin(), bytes.end(), expected.begin());
}

std::string GroupLedger::name_of(std::size_t message) const {
  return "message " + std::to_string(message) + " (" +
         std::to_string(plan_.messages[message].bytes) + " bytes of member " +
         std::to_string(plan_.messages[message].source) + ")";
}

bool GroupLedger::may_send(std::size_t member, std::size_t message) const {
  if (!plan_.in_turns) return true;
  if (message > jump_behind_) return false;
  std::size_t first_missing = next_[member];
  while (first_missing < message && (has(first_missing, member) || skipped_[first_missing])) {
    ++first_missing;
  }
  return first_missing >= message;
}

// A WRITE without immediate shows by a later message, or by its completion.
bool GroupLedger::take_silent(std::size_t member, std::size_t message) {
  if (plan_.messages[message].has_completion() || !regions_.shows(member, message, posted_))
    return false;
  note_delivered(member, message);
  return true;
}

// Whether it is a message, and the member's next. `message` is the packet's immediate data.
bool GroupLedger::is_next(std::size_t member, std::uint32_t message) {
  const std::string who = "member " + std::to_string(member);
  if (message >= plan_.messages.size()) {
    findings_.report(Invariant::kDelivery,
                     who + " got a message that calls itself " + std::to_string(message));
    return false;
  }
  if (has(message, member)) {
    findings_.report(Invariant::kDelivery,
                     who + " got " + name_of(message) + " a second time, or its own");
    return false;
  }
  std::size_t& next = next_[member];
  while (has(next, member) || (next < message && (skipped_[next] || take_silent(member, next))))
    ++next;  // ends at `message` at the latest
  if (plan_.in_turns && message != next) {
    findings_.report(Invariant::kDelivery,
                     who + " got " + name_of(message) + " before " + name_of(next));
    return false;
  }
  return true;
}

void GroupLedger::on_arrived(std::size_t member, std::uint32_t message,
                             std::span<const std::uint8_t> bytes) {
  if (message >= plan_.messages.size() || plan_.messages[message].outside) return;
  const bool is_write = plan_.messages[message].is_write();
  const bool is_whole =
      is_write ? regions_.shows(member, message, posted_) : matches(message, bytes);
  if (is_whole) arrived_[message * plan_.members.size() + member] = true;
}

void GroupLedger::on_delivered(std::size_t member, std::uint32_t message,
                               std::span<const std::uint8_t> bytes) {
  if (!is_next(member, message)) return;
  if (!matches(message, bytes) || plan_.messages[message].is_write()) {
    return findings_.report(Invariant::kDelivery, "member " + std::to_string(member) + " got " +
                                                      std::to_string(bytes.size()) +
                                                      " bytes that are not " + name_of(message));
  }
  note_delivered(member, message);
  recount();
}

void GroupLedger::on_written(std::size_t member, std::uint32_t message, std::uint32_t bytes) {
  if (!is_next(member, message)) return;
  const MessagePlan& m = plan_.messages[message];
  if (!m.is_write() || bytes != m.bytes || m.outside || !regions_.shows(member, message, posted_)) {
    return findings_.report(Invariant::kDelivery, "member " + std::to_string(member) +
                                                      " was told of " + name_of(message) +
                                                      ", which is not in its region");
  }
  note_delivered(member, message);
  recount();
}

std::uint64_t GroupLedger::completed_writes() const {
  std::uint64_t n = 0;
  for (std::size_t m = 0; m < plan_.messages.size(); ++m) {
    if (plan_.messages[m].is_write() && completed_[m]) ++n;
  }
  return n;
}

void GroupLedger::check_regions() const {
  for (std::size_t member = 0; member < plan_.members.size(); ++member) {
    if (dead_[member] || !regions_.has_region(member)) continue;
    const std::string wrong = regions_.check(member, posted_, !may_fail_ && is_done());
    if (!wrong.empty()) return findings_.report(Invariant::kDelivery, wrong);
  }
}

void GroupLedger::on_completed(std::size_t message) {
  const MessagePlan& plan = plan_.messages[message];
  bool reaches_any = false;
  for (std::size_t member = 0; member < plan_.members.size(); ++member) {
    reaches_any |= member != plan.source && !dead_[member];
  }
  if (plan.outside && reaches_any) {
    return findings_.report(Invariant::kCompletion,
                            name_of(message) + " completed, though it ends outside the region");
  }
  for (std::size_t member = 0; member < plan_.members.size(); ++member) {
    const bool is_excused = dead_[member] && !plan_.loss_ends;
    const bool has_it = has(message, member) || has_arrived(message, member);
    if (has_it || is_excused || take_silent(member, message)) continue;
    return findings_.report(Invariant::kCompletion, name_of(message) + " completed, but member " +
                                                        std::to_string(member) + " lacks it");
  }
  if (completed_[message])
    return findings_.report(Invariant::kCompletion, name_of(message) + " completed twice");
  completed_[message] = true;
  recount();
}

void GroupLedger::recount() {
  open_deliveries_ = open_completions_ = 0;
  for (std::size_t m = 0; m < plan_.messages.size(); ++m) {
    if (is_expected(m, plan_.messages[m].source) && !completed_[m]) ++open_completions_;
    for (std::size_t member = 0; member < plan_.members.size(); ++member) {
      if (is_expected(m, member) && !has(m, member)) ++open_deliveries_;
    }
  }
}

void GroupLedger::on_death(std::size_t member) {
  dead_[member] = true;
  if (plan_.loss_ends) may_fail_ = true;
  // If every REMOVE of its sender is lost, only silence shows a receiver that the group has ended.
  if (plan_.loss_ends && plan_.has_one_sender) was_struck_ = true;
  for (std::size_t m = 0; m < plan_.messages.size(); ++m) {
    if (plan_.messages[m].source != member) continue;
    if (!posted_[m]) {
      skipped_[m] = true;
      continue;
    }
    if (!completed_[m]) may_fail_ = true;
  }
  recount();
}

void GroupLedger::on_failed(std::size_t member, const std::string& what) {
  if (is_over_ || !plan_.in_turns || may_fail_ || dead_[member]) return;
  has_failed_ = true;
  findings_.report(Invariant::kLiveness, "member " + std::to_string(member) + ": " + what);
}

// Deaths of other members leave the leader, and the way to it.
void GroupLedger::on_gave_up(std::size_t member, const std::string& what) const {
  if (is_over_ || was_struck_ || dead_[member]) return;
  findings_.report(Invariant::kLiveness,
                   "member " + std::to_string(member) + " gave its group up: " + what);
}

// A member may send before all others are active. Failures there end the registration.
void GroupLedger::on_not_registered(const std::string& what) {
  if (is_over_ || may_fail_ || has_failed_) return;
  findings_.report(Invariant::kLiveness, "registration: " + what);
}

void GroupLedger::check_member_count(std::size_t count) const {
  if (count >= living_members()) return;
  findings_.report(Invariant::kLiveness, std::to_string(living_members()) + " members live, and " +
                                             std::to_string(count) + " are left in the group");
}

void GroupLedger::check_ended() const {
  if (!plan_.in_turns || may_fail_) return;
  for (std::size_t m = 0; m < plan_.messages.size(); ++m) {
    for (std::size_t member = 0; member < plan_.members.size(); ++member) {
      if (has(m, member) || !is_expected(m, member)) continue;
      return findings_.report(Invariant::kLiveness,
                              name_of(m) + " never reached member " + std::to_string(member));
    }
    if (completed_[m] || !is_expected(m, plan_.messages[m].source)) continue;
    return findings_.report(Invariant::kLiveness, name_of(m) + " never completed");
  }
}

}  // namespace cepheus::sim
