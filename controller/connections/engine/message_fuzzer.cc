// Any bytes: a message that parses must be the same bytes again.
#include <algorithm>
#include <cstdlib>

#include "controller/connections/engine/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cepheus::connections;
  const std::span bytes(data, size);
  const auto message = Message::parse(bytes);
  if (!message) return 0;
  std::vector<std::uint8_t> out;
  message->emit(out);
  if (!std::ranges::equal(bytes, out)) std::abort();
  return 0;
}
