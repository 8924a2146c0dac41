#include "ompi-coll/eager_operation.h"

#include <cstring>

#include "ompi-coll/counters.h"
#include "ompi-coll/parameters.h"

namespace cepheus::coll {

using Path = Agreement::Path;

int broken(const Call& call, const char* why) {
  opal_output(output_stream(), "cepheus: broadcast on %s: %s", call.team->comm()->c_name, why);
  return OMPI_ERROR;
}

namespace {

struct PackArgument {
  const Call* call;
  int rc;
};

size_t pack_message(void* dest, void* arg) {
  auto* argument = static_cast<PackArgument*>(arg);
  const Call& call = *argument->call;
  const EagerHeader header{call.unit, call.length, static_cast<uint32_t>(call.root), 0};
  std::memcpy(dest, &header, sizeof header);
  argument->rc =
      call.payload->pack(call.offset, static_cast<std::byte*>(dest) + sizeof header, call.length);
  return sizeof header + call.length;
}

}  // namespace

int EagerOperation::progress(Actions& out) {
  Agreement& agreement = session_.agreement();
  if (!entered_) {
    entered_ = true;
    agreement.enter(call_.unit, call_.root, call_.retry_after, out);
  }
  switch (agreement.path()) {
    case Path::kMulticast:
      return finish(call_.is_root() ? send(out) : receive(), out);
    case Path::kSalvage:
      return OMPI_ERR_WOULD_BLOCK;
    case Path::kRepair:
      return finish(repair(out), out);
    case Path::kSaved:
      return OMPI_ERR_NOT_AVAILABLE;
  }
  return OMPI_ERROR;
}

int EagerOperation::finish(int rc, Actions& out) {
  if (rc != OMPI_ERR_WOULD_BLOCK) session_.agreement().leave(call_.unit + 1, out);
  return rc;
}

int EagerOperation::send(Actions&) {
  PackArgument argument{&call_, OMPI_SUCCESS};
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  const Channel::Status sent = session_.eager().channel().send_small(pack_message, &argument);
  // A failed group is noticed by the session.
  if (sent != Channel::Status::kStarted) return OMPI_ERR_WOULD_BLOCK;
  session_.agreement().mark_sent();
  return argument.rc;
}

int EagerOperation::receive() {
  std::lock_guard<std::mutex> guard(Transport::instance().mutex());
  if (session_.inbox().is_empty()) return OMPI_ERR_WOULD_BLOCK;
  Arrived arrived = session_.inbox().pop();
  const int rc = take(arrived.data, arrived.length);
  arrived.release();
  return rc;
}

// The fabric has broken: perhaps the message had arrived before; else the root is asked for it.
int EagerOperation::repair(Actions& out) {
  if (repair_ == nullptr) {
    {
      std::lock_guard<std::mutex> guard(Transport::instance().mutex());
      Inbox& inbox = session_.inbox();
      if (!inbox.is_empty() && inbox.first_unit() == call_.unit) {
        Arrived arrived = inbox.pop();
        const int rc = take(arrived.data, arrived.length);
        arrived.release();
        return rc;
      }
    }
    const size_t most = sizeof(EagerHeader) + parameters().eager_unit();
    repair_ = std::make_unique<std::byte[]>(most);
    const int rc = messages_.receive(repair_.get(), most, call_.root, Tag::kRepair, *call_.team);
    if (rc != OMPI_SUCCESS) return rc;
    session_.agreement().lack(0, out);
    return OMPI_ERR_WOULD_BLOCK;
  }
  int error = MPI_SUCCESS;
  if (!messages_.test(error)) return OMPI_ERR_WOULD_BLOCK;
  if (error != MPI_SUCCESS) return error;
  counters().add(Counters::Which::kRepaired);
  EagerHeader header{};
  std::memcpy(&header, repair_.get(), sizeof header);
  if (header.bytes == EagerHeader::kGone) {
    return broken(call_,
                  "the fabric acknowledged data that did not arrive, and its root has no copy");
  }
  return take(repair_.get(), sizeof header + header.bytes);
}

int EagerOperation::take(const void* data, size_t length) {
  EagerHeader header{};
  if (length < sizeof header) return broken(call_, "a message shorter than its header");
  std::memcpy(&header, data, sizeof header);
  if (header.unit != call_.unit || header.root != static_cast<uint32_t>(call_.root)) {
    return broken(call_, "ranks disagree on the order or the roots of broadcasts");
  }
  if (header.bytes != call_.length || length != sizeof header + header.bytes)
    return MPI_ERR_TRUNCATE;
  return call_.payload->unpack(call_.offset, static_cast<const std::byte*>(data) + sizeof header,
                               header.bytes);
}

int EagerOperation::serve(int, uint64_t) { return OMPI_SUCCESS; }

}  // namespace cepheus::coll
