// The root packs header and data into one message of the eager lane, and is done when the lane has
// it. The others take messages in order from the inbox. The header names unit, length, root and the
// bytes to come: a mismatch is an error of the program (roots or counts differ), and the call
// fails.
//
// After a failure of the group (Agreement::Path::kRepair) a member takes the unit from the inbox,
// if it has arrived. Else it posts a receive, sends LACK, and the root sends the stored message
// again.
#include "collectives/units/eager_operation.h"

#include <cstring>
#include <optional>
#include <string>

#include "collectives/core/counters.h"
#include "collectives/core/parameters.h"
#include "wire/situation.h"

namespace cepheus::coll {

namespace {

uint32_t units_left(const Call& call) {
  const std::size_t unit = parameters().eager_unit();
  return static_cast<uint32_t>((call.payload->bytes() - call.offset - call.length + unit - 1) /
                               unit);
}

struct PackArgument {
  const Call* call;
  Code rc;
};

size_t pack_message(void* dest, void* arg) {
  auto* argument = static_cast<PackArgument*>(arg);
  const Call& call = *argument->call;
  const EagerHeader header{call.unit, call.length, static_cast<uint32_t>(call.root),
                           units_left(call)};
  std::memcpy(dest, &header, sizeof header);
  argument->rc =
      call.payload->pack(call.offset, static_cast<std::byte*>(dest) + sizeof header, call.length);
  // A length that no message may have: nothing is sent.
  return argument->rc == Code::kDone ? sizeof header + call.length : SIZE_MAX;
}

}  // namespace

void EagerOperation::finish() {
  messages_.forget();
  repair_.reset();
}

Code EagerOperation::send() {
  PackArgument argument{&call_, Code::kDone};
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  const Channel::Status sent = session_->eager().channel().send_small(pack_message, &argument);
  if (argument.rc != Code::kDone) return unreadable();
  // A failed group is noticed by the session.
  if (sent != Channel::Status::kStarted) return Code::kPending;
  session_->agreement().mark_sent();
  session_->note_eager_sent(call_.unit);
  return Code::kDone;
}

Code EagerOperation::receive() {
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  return session_->inbox().is_empty() ? Code::kPending : take_arrived();
}

Code EagerOperation::take_arrived() {
  Arrived arrived = session_->inbox().pop();
  const Code rc = take(arrived.data, arrived.length);
  arrived.release();
  return rc;
}

// The group has failed. If the message had not arrived before, ask the root for it.
Code EagerOperation::repair(Actions& out) {
  if (repair_ == nullptr) {
    {
      std::lock_guard<std::mutex> guard(Transport::instance().mutex());
      const std::optional<EagerHeader> header = session_->inbox().front();
      if (header && header->unit == call_.unit) {
        CEPHEUS_SITUATION("a group fails, and a small unit waits in the inbox");
        return take_arrived();
      }
    }
    repair_ = std::make_unique<std::byte[]>(message_bytes());
    const Code rc =
        messages_.receive(repair_.get(), message_bytes(), call_.root, Tag::kRepair, *call_.team);
    if (rc != Code::kDone) return rc;
    session_->agreement().lack(0, out);
    return Code::kPending;
  }
  Code error = Code::kDone;
  if (!messages_.test(error)) return Code::kPending;
  if (error != Code::kDone) return error;
  counters().add(Counters::Which::kRepaired);
  return take(repair_.get(), message_bytes());
}

// The caller's arguments differ from those of the root that has sent the message with `header`.
Code EagerOperation::mismatch(const EagerHeader& header) const {
  const Team& team = *call_.team;
  const auto root = static_cast<int>(header.root);
  const std::string self = rank_text(team);
  const std::string sender = "rank " + std::to_string(team.rank_of(root));
  if (root != call_.root) {
    (void)fail_call(self + " expects the data of rank " + std::to_string(team.rank_of(call_.root)) +
                    ", but " + sender + " calls with itself as the root");
    return Code::kRootsDiffer;
  }
  const std::size_t sent = header.bytes + header.left * parameters().eager_unit();  // at most
  const bool is_longer = sent > call_.payload->bytes() - call_.offset;
  (void)fail_call(self + " passes " + std::to_string(call_.payload->bytes()) + " bytes, but " +
                  sender + ", the root, " + (is_longer ? "more" : "fewer"));
  return is_longer ? Code::kTruncated : Code::kCountsDiffer;
}

Code EagerOperation::take(const void* data, size_t length) {
  EagerHeader header{};
  if (length < sizeof header) return fail_call("a message shorter than its header");
  std::memcpy(&header, data, sizeof header);
  if (header.unit != call_.unit) return fail_call("ranks disagree on the order of broadcasts");
  if (header.root != static_cast<uint32_t>(call_.root) || header.bytes != call_.length ||
      header.left != units_left(call_) || length != sizeof header + header.bytes)
    return mismatch(header);
  call_.payload->unpack(call_.offset, static_cast<const std::byte*>(data) + sizeof header,
                        header.bytes);
  return Code::kDone;
}

}  // namespace cepheus::coll
