#include "switch-emulator/live/status/printable.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cepheus::live {

std::string first_few(const std::vector<std::string>& texts, std::string_view separator) {
  constexpr std::size_t kMost = 4;
  std::string shown;
  for (std::size_t i = 0; i < std::min(texts.size(), kMost); ++i) {
    if (i > 0) shown += separator;
    shown += texts[i];
  }
  return texts.size() > kMost ? shown + " and " + std::to_string(texts.size() - kMost) + " more"
                              : shown;
}

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', /*ensure_ascii=*/true,
                       nlohmann::json::error_handler_t::replace);
}

}  // namespace cepheus::live
