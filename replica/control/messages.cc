#include "replica/control/messages.h"

#include "wire/bytes.h"

namespace cepheus::replica {
namespace {

using wire::ByteReader;
using wire::ByteWriter;

constexpr std::array<std::uint8_t, 8> kMagic = {'c', 'e', 'p', 'h', '-', 'v', 'o', 'l'};

// Begins a frame, and fills its length in when it ends.
class Frame {
 public:
  Frame(MessageType type, std::vector<std::uint8_t>& out) : out_(out), begin_(out.size()) {
    ByteWriter w(out);
    w.u32(0);
    w.u8(static_cast<std::uint8_t>(type));
  }
  ~Frame() {
    wire::store_be32(out_.data() + begin_,
                     static_cast<std::uint32_t>(out_.size() - begin_ - kFrameHeader));
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  std::vector<std::uint8_t>& out_;
  std::size_t begin_;
};

void put(ByteWriter& w, const Epoch& v) {
  w.u64(v.number);
  w.u64(v.writer);
}
Epoch epoch_of(ByteReader& r) {
  const std::uint64_t number = r.u64();
  return {number, r.u64()};
}
void put(ByteWriter& w, const Config& v) {
  put(w, v.epoch);
  w.u64(v.version);
  w.u32(v.members.bits());
}
Config config_of(ByteReader& r) {
  Config v;
  v.epoch = epoch_of(r);
  v.version = r.u64();
  v.members = Members::of_bits(r.u32() & Members::all(kMostReplicas).bits());
  return v;
}
void put(ByteWriter& w, const std::vector<std::uint64_t>& words) {
  w.u32(static_cast<std::uint32_t>(words.size()));
  for (const std::uint64_t word : words) w.u64(word);
}
// False: more words than there are bytes for.
bool words_of(ByteReader& r, std::vector<std::uint64_t>& out) {
  const std::size_t count = r.u32();
  if (!r.is_whole() || count > r.left() / 8 || count > kMostBitmap / 8) return false;
  out.resize(count);
  for (std::uint64_t& word : out) word = r.u64();
  return true;
}
void put(ByteWriter& w, const RcName& v) {
  w.u32(v.ipv4);
  w.u32(v.qpn);
  w.u32(v.psn);
}
RcName rc_of(ByteReader& r) {
  RcName v;
  v.ipv4 = r.u32();
  v.qpn = r.u32();
  v.psn = r.u32();
  return v;
}
void put_identity(ByteWriter& w, const Hello& v) {
  w.bytes(kMagic);
  w.u16(v.version);
  w.u8(static_cast<std::uint8_t>(v.role));
  w.text(v.volume);
  w.u8(v.place);
  w.u8(v.count);
  w.bytes(v.nonce);
}
void put(ByteWriter& w, const Geometry& v) {
  w.u64(v.size);
  w.u32(v.block);
  w.u32(v.chunk);
}
void put(ByteWriter& w, const DigestRequest& v) {
  w.u64(v.offset);
  w.u64(v.length);
  w.u32(v.unit);
}
DigestRequest digest_request_of(ByteReader& r) {
  DigestRequest v;
  v.offset = r.u64();
  v.length = r.u64();
  v.unit = r.u32();
  return v;
}
bool is_magic(ByteReader& r) {
  std::array<std::uint8_t, kMagic.size()> found{};
  r.bytes(found);
  return found == kMagic;
}
void encode_text(MessageType type, std::string_view text, std::vector<std::uint8_t>& out) {
  const Frame frame(type, out);
  ByteWriter(out).text(text);
}

}  // namespace

void encode(const Challenge& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kChallenge, out);
  ByteWriter w(out);
  w.bytes(kMagic);
  w.u16(message.version);
  w.bytes(message.nonce);
}

std::optional<Challenge> decode_challenge(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  if (!is_magic(r)) return std::nullopt;
  Challenge v;
  v.version = r.u16();
  r.bytes(v.nonce);
  return r.is_done() ? std::optional(v) : std::nullopt;
}

void encode(const Hello& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kHello, out);
  ByteWriter w(out);
  put_identity(w, message);
  w.bytes(message.tag);
}

std::optional<Hello> decode_hello(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  if (!is_magic(r)) return std::nullopt;
  Hello v;
  v.version = r.u16();
  const std::uint8_t role = r.u8();
  v.role = static_cast<Role>(role);
  v.volume = r.text();
  v.place = r.u8();
  v.count = r.u8();
  r.bytes(v.nonce);
  r.bytes(v.tag);
  const bool is_known = v.role == Role::kWriter || v.role == Role::kObserver;
  return r.is_done() && is_known ? std::optional(std::move(v)) : std::nullopt;
}

void encode(const Welcome& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kWelcome, out);
  ByteWriter w(out);
  put(w, message.geometry);
  w.bytes(message.tag);
}

std::optional<Welcome> decode_welcome(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  Welcome v;
  v.geometry.size = r.u64();
  v.geometry.block = r.u32();
  v.geometry.chunk = r.u32();
  r.bytes(v.tag);
  return r.is_done() ? std::optional(v) : std::nullopt;
}

void encode(const RequestMessage& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kRequest, out);
  const Request& q = message.request;
  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(q.ask));
  w.u64(q.serial);
  put(w, q.epoch);
  put(w, q.config);
  w.u32(q.range.first);
  w.u32(q.range.count);
  w.u64(q.generation);
  put(w, q.words);
  put(w, message.rc);
  w.u8(static_cast<std::uint8_t>(message.multicast));
  w.u8(message.progress.is_in_sync ? 1 : 0);
  w.u32(message.progress.lacking);
  w.u64(message.progress.copied_bytes);
  w.u64(message.progress.copy_rate);
}

