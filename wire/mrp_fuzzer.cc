// Any bytes: an MRP message that parses must survive emit and parse.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "wire/mrp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cepheus::wire;
  const auto message = MrpMessage::parse({data, size});
  if (!message) return 0;
  std::array<std::uint8_t, MrpMessage::kMaxSize> out;
  const std::size_t written = message->emit(out);
  const auto again = MrpMessage::parse(std::span(out).first(written));
  const bool good = written == size && again && again->header == message->header &&
                    std::ranges::equal(again->list(), message->list()) &&
                    std::equal(data, data + 10, out.begin()) &&  // all but the reserved half-word
                    std::equal(data + 12, data + size, out.begin() + 12);
  if (!good) std::abort();
  return 0;
}
