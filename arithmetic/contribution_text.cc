#include "arithmetic/contribution_text.h"

#include "arithmetic/operation.h"

namespace cepheus::arithmetic {

std::string contribution_text(std::uint8_t operation, std::uint8_t type, std::uint32_t bytes) {
  if (operation == 0 && type == 0 && bytes == 0) return "nothing, as to a barrier";
  const std::string text = std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  const auto known = static_cast<Operation>(operation);
  const auto values = static_cast<Type>(type);
  if (known == Operation::kBitOr && values == Type::kUint8) return text;
  if (known == Operation::kNone || operation >= kOperations || type >= kTypes) {
    return text + " to operation " + std::to_string(operation) + " of type " + std::to_string(type);
  }
  return text + " to a " + name(known) + " of " + name(values);
}

}  // namespace cepheus::arithmetic
