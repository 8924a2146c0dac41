// Any bytes on a volume's control connection. A decoded message equals itself after encoding, and
// no request makes a replica's record that of another volume.
#include <sys/socket.h>

#include <cstdlib>

#include "replica/control/frame_socket.h"
#include "replica/engine/replica_engine.h"

namespace {

using namespace cepheus::replica;

constexpr Geometry kGeometry{100 * 4096, 4096, 4 * 4096};
constexpr unsigned kReplicas = 3;

template <typename Message>
void check(std::span<const std::uint8_t> body) {
  const auto message = decode<Message>(body);
  if (!message) return;
  std::vector<std::uint8_t> once, twice;
  encode(*message, once);
  const auto again = decode<Message>(std::span(once).subspan(kFrameHeader + 1));
  if (!again) std::abort();
  encode(*again, twice);
  if (once != twice) std::abort();
}

class Replica {
 public:
  void take(const FrameSocket::Frame& frame) {
    check<Challenge>(frame.body);
    check<VolumeHello>(frame.body);
    check<Welcome>(frame.body);
    check<AnswerMessage>(frame.body);
    check<DigestRequest>(frame.body);
    check<Digests>(frame.body);
    check<RequestMessage>(frame.body);
    static_cast<void>(decode_text(frame.body));
    if (const auto message = decode<RequestMessage>(frame.body)) handle(message->request);
  }

 private:
  // On one connection, or on another.
  void handle(const Request& request) {
    ReplicaActions actions;
    engine_.on_request(1 + request.serial % 2, request, actions);
    if (engine_.record().marks.chunks() != kGeometry.chunks()) std::abort();
    for (const ReplicaAction& action : actions) {
      const bool is_flush = action.kind == ReplicaAction::Kind::kFlush;
      if (is_flush && action.chunks.count() > kGeometry.chunks()) std::abort();
    }
  }

  ReplicaEngine engine_{kGeometry, ReplicaRecord::fresh(kGeometry, kReplicas)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  cepheus::wire::UniqueFd peer(ends[0]);
  FrameSocket socket(cepheus::wire::UniqueFd(ends[1]), kMostFrame);
  if (send(peer.get(), data, size, MSG_DONTWAIT) < 0) return 0;
  peer.reset();
  Replica replica;
  bool ok = true;
  while (socket.receive() && ok) {
    while (const auto frame = socket.next(ok)) replica.take(*frame);
  }
  while (const auto frame = socket.next(ok)) replica.take(*frame);
  return 0;
}