std::optional<RequestMessage> decode_request(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  RequestMessage v;
  const std::uint8_t ask = r.u8();
  if (ask > static_cast<std::uint8_t>(Ask::kPing)) return std::nullopt;
  Request& q = v.request;
  q.ask = static_cast<Ask>(ask);
  q.serial = r.u64();
  q.epoch = epoch_of(r);
  q.config = config_of(r);
  q.range.first = r.u32();
  q.range.count = r.u32();
  q.generation = r.u64();
  if (!words_of(r, q.words)) return std::nullopt;
  v.rc = rc_of(r);
  const std::uint8_t multicast = r.u8();
  if (multicast > static_cast<std::uint8_t>(Multicast::kMcRdma)) return std::nullopt;
  v.multicast = static_cast<Multicast>(multicast);
  v.progress.is_in_sync = r.u8() != 0;
  v.progress.lacking = r.u32();
  v.progress.copied_bytes = r.u64();
  v.progress.copy_rate = r.u64();
  return r.is_done() ? std::optional(std::move(v)) : std::nullopt;
}

const char* to_string(Multicast multicast) {
  return multicast == Multicast::kMcRdma ? "mcrdma" : "cepheus";
}

std::optional<Multicast> multicast_of(std::string_view name) {
  for (const auto each : {Multicast::kCepheus, Multicast::kMcRdma}) {
    if (name == to_string(each)) return each;
  }
  return std::nullopt;
}

void encode(const AnswerMessage& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kAnswer, out);
  const Answer& a = message.answer;
  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(a.ask));
  w.u64(a.serial);
  w.u8(static_cast<std::uint8_t>(a.verdict));
  put(w, a.promised);
  put(w, a.config);
  w.u8(static_cast<std::uint8_t>(a.loss));
  put(w, a.words);
  w.bytes(message.join.member);
  w.bytes(message.join.region);
  put(w, message.join.rc);
  w.u32(message.join.rkey);
  w.u64(message.join.address);
  w.text(message.text);
}

std::optional<AnswerMessage> decode_answer(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  AnswerMessage v;
  Answer& a = v.answer;
  const std::uint8_t ask = r.u8();
  a.serial = r.u64();
  const std::uint8_t verdict = r.u8();
  a.promised = epoch_of(r);
  a.config = config_of(r);
  const std::uint8_t loss = r.u8();
  if (ask > static_cast<std::uint8_t>(Ask::kPing) ||
      verdict > static_cast<std::uint8_t>(Verdict::kFailed) ||
      loss > static_cast<std::uint8_t>(Loss::kAll) || !words_of(r, a.words)) {
    return std::nullopt;
  }
  a.ask = static_cast<Ask>(ask);
  a.verdict = static_cast<Verdict>(verdict);
  a.loss = static_cast<Loss>(loss);
  r.bytes(v.join.member);
  r.bytes(v.join.region);
  v.join.rc = rc_of(r);
  v.join.rkey = r.u32();
  v.join.address = r.u64();
  v.text = r.text();
  return r.is_done() ? std::optional(std::move(v)) : std::nullopt;
}

void encode(const DigestRequest& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kDigestRequest, out);
  ByteWriter w(out);
  put(w, message);
}

std::optional<DigestRequest> decode_digest_request(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  const DigestRequest v = digest_request_of(r);
  return r.is_done() ? std::optional(v) : std::nullopt;
}

void encode(const Digests& message, std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kDigests, out);
  ByteWriter w(out);
  put(w, message.request);
  w.u32(static_cast<std::uint32_t>(message.digests.size()));
  for (const Digest& digest : message.digests) w.bytes(digest);
}

std::optional<Digests> decode_digests(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  Digests v;
  v.request = digest_request_of(r);
  const std::size_t count = r.u32();
  if (!r.is_whole() || count > r.left() / sizeof(Digest)) return std::nullopt;
  v.digests.resize(count);
  for (Digest& digest : v.digests) r.bytes(digest);
  return r.is_done() ? std::optional(std::move(v)) : std::nullopt;
}

void encode_refusal(std::string_view why, std::vector<std::uint8_t>& out) {
  encode_text(MessageType::kRefusal, why, out);
}
void encode_status_request(std::vector<std::uint8_t>& out) {
  const Frame frame(MessageType::kStatusRequest, out);
}
void encode_status(std::string_view json, std::vector<std::uint8_t>& out) {
  encode_text(MessageType::kStatus, json, out);
}

std::optional<std::string> decode_text(std::span<const std::uint8_t> body) {
  ByteReader r(body);
  std::string text = r.text();
  return r.is_done() ? std::optional(std::move(text)) : std::nullopt;
}

std::vector<std::uint8_t> covered(const Nonce& challenge, const Hello& hello) {
  std::vector<std::uint8_t> out;
  ByteWriter w(out);
  w.bytes(challenge);
  put_identity(w, hello);
  return out;
}

std::vector<std::uint8_t> covered(const Nonce& hello, const Welcome& welcome) {
  std::vector<std::uint8_t> out;
  ByteWriter w(out);
  w.bytes(hello);
  w.text("welcome");
  put(w, welcome.geometry);
  return out;
}

}  // namespace cepheus::replica
