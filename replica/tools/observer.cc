// Connecting: dial, challenge, hello, welcome. Connecting and each exchange may take kTimeLimit,
// and signals do not shorten it. A refusal's text is printed only as wire::printable() shows it. An
// unexpected frame, or a size other than requested, counts as another program or version.
#include "replica/tools/observer.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "wire/clock.h"
#include "wire/printable.h"

namespace cepheus::replica {
namespace {

constexpr wire::Duration kTimeLimit = std::chrono::seconds(5);

// As poll(2), but a signal does not end it.
int wait_on(int fd, short events, wire::Instant until) {
  pollfd want{fd, events, 0};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - wire::monotonic_now());
    const int ready = poll(&want, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

}  // namespace

tl::unexpected<wire::Error> Observer::failed(wire::ErrorCode code, const std::string& why) const {
  return wire::fail(code, address_ + ": " + why);
}

wire::Result<Observer> Observer::connect(const std::string& address, const VolumeKey& key) {
  const auto endpoint = Endpoint::parse(address);
  if (!endpoint) return tl::unexpected(endpoint.error());
  auto fd = dial(*endpoint);
  if (!fd) return tl::unexpected(fd.error());
  Observer observer(address, std::move(*fd));
  const int raw = observer.socket_.fd();
  const int ready = wait_on(raw, POLLOUT, wire::monotonic_now() + kTimeLimit);
  if (ready < 0) return observer.failed(wire::ErrorCode::kUnavailable, std::strerror(errno));
  if (ready == 0) {
    return observer.failed(wire::ErrorCode::kTimedOut,
                           "no answer; is cepheus-replica running there?");
  }
  if (const int error = outcome(raw)) {
    return observer.failed(wire::ErrorCode::kUnavailable, std::strerror(error));
  }
  const auto body = observer.exchange(MessageType::kChallenge);
  if (!body) return tl::unexpected(body.error());
  const auto challenge = decode<Challenge>(*body);
  if (!challenge)
    return observer.failed(wire::ErrorCode::kRefused, "no cepheus-replica answers there");
  VolumeHello hello;
  hello.nonce = random_nonce();
  hello.tag = key.tag(covered(challenge->nonce, hello));
  encode(hello, observer.socket_.out());
  const auto answer = observer.exchange(MessageType::kWelcome);
  if (!answer) return tl::unexpected(answer.error());
  const auto welcome = decode<Welcome>(*answer);
  if (!welcome || !key.fits(welcome->tag, covered(hello.nonce, *welcome))) {
    return observer.failed(wire::ErrorCode::kRefused,
                           "its key differs; set CEPHEUS_KEY_FILE to the same key");
  }
  return observer;
}

wire::Result<std::vector<std::uint8_t>> Observer::exchange(MessageType wanted) {
  const wire::Instant until = wire::monotonic_now() + kTimeLimit;
  for (;;) {
    if (!socket_.flush()) return failed(wire::ErrorCode::kUnavailable, "it closed the connection");
    const int ready = wait_on(socket_.fd(), socket_.events(), until);
    if (ready < 0) return failed(wire::ErrorCode::kUnavailable, std::strerror(errno));
    if (ready == 0) {
      return failed(wire::ErrorCode::kTimedOut, "no answer; is it stopped or overloaded?");
    }
    const bool lives = socket_.receive();
    bool ok = true;
    if (const auto frame = socket_.next(ok)) {
      if (frame->type == wanted) {
        return std::vector<std::uint8_t>(frame->body.begin(), frame->body.end());
      }
      if (frame->type == MessageType::kRefusal) {
        return failed(wire::ErrorCode::kRefused,
                      wire::printable(decode_text(frame->body).value_or("it refused")));
      }
      ok = false;
    }
    if (!ok) return failed(wire::ErrorCode::kRefused, "no cepheus-replica answers there");
    if (!lives) return failed(wire::ErrorCode::kUnavailable, "it closed the connection");
  }
}

wire::Result<nlohmann::json> Observer::status() {
  encode_status_request(socket_.out());
  const auto body = exchange(MessageType::kStatus);
  if (!body) return tl::unexpected(body.error());
  auto json = nlohmann::json::parse(decode_text(*body).value_or(""), nullptr, false);
  if (json.is_discarded())
    return failed(wire::ErrorCode::kRefused,
                  "its status can't be read; use programs of one Cepheus version");
  return json;
}

wire::Result<std::vector<Digest>> Observer::digests(const DigestRequest& request) {
  encode(request, socket_.out());
  const auto body = exchange(MessageType::kDigests);
  if (!body) return tl::unexpected(body.error());
  auto digests = decode<Digests>(*body);
  const std::uint64_t count = (request.length + request.unit - 1) / request.unit;
  if (!digests || digests->request != request || digests->digests.size() != count) {
    return failed(wire::ErrorCode::kRefused,
                  "its checksums can't be read; use programs of one Cepheus version");
  }
  return std::move(digests->digests);
}

}  // namespace cepheus::replica
