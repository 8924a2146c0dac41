// Any bytes: a message of MRP, a HELLO, a PUBLISH, a PROBE or one of sender groups that parses must
// survive emit and parse.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "wire/hello.h"
#include "wire/mrp.h"
#include "wire/probe.h"
#include "wire/publication.h"
#include "wire/sender_group.h"

namespace {

void check_hello(std::span<const std::uint8_t> bytes) {
  using namespace cepheus::wire;
  const auto hello = Hello::parse(bytes);
  if (!hello) return;
  std::array<std::uint8_t, MrpMessage::kMaxSize> out;
  const std::size_t written = hello->emit(out);
  const auto again = Hello::parse(std::span(out).first(written));
  if (written != bytes.size() || !again || !std::ranges::equal(again->list(), hello->list())) {
    std::abort();
  }
}

// A message in which every byte has a meaning.
template <typename Message>
void check_whole(std::span<const std::uint8_t> bytes) {
  const auto message = Message::parse(bytes);
  if (!message) return;
  std::array<std::uint8_t, cepheus::wire::MrpMessage::kMaxSize> out;
  const std::size_t written = message->emit(out);
  if (!std::ranges::equal(bytes, std::span(out).first(written))) std::abort();
}

// A PROBE may have padding behind it.
void check_probe(std::span<const std::uint8_t> bytes) {
  using namespace cepheus::wire;
  const auto probe = Probe::parse(bytes);
  if (!probe) return;
  std::array<std::uint8_t, Probe::kMostSize> out;
  const std::size_t written = probe->emit(out);
  if (!std::ranges::equal(bytes.first(written), std::span(out).first(written))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cepheus::wire;
  const std::span bytes(data, size);
  check_hello(bytes);
  check_probe(bytes);
  check_whole<Publication>(bytes);
  check_whole<SenderGroupMessage>(bytes);
  const auto message = MrpMessage::parse(bytes);
  const auto refusal = refuse_version(bytes);
  if (message && refusal) std::abort();  // a message that parses is not refused
  if (!message) return 0;
  std::array<std::uint8_t, MrpMessage::kMaxSize> out;
  const std::size_t written = message->emit(out);
  const auto again = MrpMessage::parse(std::span(out).first(written));
  // Other records move behind the members; without such records all bytes come back the same.
  const bool is_ordered =
      message->skipped_size == 0 && !message->path && !message->reduction && !message->tree;
  const bool good = written == size && again && again->header == message->header &&
                    again->path == message->path && again->reduction == message->reduction &&
                    again->tree == message->tree &&
                    std::ranges::equal(again->list(), message->list()) &&
                    std::ranges::equal(again->skipped_records(), message->skipped_records()) &&
                    (!is_ordered || std::equal(data, data + size, out.begin()));
  if (!good) std::abort();
  return 0;
}
