// One receive from any rank is posted again as soon as its message is taken. A message of another
// length, in an error, or from outside the team is dropped. Sends are copies that the host frees
// later (Messages::post), so a send never waits for its receiver.
#include "collectives/group/control_link.h"

namespace cepheus::coll {

Code ControlLink::post() {
  const Code rc = host::receive(team_.comm(), &incoming_, sizeof incoming_, host::kAnyRank,
                                team_.tag(Tag::kControl), receive_);
  if (rc == Code::kDone) host::on_complete(*receive_, arrival_);
  return rc;
}

Code ControlLink::open() { return is_open() ? Code::kDone : post(); }

void ControlLink::close() {
  if (!is_open()) return;
  host::cancel(*receive_);
  host::free(std::exchange(receive_, nullptr));
}

Code ControlLink::send(int to, const ControlMessage& message) {
  if (receivers_.empty()) receivers_.resize(static_cast<std::size_t>(team_.size()));
  Code rc = Code::kDone;
  for (int member = 0; member < team_.size() && rc == Code::kDone; ++member) {
    if (to != member && (to != Action::kEveryone || member == team_.self())) continue;
    receivers_[static_cast<std::size_t>(member)] = true;
    rc = Messages::post(&message, sizeof message, member, Tag::kControl, team_);
  }
  return rc;
}

bool ControlLink::receive(int& from, ControlMessage& out) {
  if (!is_open() || !host::is_complete(*receive_)) return false;
  const host::Received received = host::received(*receive_);
  from = team_.member_of(received.from);
  const bool usable =
      received.error == Code::kDone && received.bytes == sizeof incoming_ && from >= 0;
  out = incoming_;
  host::free(std::exchange(receive_, nullptr));
  // After an unusable message, too: it must not end all others.
  (void)post();
  return usable;
}

}  // namespace cepheus::coll
