// One receive from any rank is posted again as soon as its message is taken. A message of another
// length, in an error, or from outside the team is dropped. Sends are copies that the host frees
// later (Messages::post), so a send never waits for its receiver.
#include "collectives/group/control_link.h"

namespace cepheus::coll {

template <typename Message, Tag kTag>
Code Link<Message, kTag>::post() {
  const Code rc = host::receive(team_.comm(), &incoming_, sizeof incoming_, host::kAnyRank,
                                team_.tag(kTag), receive_);
  if (rc != Code::kDone) return rc;
  has_opened_ = true;
  host::on_complete(*receive_, arrival_);
  return rc;
}

template <typename Message, Tag kTag>
Code Link<Message, kTag>::open() {
  return is_open() ? Code::kDone : post();
}

template <typename Message, Tag kTag>
void Link<Message, kTag>::close() {
  has_opened_ = false;
  if (!is_open()) return;
  host::cancel(*receive_);
  host::free(std::exchange(receive_, nullptr));
}

template <typename Message, Tag kTag>
Code Link<Message, kTag>::send(int to, const Message& message) {
  if (receivers_.empty()) receivers_.resize(static_cast<std::size_t>(team_.size()));
  Code rc = Code::kDone;
  for (int member = 0; member < team_.size() && rc == Code::kDone; ++member) {
    if (to != member && (to != Action::kEveryone || member == team_.self())) continue;
    receivers_[static_cast<std::size_t>(member)] = true;
    rc = Messages::post(&message, sizeof message, member, kTag, team_);
  }
  return rc;
}

template <typename Message, Tag kTag>
bool Link<Message, kTag>::receive(int& from, Message& out) {
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

template class Link<ControlMessage, Tag::kControl>;
template class Link<RootlessMessage, Tag::kReductionControl>;

}  // namespace cepheus::coll
