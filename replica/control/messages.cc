// One function `fields` for each message names its fields in order, and serves encoding (Put) and
// decoding (Get) alike. So both directions agree by construction.
//
// Decoding refuses unknown enumerators, lists beyond their limit, and bytes behind the message.
// Tags cover the other end's nonce, so that a recorded greeting proves nothing. The word "welcome"
// keeps a replica's tag from serving as a peer's.
#include "replica/control/messages.h"

#include "replica/control/fields.h"

namespace cepheus::replica {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'c', 'e', 'p', 'h', '-', 'v', 'o', 'l'};

// Begins a frame; its destructor fills the length in.
class Frame {
 public:
  Frame(MessageType type, std::vector<std::uint8_t>& out) : out_(out), begin_(out.size()) {
    Put put(out);
    put(std::uint32_t{0}, static_cast<std::uint8_t>(type));
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

void fields(auto& io, Is<RcName> auto& v) { io(v.ipv4, v.qpn, v.psn, v.path_mtu); }
void fields(auto& io, Is<DigestRequest> auto& v) { io(v.offset, v.length, v.unit); }
void fields(auto& io, Is<Challenge> auto& v) { io(kMagic, v.version, v.nonce); }
void identity(auto& io, Is<VolumeHello> auto& v) {
  io(kMagic, v.version);
  io.one_of(v.role, Role::kWriter, Role::kObserver);
  io(v.volume, v.place, v.count, v.nonce);
}
void fields(auto& io, Is<VolumeHello> auto& v) {
  identity(io, v);
  io(v.tag);
}
void fields(auto& io, Is<Welcome> auto& v) {
  fields(io, v.geometry);
  io(v.tag);
}
void fields(auto& io, Is<RequestMessage> auto& v) {
  auto& q = v.request;
  io.one_of(q.type, RequestType::kPromise, RequestType::kPing);
  io(q.serial);
  fields(io, q.epoch);
  fields(io, q.config);
  io(q.range.first, q.range.count, q.generation);
  io.list(q.words, kMostBitmap / 8);
  fields(io, v.rc);
  io.one_of(v.multicast, Multicast::kCepheus, Multicast::kMcRdma);
  auto& p = v.progress;
  io(p.is_in_sync, p.lacking, p.copied_bytes, p.copy_rate);
}
void fields(auto& io, Is<AnswerMessage> auto& v) {
  auto& a = v.answer;
  io.one_of(a.type, RequestType::kPromise, RequestType::kPing);
  io(a.serial);
  io.one_of(a.verdict, Verdict::kDone, Verdict::kFailed);
  fields(io, a.promised);
  fields(io, a.config);
  io.one_of(a.loss, Loss::kNone, Loss::kAll);
  io.list(a.words, kMostBitmap / 8);
  io(v.join.member, v.join.region);
  fields(io, v.join.rc);
  io(v.join.rkey, v.join.address, v.text);
}
void fields(auto& io, Is<Digests> auto& v) {
  fields(io, v.request);
  io.list(v.digests);
}

void encode_text(MessageType type, std::string_view text, std::vector<std::uint8_t>& out) {
  const Frame frame(type, out);
  Put put(out);
  put(std::string(text));
}

}  // namespace

template <typename Message>
void encode(const Message& message, std::vector<std::uint8_t>& out) {
  const Frame frame(Message::kType, out);
  Put put(out);
  fields(put, message);
}
template void encode(const Challenge&, std::vector<std::uint8_t>&);
template void encode(const VolumeHello&, std::vector<std::uint8_t>&);
template void encode(const Welcome&, std::vector<std::uint8_t>&);
template void encode(const RequestMessage&, std::vector<std::uint8_t>&);
template void encode(const AnswerMessage&, std::vector<std::uint8_t>&);
template void encode(const DigestRequest&, std::vector<std::uint8_t>&);
template void encode(const Digests&, std::vector<std::uint8_t>&);

template <typename Message>
std::optional<Message> decode(std::span<const std::uint8_t> body) {
  Get get(body);
  Message v;
  fields(get, v);
  return get.is_done() ? std::optional(std::move(v)) : std::nullopt;
}
template std::optional<Challenge> decode(std::span<const std::uint8_t>);
template std::optional<VolumeHello> decode(std::span<const std::uint8_t>);
template std::optional<Welcome> decode(std::span<const std::uint8_t>);
template std::optional<RequestMessage> decode(std::span<const std::uint8_t>);
template std::optional<AnswerMessage> decode(std::span<const std::uint8_t>);
template std::optional<DigestRequest> decode(std::span<const std::uint8_t>);
template std::optional<Digests> decode(std::span<const std::uint8_t>);

const char* to_string(Multicast multicast) {
  return multicast == Multicast::kMcRdma ? "mcrdma" : "cepheus";
}

std::optional<Multicast> multicast_of(std::string_view name) {
  for (const auto each : {Multicast::kCepheus, Multicast::kMcRdma}) {
    if (name == to_string(each)) return each;
  }
  return std::nullopt;
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
  Get get(body);
  std::string text;
  get(text);
  return get.is_done() ? std::optional(std::move(text)) : std::nullopt;
}

std::vector<std::uint8_t> covered(const Nonce& challenge, const VolumeHello& hello) {
  std::vector<std::uint8_t> out;
  Put put(out);
  put(challenge);
  identity(put, hello);
  return out;
}

std::vector<std::uint8_t> covered(const Nonce& hello, const Welcome& welcome) {
  std::vector<std::uint8_t> out;
  Put put(out);
  put(hello, std::string("welcome"));
  fields(put, welcome.geometry);
  return out;
}

}  // namespace cepheus::replica
