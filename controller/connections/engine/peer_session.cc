// States: no HELLO yet; can_send() after the other's HELLO; is_ready() after its READY. Before
// HELLO open() takes only that and a REFUSAL, and between the two only READY and a REFUSAL, which
// may lack a tag. A HELLO is refused for its version, its hosts, a key on one end only, or a time
// limit below kLeastTimeLimitMs. Tags are compared in constant time.
#include "controller/connections/engine/peer_session.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cassert>
#include <string_view>

#include "wire/bytes.h"

namespace cepheus::connections {
namespace {

constexpr std::string_view kPurpose = "cepheus-cmd";
// Between them a link may be slow, and a bound of less would be met by a busy machine.
constexpr std::uint32_t kLeastTimeLimitMs = 100;

tl::unexpected<wire::Error> refuse(std::string text) { return wire::invalid(std::move(text)); }

tl::unexpected<wire::Error> refused(const Message& refusal) {
  return wire::fail(wire::ErrorCode::kRefused, refusal.text);
}

}  // namespace

PeerSession::PeerSession(const Settings& settings)
    : settings_(settings),
      hello_{.type = MessageType::kHello,
             .host = settings.host,
             .peer = settings.peer,
             .nonce = settings.nonce,
             .is_signed = settings.key != nullptr,
             .time_ms = settings.time_limit_ms} {}

PeerSession::Tag PeerSession::tag(bool by_dialler, std::uint64_t number,
                                  std::span<const std::uint8_t> message) const {
  if (settings_.key == nullptr) return {};
  std::vector<std::uint8_t> covered;
  wire::ByteWriter out(covered);
  out.text(kPurpose);
  out.u8(by_dialler ? 1 : 0);
  (settings_.is_dialler ? hello_ : *peers_hello_).emit(covered);
  (settings_.is_dialler ? *peers_hello_ : hello_).emit(covered);
  out.u64(number);
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(message.data(), message.size(), digest.data());
  out.bytes(digest);
  const bool is_ours = by_dialler == settings_.is_dialler;
  const auto tag = settings_.key->tag(is_ours ? hello_.host : peers_hello_->host, covered);
  assert(tag);  // two HELLOs and a digest: far below the bound
  return tag.value_or(Tag{});
}

std::vector<std::uint8_t> PeerSession::seal(const Message& message) {
  assert(can_send());
  std::vector<std::uint8_t> frame = frame_of(message);
  const Tag t = tag(settings_.is_dialler, sent_++, std::span(frame).subspan(kFrameHeader));
  frame.insert(frame.end(), t.begin(), t.end());
  wire::store_be32(frame.data(), static_cast<std::uint32_t>(frame.size() - kFrameHeader));
  return frame;
}

std::vector<std::uint8_t> PeerSession::refusal(const std::string& why) {
  const Message message{.type = MessageType::kRefusal, .text = why};
  return is_ready_ ? seal(message) : frame_of(message);
}

wire::Result<Message> PeerSession::take_hello(const Message& hello) {
  if (hello.version != kVersion) {
    return refuse("the daemons of " + settings_.host.to_string() + " and " +
                  hello.host.to_string() + " speak versions " + std::to_string(kVersion) + " and " +
                  std::to_string(hello.version) + ": install one release on both hosts");
  }
  if ((!settings_.peer.is_unset() && hello.host != settings_.peer) ||
      (!hello.peer.is_unset() && hello.peer != settings_.host)) {
    const bool was_dialled = settings_.peer.is_unset();
    return refuse("the daemon that was reached as " +
                  (was_dialled ? hello.peer : settings_.peer).to_string() + " is that of " +
                  (was_dialled ? settings_.host : hello.host).to_string() +
                  ": correct --peers or --host");
  }
  if (hello.is_signed != hello_.is_signed) {
    return refuse("the daemon of " + (hello.is_signed ? settings_.host : hello.host).to_string() +
                  " has no key and the other one has: give both the fabric's (--key)");
  }
  if (hello.time_ms < kLeastTimeLimitMs) {
    return refuse("a time limit of less than " + std::to_string(kLeastTimeLimitMs) +
                  " ms can't be met: raise the other daemon's --peer-timeout-ms");
  }
  peers_hello_ = hello;
  return hello;
}

wire::Result<Message> PeerSession::open(std::span<const std::uint8_t> frame) {
  constexpr const char* kGarbage =
      "a message is not of cepheus-cmd's protocol: see which program connects here";
  if (!peers_hello_) {
    const auto message = Message::parse(frame);
    if (message && message->type == MessageType::kRefusal) return refused(*message);
    if (!message || message->type != MessageType::kHello) return refuse(kGarbage);
    return take_hello(*message);
  }
  // This refusal has no tag, because the refusing end may have another key.
  if (!is_ready_) {
    const auto refusal = Message::parse(frame);
    if (refusal && refusal->type == MessageType::kRefusal) return refused(*refusal);
  }
  if (frame.size() < wire::MrpKey::kTagSize) return refuse(kGarbage);
  const auto body = frame.first(frame.size() - wire::MrpKey::kTagSize);
  const Tag right = tag(!settings_.is_dialler, received_++, body);
  if (CRYPTO_memcmp(right.data(), frame.data() + body.size(), right.size()) != 0) {
    return refuse("the daemons of " + settings_.host.to_string() + " and " + peer().to_string() +
                  " have different keys: give both the fabric's (--key)");
  }
  const auto message = Message::parse(body);
  if (!message) return refuse(kGarbage);
  if (message->type == MessageType::kRefusal) return refused(*message);
  if ((message->type == MessageType::kReady) == is_ready_) return refuse(kGarbage);
  is_ready_ = true;
  return *message;
}

}  // namespace cepheus::connections
